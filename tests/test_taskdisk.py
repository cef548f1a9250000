from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from outlay.errors import InputError
from tests.taskfiles import TASK, changed, load

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("where", "key"),
    [
        ('protected = ["link/x"]', "task.protected"),
        ('data = ["link"]', "task.data"),
        ('editable = ["link/x"]', "task.editable"),
    ],
)
def test_no_symbolic_link_leads_out(tmp_path: Path, where: str, key: str) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "x").write_text("")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "link").symlink_to(tmp_path / "out")
    with pytest.raises(InputError, match=rf"{key}: found 'link.*leads to"):
        load(tmp_path / "in", changed(TASK, f"{where}\n{TASK}"))


def test_no_symbolic_link_of_a_lever_leads_out(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "link").symlink_to(tmp_path / "out")
    for option in ("{ patch = 'link' }", "{ files = { a = 'link' } }"):
        with pytest.raises(InputError, match=r"found 'link', allowed: .*leads to"):
            load(tmp_path / "in", changed('"--a 1"', option))


def test_a_protected_glob_may_not_meet_an_editable_one_on_disk(tmp_path: Path) -> None:
    (tmp_path / "eval_a.py").write_text("")
    with pytest.raises(InputError, match=r"task\.protected: found 'eval_a\.py'"):
        load(tmp_path, changed(TASK, f'editable = ["*.py"]\nprotected = ["eval_*"]\n{TASK}'))


def test_a_default_that_swaps_in_another_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text("1")
    (tmp_path / "n.py").write_text("2")
    text = changed('off = ""', "off = { files = { 'm.py' = 'n.py' } }")
    with pytest.raises(InputError, match=r"allowed: a copy of m\.py"):
        load(tmp_path, text)
    (tmp_path / "n.py").write_text("1")
    load(tmp_path, text)
