from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from outlay.execution.environment import THREADS, child_environment, for_uv, has_packages, threads

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_only_what_is_allowed_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        monkeypatch.delenv(name)
    given = {"PATH": "/bin", "LC_ALL": "C", "AWS_SECRET_ACCESS_KEY": "k", "GITHUB_TOKEN": "t"}
    for name, value in (given | {"MY_FLAG": "1", "OMP_NUM_THREADS": "64"}).items():
        monkeypatch.setenv(name, value)
    plain = child_environment((), 2)
    assert plain == {"PATH": "/bin", "LC_ALL": "C"} | dict.fromkeys(THREADS, "2")
    assert child_environment(("MY_*",), 2) == plain | {"MY_FLAG": "1"}


def test_threads_share_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(8)))
    assert [threads(workers) for workers in (1, 2, 3, 8, 100)] == [8, 4, 2, 1, 1]


def test_uv_uses_the_workspaces_packages_else_ours(tmp_path: Path) -> None:
    assert not has_packages(tmp_path)
    assert for_uv(tmp_path)["UV_PROJECT_ENVIRONMENT"] == sys.prefix
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv" / "pyvenv.cfg").write_text("home = /usr/bin\n")
    assert has_packages(tmp_path)
    assert for_uv(tmp_path)["UV_PROJECT_ENVIRONMENT"] == str(tmp_path / ".venv")
