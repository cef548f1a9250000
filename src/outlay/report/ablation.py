"""What an ablation found, for people: cards, and the files that hold them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from outlay.ablations.findings import ranked
from outlay.execution.folder import write_whole
from outlay.report.ablation_pictures import pictures
from outlay.report.blocks import Card, Code, Image, Table, Text
from outlay.report.markdown import document as as_markdown
from outlay.report.page import document as as_page
from outlay.report.words import duration, interval, many, number, settings, signed

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from outlay.ablations.findings import Effect
    from outlay.ablations.summary import Ablated
    from outlay.report.blocks import Block
    from outlay.surfaces.factors import Config
    from outlay.surfaces.surface import Surface

LISTED = 3
"""Other explanations of failures that are spelled out."""

TOP = 10
"""Configurations that the table of predictions shows."""

_HOW_SURE = (
    "A measured value stands as it is unless evaluations carry noise; every other number is a "
    "prediction, the average over many models of which component matters and which acts only "
    "together with others, weighed by how well they fit. Intervals are meant to hold the true "
    "value in 90 of 100 cases; each is for one number alone, so of many, some miss."
)


def write_ablation(
    found: Ablated, surface: Surface, question: str, folder: Path
) -> tuple[dict[str, str], str]:
    """Write the surface, its pictures and the report into the run's folder.

    Returns:
        Paths by file name, and why there are no pictures, empty if there are.
    """
    surface.save(folder / "surface.json")
    drawn, missing = pictures(surface)
    images = {}
    for kind, png in drawn.items():
        images[kind] = Image(file=f"{kind}.png", png=png, alt=f"{kind} of {found.run}")
        (folder / images[kind].file).write_bytes(png)
    content = cards(found, surface, images)
    line = f"{found.status}: {found.reason}"
    for kind, text in (
        ("md", as_markdown(found.run, question, line, content)),
        ("html", as_page(found.run, question, line, content)),
    ):
        write_whole(folder / f"ablation.{kind}", text)
    names = ["surface.json", *(image.file for image in images.values())]
    paths = [folder / name for name in [*names, "ablation.md", "ablation.html"]]
    return {path.name: str(path) for path in paths}, missing


def cards(found: Ablated, surface: Surface, images: Mapping[str, Image]) -> list[Card]:
    """Return everything that an ablation found, the most wanted first."""
    content: list[tuple[str, list[Block]]] = [
        ("What was found", _lead(found)),
        ("What each component does", [*_image(images, "effects"), *_effects(found)]),
        ("Where it depends", _depends(found)),
        ("Interactions", [*_interactions(found), *_image(images, "interactions")]),
        ("Best configuration", [*_best(found), _predictions(surface)]),
        ("Minimal champion", _minimal(found)),
        ("Broken combinations", _failed(found)),
        ("What was measured", [*_measured(found, surface), *_image(images, "surface")]),
        ("How sure this is", [Text(text=_HOW_SURE), *(Text(text=t) for t in found.problems)]),
    ]
    return [Card(title=title, blocks=blocks) for title, blocks in content if blocks]


def verdict(effect: Effect, direction: str) -> str:
    """Return in a word or two what an average effect comes to."""
    sign = 1.0 if direction == "maximize" else -1.0
    if effect.depends:
        return "helps or harms, it depends"
    if effect.low <= 0 <= effect.high:
        return "not told from 0"
    return "helps" if sign * effect.effect > 0 else "harms"


def named(config: Config, default: Config) -> str:
    """Return what a configuration changes."""
    changed = {k: str(v) for k, v in config.items() if v != default[k]}
    return settings(changed) or "nothing changed"


def between(low: float, high: float) -> str:
    """Return an interval in brackets."""
    return f"[{interval(low, high).replace(' to ', ', ')}]"


def _image(images: Mapping[str, Image], kind: str) -> list[Block]:
    return [images[kind]] if kind in images else []


def _lead(found: Ablated) -> list[Block]:
    sure = [e for e in found.effects if verdict(e, found.direction) in ("helps", "harms")]
    parts = [f"{e.factor} = {e.level} {verdict(e, found.direction)}" for e in sure]
    text = "; ".join(parts) or "no component's average effect is told from 0"
    blocks: list[Block] = [Text(text=f"On average over all backgrounds: {text}.", tone="lead")]
    if found.blamed:
        blocks.insert(0, Text(text=blame_words(found), tone="bad"))
    if found.origin is not None:
        what = f"Node {found.origin.node} of run {found.origin.run} was taken apart by"
        blocks.append(Text(text=f"{what} {found.origin.by}."))
    if found.self_reported:
        text = "Self-reported: a file that the agent could edit prints the metric."
        blocks.append(Text(text=text, tone="bad"))
    return blocks


def _effects(found: Ablated) -> list[Block]:
    rows = [
        (
            e.factor,
            f"{e.default} to {e.level}",
            signed(e.effect),
            between(e.low, e.high),
            f"{signed(e.least)} to {signed(e.most)}",
            verdict(e, found.direction),
        )
        for e in sorted(found.effects, key=lambda e: -abs(e.effect))
    ]
    better = "higher" if found.direction == "maximize" else "lower"
    head = ("component", "option", "average", "90 %", "over backgrounds", "")
    text = (
        f"Change of {found.metric}, {better} is better, averaged over the settings of all others."
    )
    return [Text(text=text), Table(head=head, rows=rows, numeric=frozenset({2}))]


def _depends(found: Ablated) -> list[Block]:
    if not found.depends:
        text = "No option is known to raise the metric in one background and lower it in another."
        return [Text(text=text)]
    rows = [
        (
            f"{c.factor} = {c.level}",
            signed(c.effect),
            between(c.low, c.high),
            settings({k: str(v) for k, v in c.background.items()}),
            "measured" if c.measured else "predicted",
        )
        for c in found.depends
    ]
    text = (
        "These options raise the metric in one background and lower it in another, both with an "
        "interval that leaves out 0. An average says little about them. The surest of each:"
    )
    head = ("option", "effect", "90 %", "with", "")
    return [Text(text=text), Table(head=head, rows=rows, numeric=frozenset({1}))]


def _interactions(found: Ablated) -> list[Block]:
    if not found.interactions:
        return [Text(text="There is one component, and nothing for it to interact with.")]
    sure = [i for i in found.interactions if i.sure]
    if not sure:
        count = len(found.interactions)
        return [Text(text=f"Of {many(count, 'pair')} of options, no interval leaves out 0.")]
    rows = [
        (
            f"{i.first} = {i.first_level}",
            f"{i.second} = {i.second_level}",
            signed(i.interaction),
            between(i.low, i.high),
        )
        for i in sure
    ]
    text = "What two options do together beyond the sum of what each does alone:"
    head = ("one", "other", "interaction", "90 %")
    return [Text(text=text), Table(head=head, rows=rows, numeric=frozenset({2}))]


def _best(found: Ablated) -> list[Block]:
    best = found.best
    if best is None or found.baseline is None:
        return []
    how = "measured" if best.measured else "predicted, not measured"
    text = (
        f"{settings({k: str(v) for k, v in best.config.items()})}: {found.metric} "
        f"{number(best.value)} {between(best.low, best.high)}, {how}; the baseline has "
        f"{number(found.baseline.value)}. It is the best of all with probability "
        f"{best.probability:.0%}."
    )
    return [Text(text=text)]


def _predictions(surface: Surface) -> Table:
    """Return the configurations with the best predicted values."""
    default = surface.factors.config(0)
    rows = [
        (
            named(row.config, default),
            number(row.value),
            between(row.low, row.high),
            "measured" if row.measured else "predicted",
        )
        for row in ranked(surface, TOP)
    ]
    head = ("against the baseline", surface.metric, "90 %", "")
    return Table(head=head, rows=rows, numeric=frozenset({1}))


def _minimal(found: Ablated) -> list[Block]:
    if found.origin is None:
        return []
    small = found.minimal
    if small is None:
        text = (
            "These measurements do not tell the champion's gain from 0, on seeds that did not "
            "choose it: its interval holds 0, or it is a loss. So there is no telling which part "
            "is needed; more measurements may."
        )
        return [Text(text=text, tone="bad")]
    blocks: list[Block] = [Text(text=minimal_words(found), tone="lead")]
    text = (
        "Rule: the fewest components whose predicted gain over the baseline is at least 90 % of "
        "the whole champion's, with an interval that leaves out 0. "
    )
    text += (
        "That it keeps so much is sure at 90 %."
        if small.certain
        else "That it keeps so much is what is expected; the interval also allows less."
    )
    blocks.append(Text(text=text))
    if found.minimal_command:
        blocks.append(Code(text="\n".join(found.minimal_command)))
    return blocks


def blame_words(found: Ablated) -> str:
    """Return in a sentence what explains the failures; empty without any."""
    if not found.failed:
        return ""
    if not found.blamed:
        count = many(len(found.failed), "configuration")
        return f"{count} failed, and no single option, pair or triple explains it."
    first, *others = [" or ".join(settings(_texts(part)) for part in e) for e in found.blamed]
    text = f"Every measured configuration with {first} failed, no other."
    if others:
        more = f" and {len(others) - LISTED} more" if len(others) > LISTED else ""
        text += f" The same holds for {'; '.join(others[:LISTED])}{more}."
    return text


def next_words(found: Ablated) -> str:
    """Return in a sentence what would be measured next, and what it is expected to tell and take.

    Empty where nothing is left to measure.
    """
    ahead = found.next
    if ahead is None or found.best is None:
        return ""
    default = {effect.factor: effect.default for effect in found.effects}
    paid = "" if ahead.affordable else "; the budget does not pay for it"
    return (
        f"{named(ahead.config, {**default})}: {ahead.reason}, "
        f"takes about {duration(ahead.seconds)}{paid}"
    )


def minimal_words(found: Ablated) -> str:
    """Return the minimal champion in a sentence."""
    small = found.minimal
    if small is None:
        return "unknown: these measurements do not tell the champion's gain from 0"
    total = len(small.kept) + len(small.left_out)
    how = "measured" if small.measured else "predicted, not measured"
    return (
        f"{len(small.kept)} of {many(total, 'component')} ({', '.join(small.kept)}): gain "
        f"{signed(small.gain)} {between(small.low, small.high)}, {how}; the whole champion's is "
        f"{signed(small.champion_gain)} {between(small.champion_low, small.champion_high)}"
    )


def _failed(found: Ablated) -> list[Block]:
    if not found.failed:
        return []
    blocks: list[Block] = [Text(text=blame_words(found))]
    rows = [(settings(_texts(entry.config)), entry.reason) for entry in found.failed]
    return [*blocks, Table(head=("configuration", "reason"), rows=rows)]


def _measured(found: Ablated, surface: Surface) -> list[Block]:
    text = f"{found.measurements} of {many(found.configurations, 'configuration')}."
    baseline = found.baseline
    if baseline is not None and baseline.noise_sd is not None:
        runs = many(len(baseline.values), "evaluation")
        text += (
            f" Evaluations carry noise: {runs} of the baseline have a standard deviation of "
            f"{number(baseline.noise_sd)}, so measured values are smoothed as well."
        )
    elif baseline is not None:
        text += " The baseline gave one value on all its seeds, so values are taken as exact."
    default = surface.factors.config(0)
    rows = [
        (
            named(taken.config, default),
            ", ".join(number(value) for value in taken.metrics.values()) or "failed",
        )
        for taken in surface.measurements
    ]
    head = ("against the baseline", found.metric)
    ahead = next_words(found)
    return [
        Text(text=text),
        Table(head=head, rows=rows, numeric=frozenset({1})),
        *([Text(text=f"Next would be {ahead}.")] if ahead else []),
    ]


def _texts(config: Config) -> dict[str, str]:
    return {name: str(option) for name, option in config.items()}
