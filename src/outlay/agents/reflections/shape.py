"""The JSON schema of an answer.

Constrained decoding makes even a small model's answer valid and sure to end: every string is
bounded, an edit picks one of the plan's own lines, and numbers are whole. It stays within what
strict modes allow: all properties required, no others, no recursion.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from outlay.agents.reflections.texts import editable_lines

if TYPE_CHECKING:
    from outlay.agents.reflections.asking import Ask
    from outlay.designs.states import ResearchState

EDITS = 4
"""Edits of one child, at most."""

LINES = 24
"""Lines of a first plan, at most."""

SLUG = "^[a-z0-9-]{1,40}$"

_ENUM_CHARACTERS = 12_000
_TITLE = 80


class Bounds(NamedTuple):
    """How much a question and its answer may hold.

    Attributes:
        question: Characters of the question, at least 6,000; four are about one token.
        edits: Edits of one child.
        lines: Lines of a first plan.
        line: Characters that take the place of a line, or of a line of a first plan.
        sentence: Characters of every other text.
    """

    question: int = 40_000
    edits: int = EDITS
    lines: int = LINES
    line: int = 300
    sentence: int = 240


ROOMY = Bounds()
TERSE = Bounds(question=6_000, edits=1, lines=8, line=80, sentence=50)
"""For a small local model, which fills what it may fill and is slow at it."""


def schema(ask: Ask, bounds: Bounds = ROOMY) -> str:
    """Return the schema of the answer as JSON text."""
    if not ask.plan:
        return json.dumps(_root(bounds))
    children = {
        "type": "array",
        "items": {"$ref": "#/$defs/child"},
        "minItems": 1,
        "maxItems": ask.asked,
    }
    whole = _object({"children": children})
    return json.dumps({**whole, "$defs": {"child": _child(ask, bounds)}}, ensure_ascii=False)


def _child(ask: Ask, bounds: Bounds) -> dict[str, Any]:
    edit = _object({"search": _search(ask.plan, bounds.line), "replace": _text(bounds.line)})
    sentence = _said(bounds.sentence)
    fields: dict[str, Any] = {
        "hypothesis": sentence,
        "edits": {"type": "array", "items": edit, "minItems": 1, "maxItems": bounds.edits},
        "changes": sentence,
        "axis": _slug(),
        "direction": _slug(),
        "chance": {"type": "integer", "minimum": 1, "maximum": 99},
        "rationale": sentence,
        "risks": sentence,
    }
    if ask.hypotheses is not None:
        fields["design"] = _design(ask.hypotheses)
    return _object(fields)


def _search(plan: str, most: int) -> dict[str, Any]:
    """Return the choice among the plan's lines, free text where there is none to choose from."""
    lines: list[str] = []
    room = _ENUM_CHARACTERS
    for line in editable_lines(plan):
        room -= len(line)
        if room >= 0:
            lines.append(line)
    return {"type": "string", "enum": lines} if lines else _text(most)


def _design(hypotheses: ResearchState) -> dict[str, Any]:
    low, high = hypotheses.seeds
    arms = {
        "type": "array",
        "items": {"type": "string", "enum": list(hypotheses.arms)},
        "minItems": 1,
        "maxItems": len(hypotheses.arms),
    }
    seeds = {"type": "integer", "minimum": low, "maximum": high}
    return {"anyOf": [_object({"arms": arms, "seeds": seeds}), {"type": "null"}]}


def _slug() -> dict[str, Any]:
    return {"anyOf": [{"type": "string", "pattern": SLUG}, {"type": "null"}]}


def _text(most: int) -> dict[str, Any]:
    return {"type": "string", "maxLength": most}


def _said(most: int) -> dict[str, Any]:
    return {**_text(most), "minLength": 1}


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _root(bounds: Bounds) -> dict[str, Any]:
    lines = _said(bounds.line)
    approach = {"type": "array", "items": lines, "minItems": 1, "maxItems": bounds.lines}
    fields = {"title": _said(_TITLE), "hypothesis": _said(bounds.sentence), "approach": approach}
    return _object(fields)
