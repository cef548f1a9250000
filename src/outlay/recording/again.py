"""A run searched again from its record: what came from outside is repeated, the rest is done.

Repeated are the clock, the order in which work ended, raised limits, the answers of models, the
files that agents left, and the values of evaluations. Every decision is made again, every plan is
read out of its answer again, and what models used is summed up from their exchanges again. If
asked for, every evaluation that came to an end of its own is carried out again, too. No client is
started and no network used.
"""

from __future__ import annotations

import json
import os
import secrets
from contextlib import contextmanager
from dataclasses import replace as changed
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec.structs import replace

from outlay import events
from outlay.ablations.components import origin_of
from outlay.ablations.running import SurfaceReflector, is_ablation
from outlay.agents.reflector import BUILT_IN
from outlay.decision import decide
from outlay.digest import digest, essence
from outlay.errors import InputError, OutlayError
from outlay.recording.hands import Hands
from outlay.recording.lines import read
from outlay.replay import DECISIONS
from outlay.state import State
from outlay.task import from_json, to_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from outlay.agents.reflector import Reflector
    from outlay.events import AnyEvent, Entry, RunStarted
    from outlay.task import Task

_MOST_SHOWN = 120


class Replayed(NamedTuple):
    """What a replay came to.

    Attributes:
        run: Name of the run.
        recorded: Digest of the record.
        digest: Digest of what happened now, up to the first difference.
        difference: The first event that came out otherwise, in one line; empty if none did.
        events: Events that came out the same.
        evaluations: Evaluations that were carried out.
    """

    run: str
    recorded: str
    digest: str
    difference: str
    events: int
    evaluations: int


def replay(
    file: str | os.PathLike[str],
    *,
    evaluate: bool = False,
    workspace: str | os.PathLike[str] = "",
) -> Replayed:
    """Search a recorded run again and return what differs first, if anything does.

    Args:
        file: What `outlay record` wrote.
        evaluate: Carry the evaluations out, held as in a search but without a network. That runs
            programs of the record, so it must be trusted as a test suite is.
        workspace: Folder of the task, for data and packages beside its files. A record opens no
            data by itself; packages are by default looked for where they were.

    Raises:
        InputError: The file is no record, or data of the task is not there.
    """
    with TemporaryDirectory(prefix="outlay-", ignore_cleanup_errors=True) as temporary:
        folder = Path(os.path.realpath(temporary), "runs", "again")
        record = read(Path(file), folder / "objects")
        started, task = _moved(record.entries, workspace)
        if evaluate:
            _check_data(task, workspace)
        with Hands(record, task, folder, evaluate=evaluate) as hands:
            entries = [replace(record.entries[0], event=started), *record.entries[1:]]
            made, difference = _again(entries, hands, _reflector(task, started, folder))
        return Replayed(
            run=record.run,
            recorded=record.digest,
            digest=digest(made),
            difference=difference,
            events=len(made),
            evaluations=hands.evaluations,
        )


def _moved(entries: list[Entry], workspace: str | os.PathLike[str]) -> tuple[RunStarted, Task]:
    """Return the beginning of a run of its own, in the folder if one is named.

    It has no network, and nothing of the machine is open to it: who made the record may name what
    another user keeps secret. Raises `InputError` if there is no beginning.
    """
    first = entries[0].event if entries else None
    if not isinstance(first, events.RunStarted):
        raise InputError("record: found no beginning in it, allowed: a run that has begun")
    task = from_json(first.task)
    task = changed(task, sandbox=changed(task.sandbox, read=(), network=False))
    if workspace:
        path = os.path.realpath(workspace)
        task = changed(task, workspace=changed(task.workspace, path=path))
    return replace(first, task=to_json(task), uid=secrets.token_hex(16)), task


def _check_data(task: Task, workspace: str | os.PathLike[str]) -> None:
    if task.workspace.data and not workspace:
        raise InputError(
            f"data: found {', '.join(task.workspace.data)} in the record, which opens nothing by "
            "itself, allowed: --workspace and the task's folder"
        )
    root = Path(task.workspace.path)
    for path in task.workspace.data:
        place = root / path
        if not place.exists() or not place.resolve().is_relative_to(root):
            raise InputError(
                f"data: found no {place} in the folder, allowed: --workspace and the task's folder"
            )


def _reflector(task: Task, started: RunStarted, folder: Path) -> Reflector:
    if is_ablation(task):
        return SurfaceReflector(origin_of(started.files, folder / "objects"))
    return BUILT_IN


def _again(
    entries: Iterable[Entry], hands: Hands, reflector: Reflector
) -> tuple[list[Entry], str]:
    """Return the entries that came out the same, and the first difference."""
    state = State()
    made: list[Entry] = []
    for entry in entries:
        event = entry.event
        now: AnyEvent | None = event
        with _fitting(entry):
            if isinstance(event, DECISIONS):
                now = decide(state, entry.elapsed, reflector)
            elif isinstance(event, events.Settled):
                now = hands.settle(state, event)
            if difference := _difference(entry, now):
                return made, difference
            state.apply(event, entry.elapsed)
            if isinstance(event, events.Launch):
                hands.start(state, event)
        made.append(replace(entry, event=now))
    return made, ""


@contextmanager
def _fitting(entry: Entry) -> Iterator[None]:
    """Turn what goes wrong where a log does not hold together into one line: it may be made up."""
    try:
        yield
    except OutlayError:
        raise
    except Exception as error:
        raise InputError(
            f"record: event {entry.sequence} does not fit those before it "
            f"({type(error).__name__}: {error}), allowed: a file that `outlay record` wrote"
        ) from error


def _difference(entry: Entry, now: AnyEvent | None) -> str:
    """Return how an event differs from what happened now, times aside; empty if it does not."""
    if now is None:
        return f"event {entry.sequence}: recorded {_shown(entry.event)}, now nothing follows"
    then, found = essence([entry]), essence([replace(entry, event=now)])
    if then == found:
        return ""
    if type(now) is not type(entry.event) or not then or not found:
        return f"event {entry.sequence}: recorded {_shown(entry.event)}, now {_shown(now)}"
    before, after = _fields(then[0]), _fields(found[0])
    name = next(n for n in [*before, *after] if before.get(n) != after.get(n))
    return (
        f"event {entry.sequence}, {type(now).__name__} {_named(entry.event)}, {name}: "
        f"recorded {_shown(before.get(name))}, now {_shown(after.get(name))}{_why(now)}"
    )


def _fields(event: AnyEvent) -> dict[str, Any]:
    fields: dict[str, Any] = json.loads(events.encode(event))
    return fields


def _named(event: AnyEvent) -> str:
    return str(getattr(event, "work", "") or getattr(event, "attempt", ""))


def _why(event: AnyEvent) -> str:
    detail = getattr(event, "detail", "")
    return f" ({detail})" if detail else ""


def _shown(value: object) -> str:
    text = str(value)
    return text if len(text) <= _MOST_SHOWN else text[: _MOST_SHOWN - 1] + "…"
