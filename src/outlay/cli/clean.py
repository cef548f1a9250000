"""`outlay clean`: removes what runs left behind and nothing needs."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import click

from outlay.cli._reading import (
    answer,
    common_options,
    one_run,
    reading,
    store_path,
    talk,
)
from outlay.errors import InputError, OutlayError, StoreError
from outlay.execution import folder as jobs
from outlay.execution import snapshot
from outlay.execution.objects import Damaged
from outlay.jobs import job_id
from outlay.runs import load_state, run_folder
from outlay.sqlite_store import SqliteStore

if TYPE_CHECKING:
    from outlay.state import State

_LEFTOVERS = ("work", "tmp", "exchange")
SINGULAR = {
    "workspaces of finished jobs": "workspace of a finished job",
    "stored files that no node needs": "stored file that no node needs",
    "whole runs": "whole run",
    "folders of unknown runs": "folder of an unknown run",
}


@dataclass(slots=True, kw_only=True)
class Waste:
    """What can go: paths by what they are, and the runs that are forgotten with them.

    Attributes:
        place: The store's own folder of runs; nothing outside it is ever added.
        paths: Paths by kind.
        runs: Names of runs.
    """

    place: Path
    paths: dict[str, list[Path]] = field(default_factory=dict)
    runs: list[str] = field(default_factory=list)

    def add(self, kind: str, path: Path) -> None:
        """Add one path; one that leads out of the folder of runs, by name or link, stays."""
        if self.place in path.resolve().parents:
            self.paths.setdefault(kind, []).append(path)
        else:
            talk(f"{path}: left alone, since it lies outside {self.place}")

    def sizes(self) -> dict[str, int]:
        """Return the bytes of each kind."""
        return {kind: sum(map(_size, paths)) for kind, paths in self.paths.items()}


@click.command()
@click.argument("run", required=False)
@click.option("--all", "whole", is_flag=True, help="Forget the run itself: events, logs, plans.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@common_options
def command(run: str | None, whole: bool, yes: bool, store: Path | None, as_json: bool) -> None:
    """Remove workspaces left by finished jobs and stored files that no node needs.

    Logs, plans and programs of scored nodes stay, unless --all forgets the whole run. Without RUN
    every run of the store is cleaned, and the folders of runs that the store does not know.
    """
    path, name = store_path(store, run)
    if not path.exists():
        raise StoreError(f"{path}: there is no store here; nothing to clean")
    with reading(path), SqliteStore(path, "write") as opened:
        known = [found.name for found in opened.runs()]
        names = [one_run(opened, name)] if name else known
        waste = _whole_runs(path, names, known) if whole else _waste(opened, path, names)
        if name is None:
            _add_unknown(waste, path, known)
        sizes = waste.sizes()
        removed = bool(waste.paths or waste.runs) and _agreed(waste, sizes, yes=yes)
        if removed:
            _remove(opened, waste)
    total = sum(sizes.values()) if removed else 0
    data = {"removed": removed, "bytes": total, "kinds": sizes, "runs": waste.runs}
    answer(data, f"removed {_shown(total)}" if removed else "removed nothing", as_json=as_json)


def _whole_runs(store: Path, names: list[str], known: list[str]) -> Waste:
    waste = Waste(place=_place(store), runs=names)
    others = [run_folder(store, name).resolve() for name in known if name not in names]
    for name in names:
        folder = run_folder(store, name)
        _refuse_live(folder, name)
        inside = [other for other in others if _overlap(folder.resolve(), other)]
        if inside:
            talk(f"{folder}: left alone, since another run has files in {inside[0]}")
        elif folder.exists():
            waste.add("whole runs", folder)
    return waste


def _place(store: Path) -> Path:
    """Return the folder that holds the runs' folders, every link in its path resolved."""
    return (store.resolve().parent / "runs").resolve()


def _overlap(first: Path, second: Path) -> bool:
    return first == second or first in second.parents or second in first.parents


def _refuse_live(folder: Path, name: str) -> None:
    for job in _jobs(folder):
        claim = jobs.read_claim(job)
        process = jobs.holder(claim) if claim is not None else None
        if process is not None and not (job / "result.json").exists():
            raise OutlayError(
                f"run {name!r}: {job.name} still runs as process {process.pid}; "
                "resume the run, or end that process, before it is removed"
            )


def _waste(store: SqliteStore, path: Path, names: list[str]) -> Waste:
    waste = Waste(place=_place(path))
    for name in names:
        folder = run_folder(path, name)
        try:
            state = load_state(store, name)
        except StoreError as error:
            raise StoreError(f"{error}; `outlay clean {name} --all` removes it") from None
        open_jobs = {job_id(work.launch) for work in state.works.values()}
        for job in _jobs(folder):
            if job.name not in open_jobs:
                for leftover in (job / part for part in _LEFTOVERS):
                    if leftover.exists():
                        waste.add("workspaces of finished jobs", leftover)
        if not open_jobs:
            for unused in _unused_objects(state, folder / "objects"):
                waste.add("stored files that no node needs", unused)
    return waste


def _unused_objects(state: State, objects: Path) -> list[Path]:
    """Return the objects outside the files of the start and of every scored node."""
    roots = set(state.files.values())
    if state.start:
        roots.add(state.start)
    needed = set(roots)
    try:
        for root in roots:
            needed |= {entry.blob for entry in snapshot.load(root, objects).values()}
    except Damaged:
        return []  # What is needed cannot be told, so everything stays.
    return [
        place
        for place in sorted(objects.glob("??/*"))
        if place.parent.name + place.name not in needed
    ]


def _add_unknown(waste: Waste, store: Path, names: list[str]) -> None:
    """Add folders that belong to no run of the store, and hold none of one."""
    place = _place(store)
    known = [run_folder(store, name).resolve() for name in names]
    for folder in sorted(place.iterdir()) if place.is_dir() else []:
        if folder.is_dir() and not any(_overlap(folder.resolve(), own) for own in known):
            _refuse_live(folder, folder.name)
            waste.add("folders of unknown runs", folder)


def _jobs(folder: Path) -> list[Path]:
    place = folder / "jobs"
    return sorted(path for path in place.iterdir() if path.is_dir()) if place.is_dir() else []


def _agreed(waste: Waste, sizes: dict[str, int], *, yes: bool) -> bool:
    """Say what would go and how much, and return whether that is wanted."""
    for kind, size in sizes.items():
        count = len(waste.paths[kind])
        talk(f"{_shown(size):>10}  {count} {kind if count != 1 else SINGULAR[kind]}")
    if waste.runs:
        talk(f"forgotten for good: {', '.join(waste.runs)}")
    if yes:
        return True
    if not sys.stdin.isatty():
        raise InputError("--yes: found none and no terminal to ask at; add --yes to remove these")
    return click.confirm("Remove these?", err=True)


def _remove(store: SqliteStore, waste: Waste) -> None:
    for name in waste.runs:
        store.remove(name)
    for paths in waste.paths.values():
        for path in paths:
            if path.is_dir() and not path.is_symlink():
                snapshot.remove_tree(path)
            else:
                path.unlink(missing_ok=True)


def _size(path: Path) -> int:
    if not path.is_dir() or path.is_symlink():
        return path.lstat().st_size
    return sum(
        (Path(at) / name).lstat().st_size for at, _, names in os.walk(path) for name in names
    )


def _shown(size: int) -> str:
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= scale:
            return f"{size / scale:.1f} {unit}"
    return f"{size} B"
