"""Asks models to rank the four candidates, each in every position once."""

from __future__ import annotations

import json
from itertools import permutations, product
from typing import TYPE_CHECKING, Any

from outlay.bench.designs.archive import answer_text
from outlay.bench.designs.collection import request_body
from outlay.bench.designs.gathering import Chain

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from outlay.bench.designs.archive import Exchange
    from outlay.bench.designs.candidates import Candidate
    from outlay.bench.designs.collection import Setting
    from outlay.bench.designs.scenarios import Scenario

LETTERS = "ABCD"
POSITIONS = len(LETTERS)
_MOST_TOKENS = 64


def spellings() -> dict[str, tuple[float, ...]]:
    """Return the 192 accepted rankings with the ranks of A to D, ties averaged.

    A ranking names each letter once, best first, with `>` between better and worse and `=` between
    equals: 4! orders times 2^3 signs, which spell 75 weak orders.
    """
    found = {}
    for order in permutations(LETTERS):
        for signs in product(">=", repeat=POSITIONS - 1):
            text = order[0] + "".join(s + c for s, c in zip(signs, order[1:], strict=True))
            found[text] = _ranks(text)
    return found


def _ranks(text: str) -> tuple[float, ...]:
    ranks: dict[str, float] = {}
    for group in text.split(">"):
        letters = group.split("=")
        middle = len(ranks) + (len(letters) + 1) / 2
        ranks |= dict.fromkeys(letters, middle)
    return tuple(ranks[letter] for letter in LETTERS)


_SPELLINGS = spellings()


def ranking_prompt(scenario: Scenario, shown: Sequence[Candidate]) -> str:
    """Return the question with four proposals in the order shown; no source, no label."""
    budget = (
        f"Budget: {scenario.assumptions.budget} units. A design costs 1 + 0.6 for each arm + 0.35 "
        "for each seed; what costs more than the budget is worth nothing."
    )
    task = (
        "Rank them by how much they would tell for their cost, best first. Write each letter "
        "once, with > between better and worse and = between equals, such as B>A=D>C. Answer with "
        'one JSON object: {"ranking": "..."}'
    )
    lines = [
        f"Question: {scenario.question}",
        f"Baseline: {scenario.baseline}",
        f"Known: {scenario.observation}",
        "Possible explanations:",
        *(f"- {m.mechanism} (test: {m.intervention})" for m in scenario.mechanisms),
        budget,
        "Four proposals for the next experiment:",
        *(f"{letter}. {c.text}" for letter, c in zip(LETTERS, shown, strict=True)),
        task,
    ]
    return "\n".join(lines)


def rotated(place: int, rotation: int) -> int:
    """Return which candidate stands at a place (0 to 3) under a cyclic rotation (0 to 3)."""
    return (place + rotation) % POSITIONS


def ranking_name(setting: Setting, scenario: Scenario, rotation: int) -> str:
    """Return the id of a ranking request in the archive."""
    return f"{setting.name}/rank/{scenario.name}/p{rotation}"


def ranking_chains(
    setting: Setting, pairs: Sequence[tuple[Scenario, tuple[Candidate, ...]]]
) -> tuple[Chain, ...]:
    """Return one request for each scenario and rotation, its output held to the 192 spellings."""

    def chain(scenario: Scenario, shown: list[Candidate], rotation: int) -> Chain:
        def body(_: int, __: dict[str, Exchange]) -> dict[str, Any]:
            request = request_body(setting, ranking_prompt(scenario, shown))
            return {"response_format": _constraint(), **request, "max_tokens": _MOST_TOKENS}

        return Chain((ranking_name(setting, scenario, rotation),), body)

    return tuple(
        chain(scenario, [four[rotated(p, rotation)] for p in range(POSITIONS)], rotation)
        for scenario, four in pairs
        for rotation in range(POSITIONS)
    )


def _constraint() -> dict[str, Any]:
    """Return the JSON schema that allows every spelling and nothing else."""
    schema = {
        "type": "object",
        "properties": {"ranking": {"type": "string", "enum": list(_SPELLINGS)}},
        "required": ["ranking"],
        "additionalProperties": False,
    }
    return {
        "type": "json_schema",
        "json_schema": {"name": "ranking", "strict": True, "schema": schema},
    }


def parse_ranking(answer: str) -> tuple[float, ...] | None:
    """Return the ranks of A to D (1 is best), `None` if the answer is no accepted ranking.

    The answer is one of the spellings, plain or in `{"ranking": ...}`.
    """
    text = answer[:200].strip()
    if text.startswith("{"):
        try:
            data = json.loads(text)
        except (ValueError, RecursionError):
            return None
        text = str(data.get("ranking")) if isinstance(data, dict) else ""
    return _SPELLINGS.get(text.replace(" ", ""))


def mean_ranks(
    setting: Setting, scenario: Scenario, archive: Mapping[str, Exchange]
) -> tuple[float, ...] | None:
    """Return the candidates' ranks averaged over the four rotations.

    `None` if a reply is missing or invalid: a position that is left out would bring back the order
    effect that the rotations cancel.
    """
    total = [0.0] * POSITIONS
    for rotation in range(POSITIONS):
        found = archive.get(ranking_name(setting, scenario, rotation))
        ranks = None if found is None else parse_ranking(answer_text(found.reply))
        if ranks is None:
            return None
        for place, rank in enumerate(ranks):
            total[rotated(place, rotation)] += rank / POSITIONS
    return tuple(total)
