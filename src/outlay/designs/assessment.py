"""What an instruction is worth: its readings, their score, and what it leaves open."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from outlay.designs.catalogue import catalogue, fits
from outlay.designs.information import SAMPLES, is_enumerable
from outlay.designs.planning import Option, option
from outlay.designs.readings import MODES, ambiguity, readings
from outlay.designs.scores import Gaps, gaps
from outlay.designs.searching import best_affordable
from outlay.designs.statefile import as_state
from outlay.designs.wording import missing_words, read_action, remarks
from outlay.designs.worth import NOTHING

if TYPE_CHECKING:
    from pathlib import Path

    from outlay.designs.costs import Design
    from outlay.designs.readings import Action, Mode
    from outlay.designs.states import ResearchState


class Reading(NamedTuple):
    """One design that an executor may read into the action.

    Attributes:
        option: The design with its information and cost.
        affordable: Whether it fits the budget.
    """

    option: Option
    affordable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Assessment:
    """What an action is worth in a state.

    Attributes:
        readings: Its reading set under the default executor.
        efficiency: Affordable efficiency (0 to 1) under each executor mode.
        ambiguity: 1 - 1/|R|.
        best: The best affordable design, which has efficiency 1 unless it tells nothing.
        gaps: Where information was lost, in nats; `None` if there are too many arms to list.
        missing: What to add to the text so that one design is meant.
        notes: What in the text was not read, or read in a way that may surprise.
    """

    readings: tuple[Reading, ...]
    efficiency: dict[Mode, float]
    ambiguity: float
    best: Option
    gaps: Gaps | None
    missing: tuple[str, ...]
    notes: tuple[str, ...] = ()

    @property
    def nothing_to_learn(self) -> bool:
        """Whether no affordable design tells anything; every efficiency is then 0."""
        return self.best.gain <= NOTHING

    def to_json(self) -> dict[str, Any]:
        """Return the assessment as JSON data."""
        return {
            "nothing_to_learn": self.nothing_to_learn,
            "readings": [
                {**reading.option.to_json(), "affordable": reading.affordable}
                for reading in self.readings
            ],
            "efficiency": self.efficiency,
            "ambiguity": self.ambiguity,
            "best": self.best.to_json(),
            "gaps": None if self.gaps is None else self.gaps._asdict(),
            "missing": list(self.missing),
            "notes": list(self.notes),
        }


def assess(
    state: ResearchState | str | Path, action: Action | str, *, samples: int = SAMPLES
) -> Assessment:
    """Return what an action is worth in a state.

    Args:
        state: Hypotheses, arms, costs and budget, or the path of the file with them.
        action: An action, or its text: JSON, labelled lines or a sentence.
        samples: Draws for each hypothesis, where normal outcomes need Monte Carlo.

    Raises:
        InputError: The state or its file is wrong, or the text is empty, or names an arm or seeds
            that do not exist.
        BudgetError: Nothing is affordable in this state.
    """
    state = as_state(state)
    notes: tuple[str, ...] = ()
    if isinstance(action, str):
        text, action = action, read_action(state, action)
        notes = remarks(state, text, action)
    best = option(state, best_affordable(state, samples=samples), samples)
    reading_set = readings(state, action)
    known = {design: option(state, design, samples) for design in reading_set}
    lost = None
    if is_enumerable(state):
        lost = gaps(catalogue(state, samples=samples), reading_set, action.target)
    return Assessment(
        readings=tuple(Reading(known[d], fits(state, d)) for d in reading_set),
        efficiency={
            mode: _efficiency(state, known, readings(state, action, mode), best) for mode in MODES
        },
        ambiguity=ambiguity(reading_set),
        best=best,
        gaps=lost,
        missing=missing_words(state, action),
        notes=notes,
    )


def _efficiency(
    state: ResearchState,
    known: dict[Design, Option],
    reading_set: tuple[Design, ...],
    best: Option,
) -> float:
    paid = sum(known[design].efficiency for design in reading_set if fits(state, design))
    return paid / len(reading_set) / best.efficiency if best.gain > NOTHING else 0.0
