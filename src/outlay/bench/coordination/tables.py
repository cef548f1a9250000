"""The results as Markdown and as JSON-ready data; equal results give equal bytes."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from outlay.bench.coordination.improved import EVALUATIONS, PUBLISHED_INFLATION
from outlay.bench.coordination.landscapes import LANDSCAPES
from outlay.bench.coordination.published import inflation_ratio
from outlay.bench.coordination.study import FULL, VARIANTS, Measures, is_away_from_zero

if TYPE_CHECKING:
    from outlay.bench.coordination.improved import Improvement
    from outlay.bench.coordination.published import Row
    from outlay.bench.coordination.study import Line
    from outlay.coordination.estimates import Interval

_VALUES = ("value", "average")
_HEADINGS = {
    "value": "final value",
    "average": "average value",
    "inflation": "inflation",
    "false": "false promotions",
    "evaluations": "evaluations",
    "redundant": "redundant",
}


def published_data(rows: list[Row]) -> dict[str, Any]:
    """Return the published part as JSON-ready data."""
    return {"rows": [asdict(row) for row in rows], "inflation_ratio": inflation_ratio(rows)}


def improved_data(improvement: Improvement) -> dict[str, Any]:
    """Return the comparison of rules as JSON-ready data."""
    fields = asdict(improvement)
    for name, value in fields.items():
        if hasattr(value, "_asdict"):
            fields[name] = value._asdict()
    return fields


def study_data(table: list[Line]) -> list[dict[str, Any]]:
    """Return the landscapes as JSON-ready data, one object a line."""
    return [
        {
            "landscape": line.landscape,
            "variant": line.variant,
            "means": _named(line.means),
            "differences": _named(line.differences),
        }
        for line in table
    ]


def published_markdown(rows: list[Row]) -> list[str]:
    """Return the published table."""
    columns = (
        "| configuration | reported | clean | inflation | used | redundant | confirmed "
        "| first at optimum | retired | evaluations |"
    )
    lines = [columns, "|---|" + "---:|" * 9]
    for row in rows:
        lines.append(
            f"| {row.configuration} | {row.reported!r} | {row.clean:g} "
            f"| {row.reported - row.clean:.5f} | {row.used} | {row.redundant} | {row.confirmed} "
            f"| {row.first_at_optimum or 'never'} | {row.retired} | {row.evaluations} |"
        )
    ratio = inflation_ratio(rows)
    return [*lines, "", f"Noise inflation without confirmation over that with it: {ratio!r}."]


def improved_markdown(found: Improvement) -> list[str]:
    """Return the comparison of both sets of rules on the published objective."""
    limit = PUBLISHED_INFLATION / 10
    verdict = "at most" if abs(found.inflation.mean) <= limit else "MORE THAN"
    return [
        f"Means over {found.draws} draws of the noise with 95 % intervals.",
        "",
        "| | published rules | improved rules |",
        "|---|---:|---:|",
        (
            f"| inflation of the reported metric | {_signed(found.published, 6)} "
            f"| {_signed(found.inflation, 6)} |"
        ),
        f"| inflation of the pairs that promoted | - | {_signed(found.selected, 6)} |",
        f"| evaluations in any run | {found.published_evaluations} | {found.evaluations} |",
        (
            f"| of these before the final estimate | {found.published_evaluations} "
            f"| {found.searching:.1f} |"
        ),
        f"| runs that end at the optimum | {found.published_optimum} | {found.optimum} |",
        "",
        (
            f"The paper's inflation is {PUBLISHED_INFLATION} (one draw) with {EVALUATIONS} "
            f"evaluations. The improved rules' mean is {verdict} a tenth of it ({limit:.5f})."
        ),
    ]


def study_markdown(table: list[Line], seeds: int) -> list[str]:
    """Return one table a landscape, and what each mechanism did over all of them."""
    lines = [
        f"{seeds} seeds. The first line of a table has means; the others have differences from",
        "it, seed by seed, with 95 % intervals. Bold: the interval is away from 0. Values are",
        "clean; the optimum has 0, and a negative difference means that the variant does worse.",
        "`average value` is over the budget of evaluations, so it rewards speed.",
        "",
        *_in_words(table),
    ]
    for landscape in LANDSCAPES:
        mine = [line for line in table if line.landscape == landscape.name]
        if mine:
            reason = landscape.reason[0].upper() + landscape.reason[1:]
            lines += ["", f"### {landscape.name}", ""]
            lines += [f"{reason}. Budget: {landscape.budget} evaluations.", ""]
            lines += _landscape_table(mine)
    return lines


def _landscape_table(lines: list[Line]) -> list[str]:
    heading = " | ".join(_HEADINGS[name] for name in Measures._fields)
    found = [f"| variant | {heading} |", "|---|" + "---:|" * len(Measures._fields)]
    for line in lines:
        if line.variant == FULL:
            cells = [f"{interval.mean:.3f}" for interval in line.means]
        else:
            cells = [_difference(interval) for interval in line.differences]
        found.append(f"| {line.variant} | {' | '.join(cells)} |")
    return found


def _in_words(table: list[Line]) -> list[str]:
    """Return one line for each variant: where it loses, gains, or changes no value."""
    lines = [
        "Where leaving it out makes the champion's value worse or better, at the end or on",
        "average (95 % intervals away from 0); nowhere else does it change either.",
        "",
        "| variant | worse | better |",
        "|---|---|---|",
    ]
    for variant in VARIANTS:
        if variant == FULL:
            continue
        worse, better = [], []
        for line in table:
            if line.variant == variant:
                worse += [_change(line, name) for name in _VALUES if _sign(line, name) < 0]
                better += [_change(line, name) for name in _VALUES if _sign(line, name) > 0]
        lines.append(
            f"| {variant} | {', '.join(worse) or 'nowhere'} | {', '.join(better) or 'nowhere'} |"
        )
    return lines


def _sign(line: Line, measure: str) -> int:
    interval = line.differences[Measures._fields.index(measure)]
    if not is_away_from_zero(interval):
        return 0
    return 1 if interval.mean > 0 else -1


def _change(line: Line, measure: str) -> str:
    mean = line.differences[Measures._fields.index(measure)].mean
    return f"{line.landscape} {'average ' if measure == 'average' else ''}{mean:+.2f}"


def _difference(interval: Interval) -> str:
    text = _signed(interval, 3)
    return f"**{text}**" if is_away_from_zero(interval) else text


def _signed(interval: Interval, digits: int) -> str:
    if interval.low is None or interval.high is None:
        return f"{interval.mean:+.{digits}f}"
    if interval.low == interval.high == 0:
        return "0"
    return f"{interval.mean:+.{digits}f} [{interval.low:+.{digits}f}, {interval.high:+.{digits}f}]"


def _named(intervals: tuple[Interval, ...]) -> dict[str, Any]:
    pairs = zip(Measures._fields, intervals, strict=True)
    return {name: interval._asdict() for name, interval in pairs}
