"""What a report is made of, whatever it is written as. All text in here is plain and untrusted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """One paragraph; `tone` says how it is to be taken."""

    text: str
    tone: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Code:
    """Text as a program printed it."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows of cells; `numeric` holds the columns that are set to the right."""

    head: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    numeric: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """A drawing, with what stands in its place where none can be shown.

    Attributes:
        svg: Markup made by `outlay.report.svg`, every text in it escaped.
        instead: The same content as text.
        legend: Pairs (class of the mark, its meaning).
    """

    svg: str
    instead: Block
    legend: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """A picture in a file beside the report, and its bytes for reports that hold all in one."""

    file: str
    png: bytes
    alt: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fold:
    """Details under a line; `important` ones are written out where nothing can be folded."""

    title: str
    blocks: Sequence[Block]
    mark: str = ""
    important: bool = False


Block = Text | Code | Table | Picture | Image | Fold


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """One analysis: its title and what it found, or why it does not apply."""

    title: str
    blocks: Sequence[Block] = ()
