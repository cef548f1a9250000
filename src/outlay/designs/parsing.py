"""Strict parsers: the final answer of a reply gives an action, or a reason why it does not."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, NamedTuple

from outlay.designs.interfaces import ACTION_NAMES
from outlay.designs.readings import Action
from outlay.errors import InputError

if TYPE_CHECKING:
    from outlay.designs.interfaces import Interface
    from outlay.designs.states import ResearchState

LONGEST_ANSWER = 100_000
"""Characters of a final answer that are read; a longer one is invalid."""

LABELS = ("ACTION", "TARGET", "ARMS", "SEEDS", "CRITERION", "PREDICTION", "REASON")
_REQUIRED: dict[Interface, tuple[str, ...]] = {
    "L1": ("ACTION",),
    "L1_padded": ("ACTION",),
    "L2": ("TARGET",),
    "L4": ("TARGET", "ARMS", "SEEDS", "CRITERION", "PREDICTION"),
}
_COMPLETE = ("TARGET", "ARMS", "SEEDS", "CRITERION")
_MARKUP = "*_`#> \t-"
# The greedy head makes one match of it, from the end of the reply backwards.
_UP_TO_FINAL = re.compile(r"(?s:.*)^[*_`#> \t-]{0,8}FINAL[*_`: \t\r]{0,8}$", re.MULTILINE)


class Parsed(NamedTuple):
    """What a reply says: an action, or the reason why it is invalid.

    Attributes:
        action: `None` if the reply is invalid.
        problem: Empty if it is valid.
    """

    action: Action | None
    problem: str = ""


def parse_reply(interface: Interface, state: ResearchState, reply: str) -> Parsed:
    """Return the action in the final answer of a reply; never raises, in linear time.

    The final answer is what follows the last line that holds only `FINAL`, else the whole reply.
    Fields that an interface does not ask for are not read: the reason of an L1 answer may discuss
    arms and seeds without changing its score.

    Args:
        interface: What was asked for.
        state: Its arms and seeds are those allowed.
        reply: The answer's text, of any content and length; not a reasoning trace.
    """
    answer = final_answer(reply)
    if not answer:
        return Parsed(None, "the answer is empty")
    if len(answer) > LONGEST_ANSWER:
        return Parsed(None, f"the answer has {len(answer)} characters, more than {LONGEST_ANSWER}")
    try:
        if interface == "json":
            return Parsed(_from_json(state, answer))
        fields = labelled(answer)
        required = _REQUIRED.get(interface, _COMPLETE)
        for label in required:
            if not fields.get(label):
                return Parsed(None, f"{label} is missing")
        return Parsed(action_from(state, {label: fields[label] for label in required}))
    except InputError as error:
        return Parsed(None, str(error))


def final_answer(reply: str) -> str:
    """Return what follows the last line that holds only `FINAL`, else all of it, stripped."""
    found = _UP_TO_FINAL.match(reply)
    return reply[found.end() if found else 0 :].strip()


def labelled(answer: str) -> dict[str, str]:
    """Return the values of `LABEL: value` lines; a value ends at the next labelled line.

    Raises:
        InputError: A label stands twice with different values.
    """
    found: dict[str, list[str]] = {}
    current: list[str] | None = None
    for line in answer.splitlines():
        label, value = _split(line)
        if label:
            current = [value]
            if label in found and found[label] != current:
                raise InputError(f"{label} is given twice")
            found[label] = current
        elif current is not None and line.strip():
            current.append(line.strip())
    return {label: " ".join(lines).strip() for label, lines in found.items()}


def _split(line: str) -> tuple[str, str]:
    """Return the label and the value of a line, or an empty label."""
    head, colon, _ = line[:40].partition(":")
    label = head.strip(_MARKUP).upper()
    if not colon or label not in LABELS:
        return "", ""
    return label, line[len(head) + 1 :].strip(_MARKUP)


def action_from(state: ResearchState, fields: dict[str, str]) -> Action:
    """Return the action that labelled fields describe.

    Raises:
        InputError: An action, arm or number of seeds that does not exist in the state.
    """
    arms = fields.get("ARMS")
    return Action(
        name=_name(fields.get("ACTION", ACTION_NAMES[0])),
        target=_arm(state, fields["TARGET"]) if "TARGET" in fields else None,
        arms=None if arms is None else _arms(state, arms.strip("[]()").split(",")),
        seeds=_seeds(state, fields["SEEDS"]) if "SEEDS" in fields else None,
        criterion=fields.get("CRITERION"),
        prediction=fields.get("PREDICTION"),
    )


def _from_json(state: ResearchState, answer: str) -> Action:
    data = json_object(answer)
    missing = [key for key in ("target", "arms", "seeds") if key not in data]
    if missing:
        raise InputError(f"{missing[0]} is missing")
    return action_from_json(state, data)


def json_object(answer: str) -> dict[str, object]:
    """Return the one JSON object that an answer is, a code fence around it allowed.

    Raises:
        InputError: The answer is something else.
    """
    if answer.startswith("```"):
        answer = answer.removeprefix("```json").removeprefix("```").strip().removesuffix("```")
    try:
        data = json.loads(answer)
    except (ValueError, RecursionError):
        raise InputError("the answer is not one JSON object") from None
    if not isinstance(data, dict):
        raise InputError("the answer is not one JSON object")
    return data


def action_from_json(state: ResearchState, data: dict[str, object]) -> Action:
    """Return the action in a JSON object with any of the keys target, arms and seeds.

    Raises:
        InputError: A value of another type, or one that does not exist in the state.
    """
    target, arms, seeds = data.get("target"), data.get("arms"), data.get("seeds")
    if arms is not None and not isinstance(arms, list):
        raise InputError(f"arms: found {_shown(arms)}, allowed: a list of arms")
    if seeds is not None and (isinstance(seeds, bool) or not isinstance(seeds, int)):
        raise InputError(f"seeds: found {_shown(seeds)}, allowed: a whole number")
    return Action(
        name=_name(data.get("action", ACTION_NAMES[0])),
        target=None if target is None else _arm(state, target),
        arms=None if arms is None else _arms(state, arms),
        seeds=None if seeds is None else _in_range(state, seeds),
    )


def _name(value: object) -> str:
    name = str(value).strip(_MARKUP + ".").lower() if isinstance(value, str) else ""
    if name not in ACTION_NAMES:
        raise InputError(f"action: found {_shown(value)}, allowed: {', '.join(ACTION_NAMES)}")
    return name


def _arm(state: ResearchState, value: object) -> int:
    if isinstance(value, str):
        wanted = value.strip(" \t.`*\"'").casefold()
        for index, name in enumerate(state.arms):
            if name.casefold() == wanted:
                return index
    raise InputError(f"arm: found {_shown(value)}, allowed: {', '.join(state.arms)}")


def _arms(state: ResearchState, values: list[str] | list[object]) -> tuple[int, ...]:
    indices = [_arm(state, value) for value in values[: len(state.arms) + 1]]
    if not indices or len(set(indices)) != len(indices):
        raise InputError("arms: allowed: one or more, each once")
    return tuple(sorted(indices))


def _seeds(state: ResearchState, text: str) -> int:
    digits = text.strip(" .")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 6):
        raise InputError(f"seeds: found {_shown(text)}, allowed: a whole number")
    return _in_range(state, int(digits))


def _in_range(state: ResearchState, seeds: int) -> int:
    low, high = state.seeds
    if not low <= seeds <= high:
        shown = seeds if abs(seeds) < 10**9 else "a very large number"
        raise InputError(f"seeds: found {shown}, allowed: {low} to {high}")
    return seeds


def _shown(value: object) -> str:
    text = repr(value[:80]) if isinstance(value, str) else type(value).__name__
    return text if len(text) <= 90 else text[:87] + "..."
