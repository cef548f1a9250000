"""Runs a real client as an attempt would: held in a sandbox, under an outer clock, read live.

OUTLAY_CLIENTS names the folder where the clients are installed, as `.ci/run` does it.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

import outlay
from outlay.agents.clients import programs
from outlay.agents.clients.contract import Ending, Happened, Reader, Request, Usage
from outlay.agents.clients.registry import by_name
from outlay.execution import sandbox, step
from outlay.execution.capture import Capture
from outlay.execution.environment import child_environment
from tests.model_server import ModelServer, Turn, turns

if TYPE_CHECKING:
    from collections.abc import Callable

    from outlay.agents.clients.contract import Client, Invocation

CLIENTS = ("codex", "claude", "opencode")
REAL = [pytest.mark.real_client, pytest.mark.xdist_group("clients")]  # one at a time
WRITE = "printf 'hello from the script\\n' > hello.txt"


WROTE = turns(Turn(shell=WRITE), Turn(text="I wrote it."))
_NOTHING = Usage()


class Ran(NamedTuple):
    ending: Ending
    ended: step.Ended
    told: list[Happened]


class Lab:
    """A workspace and a home for one client.

    Attributes:
        held: What holds it.
        command: The client's program with fixed arguments; empty for the one that is found.
    """

    def __init__(self, client: str, root: Path) -> None:
        self.held: sandbox.Kind = "bwrap" if sandbox.works("bwrap") else "unshare"
        self.client: Client = by_name(client)
        self.command: tuple[str, ...] = ()
        self.work, self.home, self.tmp = root / "work", root / "home", root / "tmp"
        for folder in (self.work, self.home, self.tmp):
            folder.mkdir()

    def request(self, url: str, **fields: object) -> Request:
        asked = Request(
            prompt="- Write hello.txt.",  # begins as an option would
            folder=str(self.work),
            home=str(self.home),
            command=self.command,
            model="fake-1",
            url=url,
            key="k1",
        )
        return asked._replace(**fields)  # type: ignore[arg-type]

    def run(
        self,
        url: str,
        *,
        seconds: float = 90,
        before: Usage = _NOTHING,
        until: Callable[[], object] = lambda: False,
        **fields: object,
    ) -> Ran:
        """Run until the client ends, or the clock or the condition ends it."""
        invocation = self.client.invoke(self.request(url, **fields))
        return self.start(invocation, seconds, before, until)

    def start(
        self,
        invocation: Invocation,
        seconds: float,
        before: Usage = _NOTHING,
        until: Callable[[], object] = lambda: False,
    ) -> Ran:
        for name, text in invocation.files.items():
            place = self.home / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text)
        stdin = self.home / "stdin"
        stdin.write_text(invocation.stdin)
        wake, never = os.pipe()

        def look(*_: object) -> None:
            watch.asked = watch.asked or bool(until())

        watch = step.Watch(seconds, None, wake, look)
        reader, told = self.client.reader(before), []
        with open(os.devnull, "wb", 0) as nowhere:
            out = _Live(Capture(nowhere, 1 << 26), reader, told, watch)
            ended = step.run(
                sandbox.wrap(self.held, invocation.command, self._view()),
                folder=self.work,
                environment=self._environment() | invocation.environment,
                watch=watch,
                out=out,  # type: ignore[arg-type]
                err=Capture(nowhere, 1 << 26),
                stdin=stdin,
            )
        os.close(wake)
        os.close(never)
        return Ran(reader.ending(ended.code, ended.err.last_line()), ended, told)

    def _environment(self) -> dict[str, str]:
        tmp = "/tmp" if self.held == "bwrap" else str(self.tmp)
        return child_environment((), 1) | {"TMPDIR": tmp}

    def _view(self) -> sandbox.View:
        clients = (os.path.realpath(_folder()),) if _folder() else ()
        return sandbox.View(
            work=str(self.work),
            exchange=str(self.home),
            tmp=str(self.tmp),
            visible=(sys.base_prefix, sys.prefix, os.path.dirname(outlay.__file__), *clients),
            network=True,
        )


def works(lab: Lab, kinds: list[str]) -> tuple[Usage, Usage, set[str]]:
    """Let the client write its file; return the usage that it told and the server counted.

    The paths that it asked for come with them.
    """
    with ModelServer(WROTE, keys=("k1",)) as server:
        ran = lab.run(server.url)
        told = server.told("k1")
    assert (ran.ending.ok, ran.ending.answer, ran.ended.code) == (True, "I wrote it.", 0)
    assert (lab.work / "hello.txt").read_text() == "hello from the script\n"
    assert [happened.kind for happened in ran.told] == kinds
    return ran.ending.usage, told, {seen.path.split("?")[0] for seen in server.seen}


def for_long(condition: Callable[[], object]) -> Callable[[], bool]:
    """Return a condition that holds when the first one has held for three seconds."""
    since: list[float] = []

    def held() -> bool:
        if condition():
            since.append(time.monotonic())
        return bool(since) and time.monotonic() - since[0] > 3

    return held


class _Live:
    """Passes every line to the reader as it comes, and ends what the reader finds hopeless."""

    def __init__(
        self, capture: Capture, reader: Reader, told: list[Happened], watch: step.Watch
    ) -> None:
        self._capture, self._reader, self._told, self._watch = capture, reader, told, watch
        self._rest = b""

    def feed(self, data: bytes) -> None:
        self._capture.feed(data)
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._told += self._reader.line(line.decode("utf-8", "replace"))
        self._watch.asked = self._watch.asked or self._reader.hopeless

    def __getattr__(self, name: str) -> object:
        return getattr(self._capture, name)


def _folder() -> str:
    return os.environ.get("OUTLAY_CLIENTS", "")


def installed(client: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the client's program; without OUTLAY_CLIENTS the test is skipped.

    A client that is not in there fails the test, unless `.ci/clients` wrote that it would not
    install on this machine: nothing is left out of CI unnoticed.
    """
    folder = _folder()
    if not folder:
        pytest.skip("OUTLAY_CLIENTS names no folder with the real clients")
    places = [Path(folder, "node_modules", ".bin"), Path(folder, "bin")]
    path = os.pathsep.join((*(str(Path(p).resolve()) for p in places), os.environ["PATH"]))
    monkeypatch.setenv("PATH", path)
    try:
        return programs.find(client)
    except ValueError as error:
        missing = Path(folder, "missing")
        if missing.is_file() and client in missing.read_text().split():
            pytest.skip(f"{client} does not install here: {missing}")
        pytest.fail(f"{error}; {folder} should have it")


def processes_with(text: str) -> list[int]:
    """Return the processes whose environment or command line holds the text."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                told = (entry / "environ").read_bytes() + (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if text.encode() in told:
                found.append(int(entry.name))
    return found


def end_all_with(text: str) -> list[int]:
    """Kill the processes that hold the text until none is left; return those found at first."""
    first = left = processes_with(text)
    while left:
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        left = processes_with(text)
    return first
