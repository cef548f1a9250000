from __future__ import annotations

import sys
from html.parser import HTMLParser
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from outlay.ablations.components import Origin
from outlay.ablations.running import ablation_of, surface_of
from outlay.ablations.summary import ablated
from outlay.report import View, history, markdown
from outlay.report.ablation import write_ablation
from outlay.store import MemoryStore
from outlay.surfaces.factors import read_factors
from outlay.surfaces.measurements import Measurement
from outlay.surfaces.surface import Surface
from outlay.task import Budget
from tests.driving import RUN, Accidents, drive, task

if TYPE_CHECKING:
    from pathlib import Path

NASTY = "<script>alert(1)</script>|`*"


class Names(HTMLParser):
    """Collects the tags of a page and where its pictures come from."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.sources: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.sources += [value or "" for name, value in attrs if name == "src"]


@pytest.fixture(scope="module")
def state():
    made = ablation_of(task(levers=3), Budget(attempts=9))
    return drive(MemoryStore(), made, accidents=Accidents(failed=0.3))


def test_names_and_reasons_cannot_become_markup(state, tmp_path: Path) -> None:
    surface = surface_of(state, dict.fromkeys(range(1, 9), NASTY))
    found = ablated(state, NASTY, surface, Origin(run=NASTY, node=1, by="hunk"))
    assert any(entry.reason == NASTY for entry in found.failed)
    files, missing = write_ablation(found, surface, NASTY, tmp_path)
    assert missing == ""
    names = Names((tmp_path / "ablation.html").read_text())
    assert "script" not in names.tags
    assert len(names.sources) == 3
    assert all(source.startswith("data:image/png;base64,") for source in names.sources)
    text = (tmp_path / "ablation.md").read_text()
    assert "\\<script\\>" in text
    assert "<script>" not in text
    assert sorted(files) == sorted(path.name for path in tmp_path.iterdir())


def test_without_matplotlib_the_rest_is_written_and_it_is_said(
    state, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    monkeypatch.delitem(sys.modules, "outlay.surfaces.plots", raising=False)
    surface = surface_of(state)
    found = ablated(state, RUN, surface, None)
    files, missing = write_ablation(found, surface, "What?", tmp_path)
    assert "matplotlib" in missing
    assert sorted(files) == ["ablation.html", "ablation.md", "surface.json"]
    assert "![" not in (tmp_path / "ablation.md").read_text()


def test_one_component_alone_has_a_report(state, tmp_path: Path) -> None:
    measured = [
        Measurement(config={"a": option}, metrics={"score": value})
        for option, value in (("off", 0.0), ("on", 1.0))
    ]
    surface = Surface(
        read_factors({"a": ["off", "on"]}), measured, metric="score", direction="maximize"
    )
    found = ablated(state, RUN, surface, Origin(run="r", node=1, by="hunk"))
    found = replace(found, next=None)  # the state's factors are others
    assert found.minimal is not None
    assert found.minimal.kept == ["a"]
    write_ablation(found, surface, "What?", tmp_path)
    assert "1 of 1 component (a)" in (tmp_path / "ablation.md").read_text()


def test_the_report_of_the_run_says_nothing_of_champions() -> None:
    made = ablation_of(task(levers=3), Budget(attempts=5))
    store = MemoryStore()
    state = drive(store, made)
    text = markdown(View(run=RUN, state=state, history=history(store.read(RUN))))
    assert "An ablation: 5 configurations measured" in text
    assert "## Attempts" in text
    assert "## Champion" not in text
    assert "| champion | 1 |" not in text
