"""`outlay diff`: how two programs of a run differ."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from outlay.cli._reading import Found, answer, common_options, intact, read_run, talk
from outlay.errors import InputError
from outlay.report.programs import files_of, links_outside, node_of, patch_between
from outlay.report.words import node_name

if TYPE_CHECKING:
    from pathlib import Path


@click.command()
@click.argument("first", metavar="A")
@click.argument("second", metavar="B")
@click.option("--run", help="Name of the run, where the store has several.")
@common_options
def command(first: str, second: str, run: str | None, store: Path | None, as_json: bool) -> None:
    """Compare two nodes: their configurations, and their files as a unified diff.

    A and B are numbers of nodes, `baseline` or `champion`.
    """
    found = read_run(store, run)
    nodes = (node_of(found.state, first), node_of(found.state, second))
    settings = _settings(found, nodes)
    patch, missing = _patch(found, nodes)
    data = {
        "a": nodes[0],
        "b": nodes[1],
        "configuration": [
            {"lever": lever, "a": before, "b": after} for lever, before, after in settings
        ],
        "patch": patch,
        "files_unknown": missing,
    }
    names = " and ".join(node_name(found.state, node) for node in nodes)
    lines = [f"# {lever}: {before} → {after}" for lever, before, after in settings]
    lines += [f"# files: {missing}"] if missing else []
    text = "\n".join(lines) or ("" if patch else f"# no difference between {names}")
    answer(data, text, as_json=as_json, patch=patch)


def _settings(found: Found, nodes: tuple[int, int]) -> list[tuple[str, str, str]]:
    state = found.state
    before, after = (state.configuration(state.tree.nodes[max(n, 0)]) for n in nodes)
    return [
        (lever, before[lever], after[lever]) for lever in after if before[lever] != after[lever]
    ]


def _patch(found: Found, nodes: tuple[int, int]) -> tuple[str, str]:
    """Return the patch, and why there is none where files are not known."""
    try:
        before, after = (files_of(found.state, node) for node in nodes)
    except InputError as error:
        return "", str(error)
    with intact(found):
        for line in links_outside(before, after, found.objects):
            talk(line)
        return patch_between(before, after, found.objects), ""
