"""The champion of a search taken apart: what it changed, as levers of two options each.

With levers, every lever that the champion set otherwise is one. Otherwise its difference from the
baseline is split into hunks, or files. Their patches lie beside the baseline's files in a manifest
of its own, so that the result is a task like any other.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from math import sqrt
from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec

from outlay.errors import InputError
from outlay.execution import objects as store
from outlay.execution import snapshot
from outlay.execution.patches import File, PatchError, applied, difference
from outlay.report.programs import changed_paths, files_of
from outlay.task import Lever, Option
from outlay.trust import self_reported

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from outlay.state import State
    from outlay.surfaces.factors import Level
    from outlay.task import Task

    Read = Callable[[str], File | None]

By = Literal["lever", "hunk", "file"]

OFF, ON = "off", "on"
FOLDER = "outlay-ablation"
ORIGIN = f"{FOLDER}/origin.json"
MOST = 40
"""Components at most; the measurements that 2^40 configurations need are out of reach anyway."""


class Component(NamedTuple):
    """One part of a difference between two programs.

    Attributes:
        name: Path, and with several parts in a file the line of the baseline's file.
        patch: Makes the change in the baseline's files, whatever other components were applied,
            as long as those are applied in order.
    """

    name: str
    patch: str


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """What was taken apart.

    Attributes:
        run: The search.
        node: Its champion.
        by: What a component is.
        self_reported: Whether the search's scores were printed by a file that the agent may edit.
        noise_sd: What the search knows of the standard deviation of one evaluation, as it shows
            in differences on one seed.
        noise_df: Degrees of freedom behind that; 0 if nothing is known.
    """

    run: str
    node: int
    by: By
    self_reported: bool = False
    noise_sd: float = 0.0
    noise_df: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Apart:
    """A champion taken apart.

    Attributes:
        task: The search's task with the components as levers.
        files: Hash of the manifest with the baseline's files and the patches.
    """

    task: Task
    files: str


def take_apart(state: State, run: str, source: Path, target: Path, by: By) -> Apart:
    """Return the champion of a search as a task whose levers are what it changed.

    Its selection seeds are taken from the search's final seeds, which did not choose the champion.

    Args:
        state: The state of the search.
        run: Its name.
        source: Its object store.
        target: Object store that the files are put into.
        by: What a component is: levers for a run with levers, else hunks or files.

    Raises:
        InputError: If there is no confirmed champion, or the run has no files.
    """
    champion = state.contest.champion
    if state.started is None or champion == state.baseline:
        raise InputError(
            f"run {run!r}: its champion is the baseline, as no gain was confirmed; allowed: a run "
            "with a confirmed champion"
        )
    before = files_of(state, state.baseline)
    manifest = snapshot.load(before, source)
    for entry in manifest.values():
        store.put(target, store.get(source, entry.blob))
    if by == "lever":
        levers = _changed_levers(state, champion)
    else:
        parts = between(before, files_of(state, champion), source, by)
        levers = tuple(_lever(number, part) for number, part in enumerate(parts, 1))
        manifest |= {_place(n): _stored(part.patch, target) for n, part in enumerate(parts, 1)}
    pairs = state.contest.noise.of_pairs()
    origin = Origin(
        run=run,
        node=champion,
        by=by,
        self_reported=self_reported(state),
        noise_sd=sqrt(pairs.variance / 2),
        noise_df=pairs.df,
    )
    manifest[ORIGIN] = _stored(msgspec.json.encode(origin).decode(), target)
    seeds = state.task.seeds
    fresh = replace(seeds, selection=seeds.final[: len(seeds.selection)])
    task = replace(state.task, levers=levers, seeds=fresh)
    return Apart(task=task, files=snapshot.save(manifest, target))


def origin_of(files: str, objects: Path) -> Origin | None:
    """Return what the run with these files took apart; `None` for the ablation of a task."""
    entry = snapshot.load(files, objects).get(ORIGIN) if files else None
    return (
        None if entry is None else msgspec.json.decode(store.get(objects, entry.blob), type=Origin)
    )


def between(before: str, after: str, objects: Path, by: By) -> list[Component]:
    """Return the components of the difference between two manifests' files.

    Raises:
        InputError: If there are too many.
    """
    old, new = snapshot.load(before, objects), snapshot.load(after, objects)
    found: list[Component] = []
    for path in changed_paths(before, after, objects):
        sides = (_file(old, path, objects), _file(new, path, objects))
        found += (
            split(path, *sides) if by == "hunk" else [Component(path, difference(path, *sides))]
        )
    if len(found) > MOST:
        more = "; --by file makes fewer" if by == "hunk" else ""
        raise InputError(f"--by: found {len(found)} {by}s, allowed: at most {MOST}{more}")
    return found


def split(path: str, old: File | None, new: File | None) -> list[Component]:
    """Return the hunks of one file's difference, from the last to the first.

    In that order no hunk moves the place of those after it. Hunks that do not apply alone are
    taken together with their neighbour.
    """
    pieces = _pieces(path, difference(path, old, new))
    place = 0
    while place < len(pieces):
        if len(pieces) == 1 or _applies(pieces[place], path, old):
            place += 1
        else:
            first = max(place - 1, 0)
            pieces[first : first + 2] = [_joined(pieces[first : first + 2])]
            place = first
    return pieces if len(pieces) > 1 else [Component(path, pieces[0].patch)]


def combined(parts: Iterable[str], read: Read, prefix: str = "") -> str:
    """Return one patch that does what several do, applied in order.

    Raises:
        PatchError: If one of them does not apply.
    """
    files: dict[str, File | None] = {}

    def now(path: str) -> File | None:
        return files[path] if path in files else read(path)

    for patch in parts:
        files.update(applied(patch, now))
    return "".join(difference(prefix + path, read(path), files[path]) for path in sorted(files))


def patch_of(
    task: Task, files: str, objects: Path, config: Mapping[str, Level], prefix: str = ""
) -> str:
    """Return the patch of a configuration of components against the baseline's files.

    Args:
        task: The task that `take_apart` made.
        files: Its files.
        objects: Its object store.
        config: Component to option.
        prefix: Put before every path, such as `sub/folder/`.
    """
    manifest = snapshot.load(files, objects)
    wanted = [
        option.patch
        for lever in task.levers
        for option in lever.options
        if option.patch is not None and config.get(lever.name) == option.name
    ]
    texts = [
        store.get(objects, manifest[place].blob).decode("utf-8", "surrogateescape")
        for place in wanted
    ]
    return combined(texts, lambda path: _file(manifest, path, objects), prefix)


def _changed_levers(state: State, champion: int) -> tuple[Lever, ...]:
    """Return the levers, those that the champion left alone with their default only."""
    chosen = state.configuration(state.tree.nodes[champion])
    return tuple(
        replace(
            lever,
            options=tuple(
                option
                for place, option in enumerate(lever.options)
                if place == 0 or option.name == chosen[lever.name]
            ),
        )
        for lever in state.task.levers
    )


def _lever(number: int, part: Component) -> Lever:
    options = (Option(name=OFF), Option(name=ON, patch=_place(number)))
    return Lever(name=part.name, options=options)


def _place(number: int) -> str:
    return f"{FOLDER}/{number}.patch"


def _stored(text: str, objects: Path) -> snapshot.Entry:
    blob = store.put(objects, text.encode("utf-8", "surrogateescape"))
    return snapshot.Entry(blob, snapshot.PLAIN)


def _file(manifest: snapshot.Manifest, path: str, objects: Path) -> File | None:
    entry = manifest.get(path)
    return None if entry is None else File(store.get(objects, entry.blob), entry.mode)


def _pieces(path: str, text: str) -> list[Component]:
    """Return the sections of a patch, each split at its hunks where those stand alone."""
    pieces = []
    for section in re.split(r"^(?=diff --git )", text, flags=re.MULTILINE)[1:]:
        head, *hunks = re.split(r"^(?=@@ -)", section, flags=re.MULTILINE)
        if not hunks or " mode " in head:
            pieces.append(Component(path, section))
        else:
            pieces += [Component(f"{path}:{_line(hunk)}", head + hunk) for hunk in reversed(hunks)]
    return pieces


def _line(hunk: str) -> int:
    """Return the line of the baseline's file at which the hunk changes something first."""
    body = hunk.split("\n")
    start = int(body[0].split()[1].lstrip("-").split(",")[0])
    return start + next(k for k, line in enumerate(body[1:]) if line[:1] in ("+", "-"))


def _applies(piece: Component, path: str, old: File | None) -> bool:
    try:
        applied(piece.patch, lambda name: old if name == path else None)
    except PatchError:
        return False
    return True


def _joined(pieces: Sequence[Component]) -> Component:
    names = dict.fromkeys(piece.name for piece in pieces)
    return Component("+".join(names), "".join(piece.patch for piece in pieces))
