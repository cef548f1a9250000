"""How an instruction reaches a client: on its command line, or in a file if it is too long."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from outlay.agents.clients.contract import Request

PLAN = "PLAN.md"
_LONGEST = 100_000  # bytes; Linux takes 131,072 for one argument


class Instruction(NamedTuple):
    """What to say on the command line, and the files in the client's home that it needs."""

    text: str
    files: dict[str, str]


def whole(request: Request, *, schema: bool) -> str:
    """Return the instruction, free of NUL.

    Args:
        request: What is asked.
        schema: Whether to ask for the answer's form in words, for clients without another way.
    """
    text = request.prompt.replace("\0", "")
    if schema and request.schema:
        text += (
            "\n\nEnd with one message that is a single JSON object, without any other text, valid "
            f"by this JSON schema:\n{request.schema}\n"
        )
    return text


def instruction(request: Request, *, schema: bool = False) -> Instruction:
    """Return the instruction; one that is too long for a command line is left in a file."""
    text = whole(request, schema=schema)
    if len(text.encode("utf-8", "replace")) <= _LONGEST:
        return Instruction(text, {})
    short = f"Your instruction is in the file {request.home}/{PLAN}. Read all of it and follow it."
    return Instruction(short, {PLAN: text})
