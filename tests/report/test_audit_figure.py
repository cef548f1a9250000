from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from outlay.audit import audit
from outlay.auditlog import Row
from outlay.report.audit import plot

if TYPE_CHECKING:
    from pathlib import Path

ROWS = (
    Row(line=2, value=1.0, outcome="accepted", description="start"),
    Row(line=3, value=1.01, outcome="rejected", description="seed"),
    Row(line=4, value=50.0, outcome="rejected", description="odd"),
    Row(line=5, value=0.5, outcome="accepted", description="a $b$ <c> \u6570"),
)


@pytest.mark.parametrize("rows", [ROWS, ROWS[:1], ROWS[::3]], ids=["noise", "one row", "none"])
def test_the_same_audit_gives_the_same_svg(tmp_path: Path, rows: tuple[Row, ...]) -> None:
    found = audit(rows, "minimize")
    first, second = tmp_path / "a.svg", tmp_path / "b.svg"
    plot(found, "loss_$x$", "minimize", first)
    plot(found, "loss_$x$", "minimize", second)
    assert first.read_bytes() == second.read_bytes()
    assert "loss_$x$ (lower is better)" in first.read_text()


def test_outsiders_do_not_stretch_the_picture_and_are_named(tmp_path: Path) -> None:
    path = tmp_path / "a.svg"
    plot(audit(ROWS, "minimize"), "loss", "minimize", path)
    drawn = path.read_text()
    assert "outside the picture" in drawn
    assert "a $b$ &lt;c&gt;" in drawn
    assert ">50<" not in drawn
