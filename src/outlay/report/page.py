"""A report as one HTML file: no script, nothing from elsewhere, and every text escaped."""

from __future__ import annotations

from base64 import b64encode
from html import escape
from typing import TYPE_CHECKING

from outlay.report.blocks import Card, Code, Fold, Image, Picture, Table, Text
from outlay.report.cards import cards
from outlay.report.style import STYLE
from outlay.report.words import printable, spans, status, title

if TYPE_CHECKING:
    from collections.abc import Sequence

    from outlay.report.blocks import Block
    from outlay.report.view import View

# The policy lets a browser load and run nothing at all, should an escape ever be forgotten.
_HEAD = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy"
  content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
"""


def page(view: View) -> str:
    """Return the report of a run as HTML."""
    state = view.state
    question = state.task.question if state.started is not None else ""
    return document(view.run, question, status(state), cards(view))


def document(run: str, heading: str, line: str, content: Sequence[Card]) -> str:
    """Return cards as HTML.

    Args:
        run: Name of the run.
        heading: The question; its first paragraph is shown.
        line: Where the run stands.
        content: What is shown below.
    """
    parts = [
        _HEAD,
        f"<title>{_text(run)} · Outlay</title>\n<style>{STYLE}</style>\n</head>\n<body>\n",
        f'<header><p class="run">{_text(run)}</p>\n<h1>{_rich(title(heading))}</h1>\n',
        f'<p class="status">{_text(line)}</p></header>\n<main>\n',
        *(_card(card) for card in content),
        "</main>\n</body>\n</html>\n",
    ]
    return "".join(parts)


def _text(text: str) -> str:
    return escape(printable(text))


def _rich(text: str) -> str:
    """Return the text with what stands between backticks as code."""
    return "".join(
        f"<code>{_text(piece)}</code>" if code else _text(piece) for piece, code in spans(text)
    )


def _card(card: Card) -> str:
    return f"<section><h2>{_text(card.title)}</h2>\n{_blocks(card.blocks)}</section>\n"


def _blocks(blocks: Sequence[Block]) -> str:
    return "".join(_block(block) for block in blocks)


def _block(block: Block) -> str:
    match block:
        case Text(text=text, tone=tone):
            return f'<p class="{_text(tone)}">{_rich(text)}</p>\n'
        case Code(text=text):
            return f"<pre>{_text(text)}</pre>\n"
        case Table():
            return _table(block)
        case Picture(svg=svg, legend=legend):
            return f'<figure><div class="scroll">{svg}</div>{_legend(legend)}</figure>\n'
        case Image(png=png, alt=alt):
            data = b64encode(png).decode()
            return f'<img src="data:image/png;base64,{data}" alt="{_text(alt)}">\n'
        case Fold(title=title, mark=mark):
            dot = f'<i class="dot {_text(mark)}"></i>' if mark else ""
            line = f"<summary>{dot}{_rich(title)}</summary>"
            return f"<details>{line}{_blocks(block.blocks)}</details>\n"


def _table(table: Table) -> str:
    head = "".join(_cell("th", k, text, table) for k, text in enumerate(table.head))
    rows = "".join(
        f"<tr>{''.join(_cell('td', k, text, table) for k, text in enumerate(row))}</tr>\n"
        for row in table.rows
    )
    return f'<div class="scroll"><table><tr>{head}</tr>\n{rows}</table></div>\n'


def _cell(tag: str, column: int, text: str, table: Table) -> str:
    kind = ' class="n"' if column in table.numeric else ""
    return f"<{tag}{kind}>{_text(text)}</{tag}>"


def _legend(legend: tuple[tuple[str, str], ...]) -> str:
    items = "".join(
        f'<span><i class="dot {_text(mark)}"></i>{_text(meaning)}</span>'
        for mark, meaning in legend
    )
    return f"<figcaption>{items}</figcaption>" if items else ""
