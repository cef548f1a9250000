"""Scores of archived replies: no call is made, so they can be computed again at any time."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from outlay.bench.designs.archive import answer_text
from outlay.bench.designs.collection import Item, Setting, identity, turns
from outlay.designs.catalogue import fits
from outlay.designs.parsing import parse_reply
from outlay.designs.readings import ambiguity, readings
from outlay.designs.scores import Gaps, efficiency, gaps

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from outlay.bench.designs.archive import Exchange
    from outlay.designs.catalogue import Catalogue
    from outlay.designs.interfaces import Interface
    from outlay.designs.readings import Mode


class Scored(NamedTuple):
    """One final answer with its score.

    Attributes:
        setting: Name of the setting.
        item: Interface, state and repetition.
        efficiency: Affordable efficiency, 0 to 1; 0 if the answer is invalid.
        problem: Why it is invalid, else empty.
        readings: Size of its reading set, 0 if invalid.
        feasible: Share of its readings within the budget, 0 if invalid.
        ambiguity: Its ambiguity index; `None` if invalid.
        gaps: Where information was lost; `None` if invalid.
        request_sha256: Of the final request.
        reply_sha256: Of the final reply.
    """

    setting: str
    item: Item
    efficiency: float
    problem: str
    readings: int
    feasible: float
    ambiguity: float | None
    gaps: Gaps | None
    request_sha256: str
    reply_sha256: str


def score_archive(
    setting: Setting,
    plan: Sequence[Item],
    archive: Mapping[str, Exchange],
    tables: Sequence[Catalogue],
    mode: Mode = "default",
) -> tuple[Scored, ...]:
    """Return the scores of the items whose final answer is in the archive.

    Args:
        setting: The model.
        plan: Items, in the order wanted.
        archive: Exchanges by id.
        tables: All designs of each state, by the state's number.
        mode: How the executor completes what is left open.
    """
    found = []
    for item in plan:
        final = archive.get(identity(setting, item, turns(item.interface) - 1))
        if final is not None:
            found.append(_score(setting, item, final, tables[item.state], mode))
    return tuple(found)


def _score(setting: Setting, item: Item, final: Exchange, table: Catalogue, mode: Mode) -> Scored:
    action, problem = parse_reply(item.interface, table.state, answer_text(final.reply))
    sums = final.request_sha256, final.reply_sha256
    if action is None:
        return Scored(setting.name, item, 0.0, problem, 0, 0.0, None, None, *sums)
    chosen = readings(table.state, action, mode)
    feasible = sum(fits(table.state, design) for design in chosen) / len(chosen)
    return Scored(
        setting.name,
        item,
        efficiency(table, chosen),
        "",
        len(chosen),
        feasible,
        ambiguity(chosen),
        gaps(table, chosen, action.target),
        *sums,
    )


def score_matrix(
    scores: Sequence[Scored], interface: Interface, states: int, repetitions: int
) -> NDArray[np.float64]:
    """Return the efficiencies of one setting and interface, shape (states, repetitions).

    What has not been collected is `nan`: a missing reply is never a zero.
    """
    matrix = np.full((states, repetitions), np.nan)
    for scored in scores:
        if scored.item.interface == interface:
            matrix[scored.item.state, scored.item.repetition] = scored.efficiency
    return matrix
