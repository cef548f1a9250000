"""What a free text says about a design, what it leaves open, and what of it was not read."""

from __future__ import annotations

import json
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
    from collections.abc import Iterator

    from outlay.designs.readings import Action
    from outlay.designs.states import ResearchState

_WORDS = (
    *("one", "two", "three", "four", "five", "six"),
    *("seven", "eight", "nine", "ten", "eleven", "twelve"),
)
_NUMBER = rf"([0-9]{{1,6}}|{'|'.join(_WORDS)})"
_SEEDS = re.compile(
    rf"\b{_NUMBER}[ -]?(?:random )?seeds?\b|\bseeds? ?[:=] ?{_NUMBER}\b|\bn ?= ?([0-9]{{1,6}})\b"
)
_VERBS = "run|ablate|test|use|try|remove|compare|replicate|do|only|just"
# Where a negation ends: with the sentence, or where another request begins.
_CLAUSE = re.compile(
    r"[;!?\n]|\.(?=\s|$)|\bbut\b|(?:,|\band\b|\bthen\b)\s*(?:and |then |instead |rather ){0,2}"
    rf"(?=(?:{_VERBS})\b)"
)
_NEGATION = re.compile(
    r" (?:not(?! only)|never|cannot|dont|\w+n t|except|instead of|rather than)(?= )"
)
_FIRST_MARK = 0xF0000  # private characters, which no word of a text contains


def read_action(state: ResearchState, text: str) -> Action:
    """Return the action in a text: JSON, labelled lines, or a sentence that names arms and seeds.

    In a sentence, an arm that follows a negation in its clause ("not", "never", "except",
    "instead of", "rather than") is not named by it.

    Raises:
        InputError: The text is empty or too long, is JSON but no object, or names an arm or a
            number of seeds that does not exist.
    """
    answer = final_answer(text)
    if not answer or len(answer) > LONGEST_ANSWER:
        raise InputError(f"action: found {len(answer)} characters, allowed: 1 to {LONGEST_ANSWER}")
    if _is_json(answer):
        return action_from_json(state, json_object(answer))
    fields = labelled(answer)
    if fields:
        return action_from(state, {label: fields[label] for label in LABELS if fields.get(label)})
    return _mentioned(state, answer)


def remarks(state: ResearchState, text: str, action: Action) -> tuple[str, ...]:
    """Return what a reader should know about how a text was read as this action."""
    answer, notes = final_answer(text), []
    if _is_json(answer):
        known = [label.lower() for label in LABELS]
        if unread := [key for key in json_object(answer) if key not in known]:
            notes.append(f"not read: {', '.join(unread)[:200]} (keys are {', '.join(known)})")
    elif not labelled(answer):
        named, negated = _arms_in(state, answer)
        if left := [state.arms[arm] for arm in sorted(negated - named)]:
            notes.append(f"read as negated, so not run: {', '.join(left)}")
    if action.arms is None and action.target is None:
        lacking = "arm or seeds" if action.seeds is None else "arm"
        notes.append(
            f"no {lacking} recognised; read as the component scan (the first one, two and four "
            "arms), which an executor may do with it"
        )
    return tuple(notes)


def _is_json(answer: str) -> bool:
    if answer.startswith("["):
        try:
            json.loads(answer)
        except (ValueError, RecursionError):
            return False  # a sentence that begins with a bracket
        raise InputError(
            "action: found a JSON list, allowed: a JSON object with any of target, arms and seeds"
        )
    return answer.startswith(("{", "```"))


def _mentioned(state: ResearchState, text: str) -> Action:
    arms, _ = _arms_in(state, text)
    found = {"".join(groups) for groups in _SEEDS.findall(text.casefold())}
    numbers = {str(_WORDS.index(n) + 1) if n in _WORDS else n for n in found}
    if len(numbers) > 1:
        raise InputError(f"seeds: found {', '.join(sorted(numbers))}, allowed: one number")
    fields = {"SEEDS": numbers.pop()} if numbers else {}
    if arms:
        fields["ARMS"] = ",".join(state.arms[j] for j in sorted(arms))
    return action_from(state, fields)


def _arms_in(state: ResearchState, text: str) -> tuple[set[int], set[int]]:
    """Return the arms that a text names, and those that it names after a negation."""
    named: set[int] = set()
    negated: set[int] = set()
    for clause in _CLAUSE.split(text.casefold()):
        words = _marked(state, clause)
        negation = _NEGATION.search(words)
        start = negation.end() if negation else len(words)
        named.update(_marks(words[:start]))
        negated.update(_marks(words[start:]))
    across = set(_marks(_marked(state, text)))  # names that hold what ends a clause
    return named | (across - negated), negated


def _marked(state: ResearchState, text: str) -> str:
    """Return the plain words of a text with each arm's name, the longest first, as one mark."""
    words = f" {_plain(text)} "
    names = [(_plain(name), arm) for arm, name in enumerate(state.arms)]
    for name, arm in sorted(names, key=lambda pair: -len(pair[0])):
        if name:
            words = words.replace(f" {name} ", f" {chr(_FIRST_MARK + arm)} ")
    return words


def _marks(words: str) -> Iterator[int]:
    return (ord(word) - _FIRST_MARK for word in words.split() if word >= chr(_FIRST_MARK))


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
