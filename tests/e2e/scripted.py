"""A model that drafts plans and carries them out, for whole searches with any client.

A plan has a line `Set the level to X.`; carrying it out writes X into level.txt.
"""

from __future__ import annotations

import json
import re
from itertools import count
from typing import TYPE_CHECKING, Any

from tests.model_server import Turn

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.model_protocols import Asked

LEVELS = ("0.5", "0.0", "0.4", "0.6", "0.55", "0.45", "0.52", "0.48")
"""What its revisions try, in this order; 0.6 is the best there is and 0.0 is far below."""

_SCHEMA = re.compile(r"valid by this JSON schema:\n(\{.*\})")
_LINE = re.compile(r"Set the level to\s([0-9.]+)\.")


def researcher(designs: Sequence[dict[str, Any]] = ()) -> Callable[[Asked], Turn]:
    """Return a script of one run: a first plan, then revisions, each of them carried out.

    Args:
        designs: What its revisions name where they may name one, in this order; then none.
    """
    numbers, left = count(), iter(designs)

    def script(asked: Asked) -> Turn:
        form = asked.schema or _form(asked.prompt)
        if form is not None:
            answer = _answer(form, numbers)
            if "children" in answer and "design" in form["$defs"]["child"]["properties"]:
                for child in answer["children"]:
                    child["design"] = next(left, None)
            return Turn(answer=answer, text=json.dumps(answer))
        level = _LINE.search(asked.prompt)
        if asked.results or level is None:
            return Turn(text=f"I have set the level; it is plan {asked.number}.")
        return Turn(shell=f"printf {level[1]} > level.txt")

    return script


def _form(prompt: str) -> dict[str, Any] | None:
    found = _SCHEMA.search(prompt)
    return json.loads(found[1]) if found else None


def _answer(form: dict[str, Any], numbers: count[int]) -> dict[str, Any]:
    if "children" not in form["properties"]:
        return {
            "title": "The level",
            "hypothesis": "A higher level helps.",
            "approach": ["Set the level to 0.3."],
        }
    children = form["properties"]["children"]
    edit = form["$defs"]["child"]["properties"]["edits"]["items"]
    line = next(one for one in edit["properties"]["search"]["enum"] if _LINE.search(one))
    levels = [LEVELS[next(numbers) % len(LEVELS)] for _ in range(children["maxItems"])]
    return {"children": [_child(line, level) for level in levels]}


def _child(line: str, level: str) -> dict[str, Any]:
    return {
        "hypothesis": f"Level {level} is better.",
        "edits": [{"search": line, "replace": f"Set the level to {level}."}],
        "changes": f"Level {level}.",
        "axis": "level",
        "direction": f"to-{level.replace('.', '-')}",
        "chance": 50,
        "rationale": "Nobody knows.",
        "risks": "It may be too much.",
    }
