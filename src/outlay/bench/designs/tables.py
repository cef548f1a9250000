"""A report as text: Markdown tables, one for each table of the paper."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from outlay.bench.designs.report import Report
    from outlay.bench.designs.statistics import Contrast, Interval


def markdown(report: Report) -> str:
    """Return every table of a report as one Markdown text."""
    return "\n".join(_lines(report))


def _lines(report: Report) -> Iterator[str]:
    yield "# Action construction: affordable efficiency\n"
    yield "Invalid answers and unaffordable readings count 0. Intervals: 95 %, 5,000 bootstraps"
    yield "over states (seed 3).\n"
    yield from _table(
        "Affordable efficiency (%)",
        ("setting", "interface", "mean", "95 % interval"),
        (
            (row.setting, row.interface, f"{row.efficiency.value:.2f}", _range(row.efficiency))
            for row in report.rows
        ),
    )
    yield from _contrasts("Planned contrasts (0 to 1), one Holm family", report.contrasts)
    yield from _contrasts("Prompting strategies against L3, one Holm family", report.strategies)
    yield from _intervals("Relative increase from L1 to L3 (%)", report.increases)
    yield from _intervals("Share of the L1-to-L3 gain kept (%)", report.retained)
    yield from _answers(report)
    yield from _table(
        "Policies without a model (%)",
        ("policy", "mean"),
        ((name, f"{score:.2f}") for name, score in report.policies.items()),
    )
    yield from _table(
        "Charges",
        ("setting", "tokens in", "cached", "tokens out", "USD"),
        (
            (name, str(c.tokens_in), str(c.tokens_cached), str(c.tokens_out), f"{c.usd:.4f}")
            for name, c in report.charges.items()
        ),
    )
    if report.problems:
        yield "## Invalid answers\n"
        yield from (f"- {_safe(problem)}" for problem in report.problems)


def _answers(report: Report) -> Iterator[str]:
    yield from _table(
        "Quality of the answers",
        ("setting", "interface", "answers", "parsed", "all readings feasible", "feasible share"),
        (
            (
                row.setting,
                row.interface,
                str(row.requests),
                str(row.parsed),
                str(row.all_feasible),
                f"{row.feasible:.3f}",
            )
            for row in report.rows
        ),
    )
    yield from _table(
        "Executor modes (%)",
        ("setting", "interface", "conservative", "default", "permissive"),
        (
            (row.setting, row.interface, *(f"{score:.2f}" for score in row.modes.values()))
            for row in report.rows
        ),
    )
    yield from _table(
        "Signed information gaps (nats), over the parsed answers",
        ("setting", "interface", "answers", "target", "resolution", "total", "negative"),
        (
            (
                row.setting,
                row.interface,
                str(row.parsed),
                *(f"{gap:+.4f}" for gap in row.gaps),
                str(row.negative),
            )
            for row in report.rows
            if row.gaps is not None
        ),
    )


def _contrasts(title: str, contrasts: tuple[Contrast, ...]) -> Iterator[str]:
    return _table(
        title,
        ("contrast", "difference", "95 % interval", "t", "p (Holm)", "dz"),
        (
            (
                c.name,
                f"{c.difference:+.4f}",
                f"{c.low:+.4f} to {c.high:+.4f}",
                f"{c.t:.2f}",
                f"{c.p_holm:.3g}",
                f"{c.dz:.2f}",
            )
            for c in contrasts
        ),
    )


def _intervals(title: str, intervals: dict[str, Interval]) -> Iterator[str]:
    rows = ((name, f"{x.value:.2f}", _range(x)) for name, x in intervals.items())
    return _table(title, ("what", "value", "95 % interval"), rows)


def _range(interval: Interval) -> str:
    return f"{interval.low:.2f} to {interval.high:.2f}"


def _table(title: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    body = [f"| {' | '.join(_safe(cell) for cell in row)} |" for row in rows]
    if not body:
        return
    yield f"## {title}\n"
    yield f"| {' | '.join(head)} |"
    yield f"|{' --- |' * len(head)}"
    yield from body
    yield ""


def _safe(text: str) -> str:
    """Return text that can neither end a table cell nor start markup."""
    plain = "".join(c if c.isprintable() else " " for c in text)
    return plain.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("`", "'")
