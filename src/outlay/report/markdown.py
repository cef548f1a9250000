"""A report as Markdown. Text from tasks, programs and agents cannot become markup in it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from outlay.report.blocks import Card, Code, Fold, Image, Picture, Table, Text
from outlay.report.cards import cards
from outlay.report.words import printable, spans, status, title

if TYPE_CHECKING:
    from collections.abc import Sequence

    from outlay.report.blocks import Block
    from outlay.report.view import View

_MARKUP = re.compile(r"([\\`*_{}\[\]<>#|~&!$@])")


def markdown(view: View) -> str:
    """Return the report of a run as Markdown."""
    state = view.state
    question = state.task.question if state.started is not None else view.run
    return document(view.run, question, status(state), cards(view))


def document(run: str, heading: str, line: str, content: Sequence[Card]) -> str:
    """Return cards as Markdown; see `outlay.report.page.document`."""
    parts = [
        f"# {rich(title(heading))}",
        f"Run {plain(run)}, {plain(line)}",
        *(_card(card) for card in content),
    ]
    return "\n\n".join(parts) + "\n"


def plain(text: str) -> str:
    """Return the text on one line, shown by any Markdown reader as it is."""
    return _escaped(" ".join(printable(text).split()))


def rich(text: str) -> str:
    """Return the text like `plain`, with what stands between backticks as code."""
    pieces = spans(" ".join(printable(text).split()))
    return "".join(f"`{piece}`" if code else _escaped(piece) for piece, code in pieces)


def _escaped(text: str) -> str:
    """Return the piece of a line with all markup escaped."""
    return _MARKUP.sub(r"\\\1", text)


def fenced(text: str) -> str:
    """Return the text as a code block, with a fence longer than any run of backticks in it."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{printable(text).rstrip()}\n{fence}"


def _card(card: Card) -> str:
    return "\n\n".join([f"## {plain(card.title)}", *_blocks(card.blocks)])


def _blocks(blocks: Sequence[Block]) -> list[str]:
    out: list[str] = []
    for block in blocks:
        match block:
            case Text(text=text, tone=tone):
                out.append(f"**{plain(text)}**" if tone in ("lead", "bad") else rich(text))
            case Code(text=text):
                out.append(fenced(text))
            case Table():
                out.append(_table(block))
            case Image(file=file, alt=alt):
                out.append(f"![{plain(alt)}]({file})")
            case Picture(instead=instead):
                out += _blocks([instead])
            case Fold(title=title, important=important):
                out.append(f"### {rich(title)}" if important else f"- {rich(title)}")
                out += _blocks(block.blocks) if important else []
    return out


def _table(table: Table) -> str:
    rules = ["---:" if k in table.numeric else "---" for k in range(len(table.head))]
    rows = [table.head, *table.rows]
    lines = [f"| {' | '.join(plain(cell) for cell in row)} |" for row in rows]
    return "\n".join([lines[0], f"| {' | '.join(rules)} |", *lines[1:]])
