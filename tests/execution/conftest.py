from __future__ import annotations

import itertools
import json
import os
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from outlay.execution import processes, recover, sandbox, snapshot
from outlay.execution.environment import child_environment
from outlay.execution.folder import write_job
from outlay.execution.job import AgentWork, Job, Result, Subject
from outlay.execution.pool import LocalPool

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

KINDS = [kind for kind in sandbox.KINDS if sandbox.works(kind)]
SCORE = "print('{\"score\": 0.5}')"


class Lab:
    """A run folder with jobs whose workspaces are given as file texts."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.run_folder = root / "run"
        self.objects = self.run_folder / "objects"
        self.pool = LocalPool(self.run_folder, 2)
        self._numbers = itertools.count(1)

    def files(self, files: dict[str, str | bytes]) -> str:
        folder = self.root / f"files{next(self._numbers)}"
        for path, text in files.items():
            place = folder / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(text.encode() if isinstance(text, str) else text)
        folder.mkdir(exist_ok=True)
        return snapshot.take(folder, self.objects, plain=True)

    def subject(self, files: dict[str, str | bytes], **fields: Any) -> Subject:
        return Subject(label="n1", files=self.files(files), **fields)

    def job(self, script: str = SCORE, **fields: Any) -> Job:
        """Return a job that evaluates `score.py` with this text."""
        name = f"a{next(self._numbers)}.1"
        subjects = fields.pop("subjects", None) or (self.subject({"score.py": script}),)
        defaults: dict[str, Any] = {
            "id": name,
            "token": f"{name}-{os.urandom(8).hex()}",
            "folder": str(self.run_folder / "jobs" / name),
            "objects": str(self.objects),
            "subjects": subjects,
            "runs": ((0, 1),),
            "metric": "score",
            "command": (sys.executable, "score.py"),
            "environment": child_environment((), 1),
            "seconds": 30.0,
        }
        return Job(**(defaults | fields))

    def run(self, job: Job, timeout: float = 30.0) -> Result:
        self.pool.start(job)
        (result,) = self.pool.wait(timeout)
        return result

    def folder(self, job: Job) -> Path:
        return self.run_folder / "jobs" / job.id

    def written(self, job: Job) -> Path:
        write_job(job)
        return self.folder(job)

    def output(self, job: Job) -> str:
        return (self.folder(job) / "out.txt").read_text()


def of_token(token: str) -> list[processes.Process]:
    """Return the processes alive that carry the token."""
    return processes.with_token(token, processes.table())


def until(true: Callable[[], object], seconds: float = 10.0) -> None:
    """Wait until something real has happened."""
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.01)


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    made = Lab(tmp_path)
    yield made
    made.pool.close()
    for claim in (made.run_folder / "jobs").glob("*/claim"):
        token = json.loads(claim.read_text())["token"]
        recover.ensure_ended(made.run_folder, claim.parent.name, token)


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> sandbox.Kind:
    return request.param  # type: ignore[no-any-return]


def works(*command: str) -> AgentWork:
    """Return the work of a plain command as an agent."""
    return AgentWork(client="command", command=command, text="raise the value")
