from __future__ import annotations

from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from outlay.believed import believed
from outlay.designs.beliefs import Beliefs
from outlay.events import Child, Design, Evaluation, Rejected
from outlay.report import gather, markdown, page
from outlay.report.belief_cards import learned, lines, probability
from outlay.store import MemoryStore
from outlay.summary import summarise
from outlay.task import Budget
from tests.driving import RUN, Accidents, drive, task
from tests.report.samples import NASTY, finished

if TYPE_CHECKING:
    from outlay.state import State

NOWHERE = Path("/nowhere/runs/six")
HYPOTHESES = {
    "arms": ["ema", "dropout"],
    "budget": 20,
    "cost": {"unit": "GPU hours", "setup": 1, "per_arm": 0.6, "per_seed": 0.35},
    "hypotheses": [
        {"name": "averaging", "prior": 0.4, "signature": {"ema": 1}},
        {"name": f"dropout {NASTY}", "prior": 0.6, "signature": {"dropout": 1}},
    ],
}


@pytest.fixture
def beliefs() -> Beliefs:
    """One design that told something, one that told nothing, one open, and one sent back."""
    made = Beliefs(HYPOTHESES)
    both = Design(arms=("ema", "dropout"), seeds=2)
    children = [Child(node=node, design=both) for node in (1, 2, 3)]
    made.propose(children, [Rejected(reason=f"child 4: {NASTY}", design=both, saved=2.9)])
    made.learn(1, 5, [Evaluation(node=1, seed=0, value=1.0, metrics={"ema": 1.0, "dropout": 0.0})])
    made.learn(2, 6, [])
    return made


def test_beliefs_as_data(beliefs: Beliefs) -> None:
    found = believed(beliefs)
    assert [(one.name, one.prior) for one in found.hypotheses] == [
        ("averaging", 0.4),
        (f"dropout {NASTY}", 0.6),
    ]
    assert tuple(one.posterior for one in found.hypotheses) == beliefs.now.prior
    assert (found.unit, found.budget, found.saved) == ("GPU hours", 20.0, 2.9)
    assert found.left == pytest.approx(20 - 3 * 2.9)
    told, failed, waits = found.experiments
    assert told.outcome == {"ema": 1.0, "dropout": 0.0}
    assert told.posterior == beliefs.now.prior
    assert (failed.attempt, failed.outcome, failed.problem) == (6, {}, "the attempt has no score")
    assert (waits.attempt, waits.outcome, waits.problem) == (0, {}, "")
    assert found.sent_back[0].saved == 2.9


def test_the_card_shows_beliefs_designs_and_what_was_saved(beliefs: Beliefs) -> None:
    state, entries = finished(5)
    view = gather(state, entries, NOWHERE, "six")
    assert "Hypotheses" not in page(view)
    shown = replace(view, state=_with(state, beliefs))
    html, text, now = page(shown), markdown(shown), probability(beliefs.now.prior[0])
    assert "<script" not in html
    assert "&lt;script&gt;" in html
    for part in (
        f"Most believed: averaging, {now} after 0.400 at the start.",
        "3 designs passed the gate and took 8.7 of 20 GPU hours; 11.3 are left.",
        "1 plan sent back before an attempt was spent: 2.9 GPU hours saved.",
        "the attempt has no score",
        "not ended",
    ):
        assert part in html
        assert part in text
    row = f"| 1 | 5 | ema, dropout; 2 seeds | 2.9 | ema 1, dropout 0 | averaging, {now} |"
    assert row in text


def _with(state: State, beliefs: Beliefs) -> State:
    made = copy(state)
    made.beliefs = beliefs
    return made


def test_nothing_learnt_is_said_plainly() -> None:
    made = Beliefs(HYPOTHESES)
    assert "0.400 → 0.400  averaging" in "\n".join(lines(believed(made)))
    state, entries = finished(5)
    text = markdown(gather(_with(state, made), entries, NOWHERE, "six"))
    assert "No experiment has told anything, so the beliefs are those of the task." in text
    assert (
        "0 designs passed the gate and took 0 of 20 GPU hours; 20 are left.\n\nNo plan was" in text
    )


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0, "0"), (1, "1"), (1e-9, "below 0.001"), (0.9999, "above 0.999"), (0.25, "0.250")],
)
def test_a_small_probability_is_no_zero(value: float, shown: str) -> None:
    assert probability(value) == shown


def test_what_a_whole_run_says() -> None:
    store = MemoryStore()
    chosen = task(levers=0, model=True, hypotheses=True, limits=Budget(attempts=15))
    state = drive(store, chosen, seed=3, accidents=Accidents())
    assert state.beliefs is not None
    found = summarise(state, RUN).beliefs
    assert found == believed(state.beliefs)
    html = page(gather(state, list(store.read(RUN)), NOWHERE, RUN))
    assert "This analysis failed" not in html
    read = next(one for one in found.experiments if one.outcome)
    assert learned(state, read.node).startswith(f"; its design: {read.arms[0]} ")
    assert learned(state, 0) == ""
