"""The programs of nodes: their files, and what differs between two of them."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from outlay.errors import InputError
from outlay.execution import objects as store
from outlay.execution import snapshot
from outlay.execution.patches import File, difference

if TYPE_CHECKING:
    from pathlib import Path

    from outlay.state import State

_MOST_STEPS = 4096
"""Parts of a path that are followed; the kernel gives up after 40 links."""


def node_of(state: State, name: str) -> int:
    """Return the number of the node that a user named: a number, `baseline` or `champion`.

    Raises:
        InputError: There is no such node.
    """
    if name in ("baseline", "champion"):
        return state.baseline if name == "baseline" else state.contest.champion
    last = len(state.tree.nodes) - 1
    number = int(name.removeprefix("#")) if name.removeprefix("#").isdecimal() else -1
    if not 0 <= number <= last:
        raise InputError(f"node: found {name!r}, allowed: 0 to {last}, 'baseline' or 'champion'")
    return number


def files_of(state: State, number: int) -> str:
    """Return the hash of the manifest of a node's files.

    Raises:
        InputError: The node was not scored, so that its files are not known, or the run has none.
    """
    start = state.start
    if not start:
        raise InputError("this run has no files: its evaluator is a Python callable")
    if number == state.baseline or number in state.files:
        return state.files.get(number, start)
    node = state.tree.nodes[number]
    if node.status == "scored" or (state.with_levers and not _changes_files(state, number)):
        return start
    raise InputError(f"node {number} is {node.status}: only a scored node has files to show")


def _changes_files(state: State, number: int) -> bool:
    chosen = state.configuration(state.tree.nodes[number])
    return any(
        option.files or option.patch
        for lever in state.task.levers
        for option in lever.options
        if option.name == chosen[lever.name]
    )


def changed_paths(before: str, after: str, objects: Path) -> list[str]:
    """Return the paths whose content or mode differs between two manifests, sorted."""
    if before == after:
        return []
    old, new = snapshot.load(before, objects), snapshot.load(after, objects)
    return sorted(path for path in old.keys() | new.keys() if old.get(path) != new.get(path))


def links_outside(before: str, after: str, objects: Path) -> list[str]:
    """Return a line for each symbolic link that is new in `after` and leads out of its files."""
    paths = changed_paths(before, after, objects)
    if not paths:
        return []
    links = {
        path: store.get(objects, entry.blob).decode("utf-8", "replace")
        for path, entry in snapshot.load(after, objects).items()
        if entry.mode == snapshot.LINK
    }
    return [
        f"{path}: a symbolic link that leads out of the program, to {links[path]}"
        for path in paths
        if path in links and _leaves(path, links)
    ]


def _leaves(path: str, links: dict[str, str]) -> bool:
    """Return whether following a link, through others as well, leads out of the top folder."""
    here: list[str] = []
    todo = path.split("/")[::-1]
    for _ in range(_MOST_STEPS):
        if not todo:
            return False
        part = todo.pop()
        if part == "..":
            if not here:
                return True
            here.pop()
        elif part not in ("", "."):
            here.append(part)
            target = links.get("/".join(here))
            if target is not None:
                if target.startswith("/"):
                    return True
                here.pop()
                todo += target.split("/")[::-1]
    return True  # a circle, or as good as one


def patch_between(before: str, after: str, objects: Path, prefix: str = "") -> str:
    """Return the patch that `git apply` takes from one manifest's files to the other's.

    Args:
        before: Hash of the one manifest.
        after: Hash of the other.
        objects: Object store of the run.
        prefix: Put before every path, such as `sub/folder/`.
    """
    paths = changed_paths(before, after, objects)
    if not paths:
        return ""
    old, new = snapshot.load(before, objects), snapshot.load(after, objects)
    return "".join(
        difference(prefix + path, _file(old, path, objects), _file(new, path, objects))
        for path in paths
    )


def prefix_in_repository(workspace: Path) -> str:
    """Return where the workspace lies in its repository: `git apply` counts paths from the top."""
    try:
        done = subprocess.run(
            ("git", "-C", str(workspace), "rev-parse", "--show-prefix"),
            capture_output=True,
            check=False,
            text=True,
        )
    except FileNotFoundError:
        return ""
    return done.stdout.rstrip("\n") if done.returncode == 0 else ""


def _file(manifest: snapshot.Manifest, path: str, objects: Path) -> File | None:
    entry = manifest.get(path)
    return None if entry is None else File(store.get(objects, entry.blob), entry.mode)
