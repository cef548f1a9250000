"""Research scenarios from published ablations: what a judge sees, and what is kept apart."""

from __future__ import annotations

import tomllib
from importlib.resources import files
from typing import TYPE_CHECKING, Literal

import msgspec

from outlay.bench.designs.panel import identity
from outlay.designs.states import ResearchState, paper_limit
from outlay.errors import InputError

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

Field = Literal["machine learning", "systems", "AI for science"]
MECHANISMS = 6
_BUDGETS = (4, 6, 8)


class Source(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where the facts stand; never shown to a judge.

    Attributes:
        title: Title of the paper.
        id: `doi:...` or `arXiv:...`.
        observation_at: Section, table or figure of the observation that is shown.
        conclusion_at: Section, table or figure of what the paper found.
        conclusion: What it found.
    """

    title: str
    id: str
    observation_at: str
    conclusion_at: str
    conclusion: str


class Assumptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What this project assumes; not estimates from the source.

    Attributes:
        prior: Probability of each mechanism.
        budget: In the paper's cost units: 4, 6 or 8.
    """

    prior: tuple[float, ...]
    budget: int


class Mechanism(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A possible explanation and the intervention that would remove it.

    Attributes:
        arm: Short name of the intervention.
        mechanism: The explanation, in words.
        intervention: What would be done; no outcome of it has been measured here.
    """

    arm: str
    mechanism: str
    intervention: str


class Scenario(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One decision: which experiment comes next.

    Attributes:
        name: Name of its file.
        field: Field of research.
        question: What is asked.
        baseline: What is compared with.
        observation: What is known so far, from the source.
        mechanisms: Six explanations with their interventions.
        source: Where the facts stand.
        assumptions: Prior and budget.
    """

    name: str
    field: Field
    question: str
    baseline: str
    observation: str
    mechanisms: tuple[Mechanism, ...]
    source: Source
    assumptions: Assumptions

    @property
    def state(self) -> ResearchState:
        """The scenario as a research state with the paper's cost rule."""
        return ResearchState(
            hypotheses=tuple(m.mechanism for m in self.mechanisms),
            prior=self.assumptions.prior,
            arms=tuple(m.arm for m in self.mechanisms),
            signatures=identity(len(self.mechanisms)),
            limits=(paper_limit(self.assumptions.budget),),
            question=self.question,
            observations=(self.baseline, self.observation),
        )


def scenarios() -> tuple[Scenario, ...]:
    """Return the scenarios that are shipped, by name."""
    folder = files("outlay.bench.designs") / "scenarios"
    found = [read_scenario(entry) for entry in folder.iterdir() if entry.name.endswith(".toml")]
    return tuple(sorted(found, key=lambda scenario: scenario.name))


def read_scenario(file: Traversable) -> Scenario:
    """Return the scenario in a TOML file.

    Raises:
        InputError: The file is wrong; the message names it and what is allowed.
    """
    name = file.name.removesuffix(".toml")
    try:
        data = tomllib.loads(file.read_text(encoding="utf-8"))
        scenario = msgspec.convert({"name": name, **data}, Scenario)
        _check(scenario)
    except (ValueError, msgspec.ValidationError, InputError) as error:
        raise InputError(f"{file.name}: {error}") from error
    return scenario


def _check(scenario: Scenario) -> None:
    if len(scenario.mechanisms) != MECHANISMS:
        raise InputError(f"mechanisms: found {len(scenario.mechanisms)}, allowed: {MECHANISMS}")
    if scenario.assumptions.budget not in _BUDGETS:
        raise InputError(f"budget: found {scenario.assumptions.budget}, allowed: 4, 6 or 8")
    if not scenario.source.id.startswith(("doi:10.", "arXiv:")):
        raise InputError(f"source.id: found {scenario.source.id!r}, allowed: doi:10... or arXiv:")
    if not (scenario.source.observation_at and scenario.source.conclusion_at):
        raise InputError("source: the observation and the conclusion need a place")
    _ = scenario.state  # raises for a wrong prior or repeated names
