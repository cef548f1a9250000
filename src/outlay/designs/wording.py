"""What a free text says about a design, and what it leaves open."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from outlay.designs.parsing import (
    LABELS,
    LONGEST_ANSWER,
    action_from,
    action_from_json,
    final_answer,
    json_object,
    labelled,
)
from outlay.errors import InputError

if TYPE_CHECKING:
    from outlay.designs.readings import Action
    from outlay.designs.states import ResearchState

_SEEDS = re.compile(r"\b([0-9]{1,6})[ -]?(?:random )?seeds?\b|\bseeds? ?[:=] ?([0-9]{1,6})\b")


def read_action(state: ResearchState, text: str) -> Action:
    """Return the action in a text: JSON, labelled lines, or a sentence that names arms and seeds.

    Raises:
        InputError: The text is empty or too long, or names an arm or a number of seeds that does
            not exist.
    """
    answer = final_answer(text)
    if not answer or len(answer) > LONGEST_ANSWER:
        raise InputError(f"action: found {len(answer)} characters, allowed: 1 to {LONGEST_ANSWER}")
    if answer.startswith(("{", "```")):
        return action_from_json(state, json_object(answer))
    fields = labelled(answer)
    if fields:
        return action_from(state, {label: fields[label] for label in LABELS if fields.get(label)})
    return _mentioned(state, answer)


def _mentioned(state: ResearchState, text: str) -> Action:
    words = f" {_plain(text)} "
    arms = tuple(j for j, name in enumerate(state.arms) if f" {_plain(name)} " in words)
    numbers = {first or second for first, second in _SEEDS.findall(text.casefold())}
    if len(numbers) > 1:
        raise InputError(f"seeds: found {', '.join(sorted(numbers))}, allowed: one number")
    fields = {"SEEDS": numbers.pop()} if numbers else {}
    return action_from(
        state, fields | ({"ARMS": ",".join(state.arms[j] for j in arms)} if arms else {})
    )


def _plain(text: str) -> str:
    return " ".join(re.findall(r"[^\W_]+", text.casefold()))


def missing_words(state: ResearchState, action: Action) -> tuple[str, ...]:
    """Return what to add to an action so that only one design can be read into it."""
    low, high = state.seeds
    wanted = []
    if action.arms is None:
        wanted.append(f"name the arms to run, such as `ARMS: {state.arms[0]}`")
    if action.seeds is None:
        wanted.append(f"state the seeds for each condition ({low} to {high}), such as `SEEDS: 5`")
    return tuple(wanted)
