"""The commands of a job, in order: agent, correctness check, evaluations."""

from __future__ import annotations

import fcntl
import json
import os
import select
import signal
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from outlay.execution import fault, metric, sandbox, step
from outlay.execution.capture import Capture
from outlay.execution.job import Evaluated
from outlay.execution.processes import TOKEN
from outlay.execution.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Iterator

    from outlay.execution.job import Job

_CAUSES = {
    "timeout": "the time limit of the job was reached",
    "memory": "the memory limit of the job was reached",
    "ended": "the job was asked to end",
}
_MOST_RESULT = 10_000_000
_LEAST_FREE = 1 << 20


class Progress:
    """What a job has to show so far, whatever comes next."""

    def __init__(self) -> None:
        self.runs: list[Evaluated] = []
        self.files = ""
        self.detail = ""
        self.usage: dict[str, Any] = {}


def carry_out(job: Job, kind: sandbox.Kind, watch: step.Watch, progress: Progress) -> None:
    """Do everything the job asks for; raises `Fault` at the first thing that goes wrong."""
    folder = Path(job.folder)
    for name in ("tmp", "exchange"):
        (folder / name).mkdir(exist_ok=True)
    spaces = [Workspace(job, index) for index in range(len(job.subjects))]
    with open(folder / "out.txt", "ab", 0) as out, open(folder / "err.txt", "ab", 0) as err:
        bench = _Bench(job, kind, watch, out, err)
        for space in spaces:
            space.lay_out()
        progress.files = spaces[0].files
        if job.agent:
            bench.agent(spaces[0], progress)
        if job.check:
            bench.check(spaces)
        for index, seed in job.runs:
            bench.evaluate(spaces[index], index, seed, progress)


class _Bench:
    """Runs commands in workspaces under the job's limits."""

    def __init__(
        self,
        job: Job,
        kind: sandbox.Kind,
        watch: step.Watch,
        out: IO[bytes],
        err: IO[bytes],
    ) -> None:
        self._job = job
        self._kind = kind
        self._watch = watch
        self._files = (out, err)
        self._exchange = Path(job.folder) / "exchange"
        steps = len(job.runs) + bool(job.agent) + bool(job.check) * len(job.subjects)
        self._share = job.output // 2 // max(steps, 1)

    def agent(self, space: Workspace, progress: Progress) -> None:
        """Let the agent work in the workspace, with the hidden files absent."""
        plan, usage = self._exchange / "PLAN.md", self._exchange / "usage.json"
        plan.write_text(self._job.agent_text, encoding="utf-8")
        space.withhold()
        try:
            ended = self._run(
                "agent",
                self._job.agent,
                space,
                {"OUTLAY_PLAN": str(plan), "OUTLAY_USAGE": str(usage)},
            )
        finally:
            progress.usage = _usage(usage)
        if ended.code != 0:
            raise fault.failed("agent", _exit("the agent", ended))
        progress.detail = space.settle()
        progress.files = space.files

    def check(self, spaces: list[Workspace]) -> None:
        """Run the correctness command in every workspace."""
        for space in spaces:
            ended = self._run(f"{space.subject.label} check", self._job.check, space, {})
            if ended.code != 0:
                raise fault.failed("check", _exit("the correctness command", ended))

    def evaluate(self, space: Workspace, index: int, seed: int | None, progress: Progress) -> None:
        """Evaluate once, and note the value or the fault."""
        result = self._exchange / "result.json"
        sources = [] if self._job.source == "stdout" else [space.root / self._job.source]
        for stale in (result, *sources):
            stale.unlink(missing_ok=True)
        label = f"{space.subject.label} seed {seed}"
        env = {"OUTLAY_RESULT": str(result), "OUTLAY_CONFIG": json.dumps(space.subject.config)}
        begun = time.monotonic()
        try:
            with self._exclusive():
                begun = time.monotonic()
                ended = self._run(label, self._command(space, seed), space, env)
            if ended.code != 0:
                raise fault.failed("crash", _exit("the evaluator", ended))
            space.check()
            reading = self._reading(result, space, ended)
            if reading.value is None:
                raise fault.failed("metric", reading.fault)
        except fault.Fault as found:
            progress.runs.append(_evaluated(index, seed, begun, fault=found.detail))
            raise
        progress.runs.append(_evaluated(index, seed, begun, reading.value, reading.metrics))

    def _command(self, space: Workspace, seed: int | None) -> tuple[str, ...]:
        if self._job.function is not None:
            source = Path(__file__).with_name("call.py").read_text(encoding="utf-8")
            return (sys.executable, "-c", source, self._job.function, json.dumps(seed))
        shown = "" if seed is None else str(seed)
        command = tuple(part.replace("{seed}", shown) for part in self._job.command)
        return command + space.subject.args

    def _reading(self, result: Path, space: Workspace, ended: step.Ended) -> metric.Reading:
        job = self._job
        rule = metric.Rule(
            name=job.metric, line=job.line, low=job.low, high=job.high, secondary=job.secondary
        )
        if (text := _file_text(result)) is not None:
            return metric.from_json(rule, text, "the file named in OUTLAY_RESULT")
        if job.source == "stdout":
            return metric.from_stdout(rule, ended.out.text())
        text = _file_text(space.root / job.source)
        if text is None:
            return metric.Reading(None, {}, f"metric file {job.source} was not written")
        return metric.from_json(rule, text, job.source)

    def _run(
        self, label: str, command: tuple[str, ...], space: Workspace, env: dict[str, str]
    ) -> step.Ended:
        """Run one command; raises `Fault` where a limit or the machine ended it."""
        self._stop_if_asked()
        out, err = self._captures(label)
        ooms = _oom_kills()
        try:
            ended = step.run(
                sandbox.wrap(self._kind, command, self._view(space)),
                folder=space.root,
                environment=self._environment(space, env),
                watch=self._watch,
                out=out,
                err=err,
            )
        except (FileNotFoundError, PermissionError) as error:
            detail = f"command {command[0]!r} cannot be started: {error.strerror}"
            raise fault.failed("crash", detail) from error
        self._raise_fault(ended, ooms)
        return ended

    def _stop_if_asked(self) -> None:
        if stop := self._watch.stop():
            raise _stopped(stop)

    def _raise_fault(self, ended: step.Ended, ooms: int) -> None:
        if ended.left:
            raise fault.machine("host", f"{ended.left} processes could not be ended")
        if ended.stop:
            raise _stopped(ended.stop)
        if ended.out.fault or ended.err.fault:
            raise fault.machine(
                "disk", f"output could not be kept: {ended.out.fault or ended.err.fault}"
            )
        if ended.code == 0:
            return
        if _oom_kills() > ooms:
            raise fault.machine("memory", "the host ran out of memory and killed a process")
        if ended.code in (-signal.SIGKILL, 128 + signal.SIGKILL):
            raise fault.machine("host", "the command was killed from outside")
        if (
            os.statvfs(self._job.folder).f_bavail * os.statvfs(self._job.folder).f_frsize
            < _LEAST_FREE
        ):
            raise fault.machine("disk", "disk full; " + _exit("the command", ended))
        last = ended.err.last_line()
        if self._kind == "bwrap" and last.startswith("bwrap: ") and "execvp" not in last:
            raise fault.machine("host", f"the sandbox did not start: {last}")

    def _captures(self, label: str) -> tuple[Capture, Capture]:
        out, err = (Capture(file, self._share) for file in self._files)
        for file in self._files:
            file.write(f"== {label} ==\n".encode())
        return out, err

    def _environment(self, space: Workspace, env: dict[str, str]) -> dict[str, str]:
        tmp = "/tmp" if self._kind == "bwrap" else f"{self._job.folder}/tmp"  # noqa: S108
        own = {TOKEN: self._job.token, "TMPDIR": tmp}
        return self._job.environment | own | space.subject.env | env

    def _view(self, space: Workspace) -> sandbox.View:
        job, folder = self._job, Path(self._job.folder)
        home = self._job.environment.get("HOME", "")
        secrets = [f"{home}/{name}" for name in sandbox.SECRETS] if home else []
        read = {os.path.realpath(path) for path in job.read}
        masks = [str(folder.parent.parent), job.objects, *job.mask, *secrets]
        pythons = (sys.prefix, sys.base_prefix, job.environment.get("VIRTUAL_ENV", sys.prefix))
        visible = {os.path.realpath(path) for path in (*pythons, *job.data)} | read
        return sandbox.View(
            work=str(space.root),
            exchange=str(self._exchange),
            tmp=str(folder / "tmp"),
            masks=tuple(sorted({os.path.realpath(path) for path in masks} - read)),
            visible=tuple(sorted(visible)),
            protected=tuple(str(path) for path in space.guarded() if not path.is_symlink()),
            network=job.network,
            gpu=job.gpu,
        )

    @contextmanager
    def _exclusive(self) -> Iterator[None]:
        """Hold the job's lock file; the time spent waiting for it counts for nothing."""
        if self._job.exclusive is None:
            yield
            return
        with open(self._job.exclusive, "ab") as file:
            while not _locked(file):
                self._stop_if_asked()
                begun = time.monotonic()
                select.select([self._watch.wake], [], [], 0.02)
                self._watch.waited += time.monotonic() - begun
            yield


def _locked(file: IO[bytes]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _stopped(stop: str) -> fault.Fault:
    kind = fault.machine if stop == "ended" else fault.failed
    return kind(stop, _CAUSES[stop])


def _exit(who: str, ended: step.Ended) -> str:
    code = ended.code if ended.code >= 0 else f"by signal {-ended.code}"
    last = ended.err.last_line() or ended.out.last_line()
    return f"{who} ended with {code}" + (f": {last}" if last else "")


def _evaluated(
    subject: int,
    seed: int | None,
    begun: float,
    value: float | None = None,
    metrics: dict[str, float] | None = None,
    *,
    fault: str = "",
) -> Evaluated:
    return Evaluated(
        subject=subject,
        seed=seed,
        value=value,
        seconds=time.monotonic() - begun,
        metrics=metrics or {},
        fault=fault,
    )


def _file_text(path: Path) -> str | None:
    """Return a regular file's text, at most 10 MB of it; `None` if there is none."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with open(handle, "rb") as file:
            return file.read(_MOST_RESULT).decode("utf-8", "replace")
    except OSError:
        return None


def _usage(path: Path) -> dict[str, Any]:
    """Return what an agent says it used, as fields of `Result`; only plain numbers count."""
    try:
        told: Any = json.loads(_file_text(path) or "{}")
    except ValueError:
        return {}
    names = {"tokens_in": int, "tokens_cached": int, "tokens_out": int, "usd": float}
    numbers = told if isinstance(told, dict) else {}
    return {
        name: kind(numbers[name])
        for name, kind in names.items()
        if type(numbers.get(name)) in (int, kind) and 0 <= numbers[name] < 1e15
    }


def _oom_kills() -> int:
    """Return how often this machine's kernel has killed for memory."""
    try:
        with open("/proc/vmstat", "rb") as file:
            return next((int(x.split()[1]) for x in file if x.startswith(b"oom_kill ")), 0)
    except OSError:
        return 0
