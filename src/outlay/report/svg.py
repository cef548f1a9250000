"""Drawings as SVG markup. Colours come from the page's style, so that they follow light and dark.

Outlines and interval bars are laid out in CSS pixels and percentages and have no `viewBox`: they
keep their letter size on a phone.
"""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

WIDTH, HEIGHT = 460, 260
_LEFT, _RIGHT, _TOP, _BOTTOM = 54, 10, 12, 38
_ROW = 22
_BAR_ROW = 40
_LETTER = 7.3
_NO_SPAN = 1e-290  # the power of ten of a narrower range is no number any more


class Line(NamedTuple):
    """One row of an outline: what its mark says, its texts, and how far in it stands."""

    mark: str
    name: str
    value: str
    text: str
    indent: int


class Bar(NamedTuple):
    """An estimate with its interval."""

    label: str
    note: str
    mean: float
    low: float
    high: float
    mark: str


class Dot(NamedTuple):
    """One attempt of a curve; `y` is `None` for a failure."""

    y: float | None
    mark: str
    title: str


class Level(NamedTuple):
    """A stretch of a curve at one height, with its interval where there is one."""

    start: int
    end: int
    y: float
    low: float | None = None
    high: float | None = None


def outline(lines: Sequence[Line]) -> str:
    """Return the tree as indented rows with elbows to their parents."""
    deepest = max((line.indent for line in lines), default=0)
    step = min(18.0, max(5.0, 170 / max(deepest, 1)))
    parts: list[str] = []
    above: dict[int, int] = {}
    width = 0.0
    for k, line in enumerate(lines):
        x, y = 9 + line.indent * step, k * _ROW + _ROW / 2
        if line.indent:
            up = above[line.indent - 1] * _ROW + _ROW / 2
            parts.append(
                f'<path class="edge" d="M{x - step:.1f} {up + 5:.0f}V{y:.0f}H{x - 5:.1f}"/>'
            )
        above[line.indent] = k
        parts.append(_outline_row(line, x, y))
        width = max(width, x + 12 + _LETTER * len(line.name + line.value + line.text) + 18)
    return (
        f'<svg class="rows" style="min-width:{width:.0f}px" width="100%" '
        f'height="{len(lines) * _ROW}" role="img" aria-label="plan tree">{"".join(parts)}</svg>'
    )


def _outline_row(line: Line, x: float, y: float) -> str:
    return (
        f'<circle class="{escape(line.mark)}" cx="{x:.1f}" cy="{y:.0f}" r="5"/>'
        f'<text class="{escape(line.mark)}" x="{x + 12:.1f}" y="{y + 4:.0f}">'
        f'<tspan class="name">{escape(line.name)}</tspan>'
        f'<tspan class="value" dx="6">{escape(line.value)}</tspan>'
        f'<tspan dx="6">{escape(line.text)}</tspan></text>'
    )


def bars(found: Sequence[Bar], label: str = "effects") -> str:
    """Return the estimates with their intervals on a common axis that includes 0, with numbers.

    Args:
        found: One row each.
        label: What is shown, for who cannot see it.
    """
    low = min([0.0, *(bar.low for bar in found)])
    high = max([0.0, *(bar.high for bar in found)])
    span = high - low if high - low > _NO_SPAN else 1.0

    def place(value: float) -> str:
        return f"{2 + 96 * (value - low) / span:.2f}%"

    foot = len(found) * _BAR_ROW
    height = foot + 18
    zero = place(0.0)
    parts = [
        f'<line class="grid" x1="{place(tick)}" x2="{place(tick)}" y1="0" y2="{foot}"/>'
        f'<text class="tick" x="{place(tick)}" y="{foot + 14}" text-anchor="middle">'
        f"{tick + 0.0:.6g}</text>"
        for tick in ticks(low, low + span, 6)
    ]
    for k, bar in enumerate(found):
        y, mark = k * _BAR_ROW + 28, escape(bar.mark)
        parts.append(
            f'<text x="0" y="{y - 13}"><tspan class="name">{escape(bar.label)}</tspan>'
            f'<tspan dx="8">{escape(bar.note)}</tspan></text>'
            f'<line class="axis" x1="{zero}" x2="{zero}" y1="{y - 8}" y2="{y + 8}"/>'
            f'<line class="whisker {mark}" x1="{place(bar.low)}" x2="{place(bar.high)}" '
            f'y1="{y}" y2="{y}"/><circle class="{mark}" cx="{place(bar.mean)}" cy="{y}" r="5"/>'
        )
    letters = max((len(bar.label + bar.note) for bar in found), default=0)
    return (
        f'<svg class="rows" style="min-width:{letters * _LETTER + 20:.0f}px" width="100%" '
        f'height="{height}" role="img" aria-label="{escape(label)}">{"".join(parts)}</svg>'
    )


def curve(
    dots: Sequence[Dot], raw: Sequence[Level], confirmed: Sequence[Level], metric: str
) -> str:
    """Return the attempts as dots, with the best raw score and the champion's level so far.

    Args:
        dots: One an attempt, at x = 1, 2, ...
        raw: Best selection score so far.
        confirmed: What the champion of the time scores on fresh seeds.
        metric: Label of the axis.
    """
    low, high = _span(dots, raw, confirmed)
    end = max(len(dots), 1)

    def at(x: float) -> float:
        return _LEFT + (WIDTH - _LEFT - _RIGHT) * x / end

    def up(y: float) -> float:
        inside = min(max(y, low), high)
        return _TOP + (HEIGHT - _TOP - _BOTTOM) * (high - inside) / (high - low)

    parts = [*_frame(low, high, end, metric)]
    for level in confirmed:
        if level.low is not None and level.high is not None:
            top, bottom = up(level.high), up(level.low)
            parts.append(
                f'<rect class="band" x="{at(level.start):.1f}" y="{top:.1f}" '
                f'width="{at(level.end) - at(level.start):.1f}" height="{bottom - top:.1f}"/>'
            )
    for k, dot in enumerate(dots, 1):
        y = HEIGHT - _BOTTOM - 4 if dot.y is None else up(dot.y)
        radius = 2.0 if len(dots) > 120 else 3.2
        parts.append(
            f'<circle class="{escape(dot.mark)}" cx="{at(k):.1f}" cy="{y:.1f}" r="{radius}">'
            f"<title>{escape(dot.title)}</title></circle>"
        )
    for name, levels in (("raw", raw), ("confirmed", confirmed)):
        path = "".join(
            f"{'L' if k else 'M'}{at(s.start):.1f} {up(s.y):.1f}H{at(s.end):.1f}"
            for k, s in enumerate(levels)
        )
        parts.append(f'<path class="{name}" d="{path}"/>')
    return (
        f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="champion curve">{"".join(parts)}</svg>'
    )


def _span(
    dots: Sequence[Dot], raw: Sequence[Level], confirmed: Sequence[Level]
) -> tuple[float, float]:
    """Return the range of the axis; a few far-off scores do not flatten the rest."""
    scores = sorted(dot.y for dot in dots if dot.y is not None)
    spare = len(scores) // 10
    values = scores[spare : len(scores) - spare] + [level.y for level in (*raw, *confirmed)]
    values += [y for s in confirmed for y in (s.low, s.high) if y is not None]
    low, high = min(values, default=0.0), max(values, default=1.0)
    margin = 0.06 * (high - low) or 0.1 * abs(high) or 1.0
    return low - margin, high + margin


def _frame(low: float, high: float, end: int, metric: str) -> list[str]:
    parts = []
    for tick in ticks(low, high, 5):
        y = _TOP + (HEIGHT - _TOP - _BOTTOM) * (high - tick) / (high - low)
        parts.append(
            f'<line class="grid" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
            f'<text class="tick" x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{tick:.6g}'
            "</text>"
        )
    for tick in ticks(0, end, 6):
        if tick == int(tick):
            x = _LEFT + (WIDTH - _LEFT - _RIGHT) * tick / end
            parts.append(
                f'<text class="tick" x="{x:.1f}" y="{HEIGHT - _BOTTOM + 16}" '
                f'text-anchor="middle">{tick:.0f}</text>'
            )
    label = escape(metric)
    middle = (_LEFT + WIDTH - _RIGHT) / 2
    parts.append(
        f'<text class="tick" x="{middle}" y="{HEIGHT - 5}" text-anchor="middle">attempts</text>'
    )
    parts.append(
        f'<text class="tick" transform="translate(11 {(HEIGHT - _BOTTOM) / 2})rotate(-90)" '
        f'text-anchor="middle">{label}</text>'
    )
    return parts


def ticks(low: float, high: float, count: int) -> list[float]:
    """Return round numbers inside the range, at most about `count` of them."""
    if high - low <= _NO_SPAN:
        return [low]
    raw = (high - low) / max(count, 1)
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(s * power for s in (1, 2, 5, 10) if s * power >= raw)
    first = math.ceil(low / step - 1e-9)
    return [float(f"{k * step:.12g}") for k in range(first, math.floor(high / step + 1e-9) + 1)]
