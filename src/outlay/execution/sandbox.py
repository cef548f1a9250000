"""What holds a command's processes together, and what they may see.

bwrap       own process, mount and network namespaces: the system is read-only, the run folder,
            the user's workspace, known secrets and the sockets of services are absent, /tmp is the
            job's own; a Harbor task's folders are where its verifier expects them
unshare     own process namespace only
subreaper   no namespace: orphans come back to us and are ended by id and start time
"""

from __future__ import annotations

import functools
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

from outlay.execution.absent import TMP, below
from outlay.execution.harbor import ENVIRONMENT, LOGS, TESTS

if TYPE_CHECKING:
    import ctypes

Kind = Literal["bwrap", "unshare", "subreaper"]
KINDS: tuple[Kind, ...] = get_args(Kind)

_MOST_BINDS = 64
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36


class View(NamedTuple):
    """What a command sees, as absolute paths without links.

    Attributes:
        work: Workspace, writable, and the folder the command starts in.
        exchange: Folder for the result file and the plan, writable.
        tmp: Becomes `/tmp`.
        masks: Folders that are absent.
        visible: Read-only files and folders that stay visible below a mask.
        protected: Files of the workspace that are read-only.
        network, gpu: Whether the command may use them.
        container: Where `environment` of the workspace is seen in place of the workspace, and the
            command starts; see `outlay.execution.harbor`. Empty for any other task.
    """

    work: str
    exchange: str
    tmp: str
    masks: tuple[str, ...] = ()
    visible: tuple[str, ...] = ()
    protected: tuple[str, ...] = ()
    network: bool = False
    gpu: bool = False
    container: str = ""


def wrap(kind: Kind, command: tuple[str, ...], view: View) -> list[str]:
    """Return the command line that runs the command inside the sandbox."""
    if kind == "bwrap":
        return [*_bwrap(view), "--", *command]
    if kind == "unshare":
        return [*_unshare(), *command]
    return list(command)


@functools.cache
def best() -> Kind:
    """Return the strongest kind that really starts here; asked once per process."""
    return next(kind for kind in KINDS if works(kind))


def works(kind: Kind) -> bool:
    """Return whether a minimal sandbox of the kind starts (a version number proves nothing)."""
    if kind == "subreaper":
        return True
    import subprocess

    start = [*_unshare(), "true"]
    if kind == "bwrap":
        start = [*_namespaces(network=False), "--ro-bind", "/", "/", "--proc", "/proc", "true"]
    try:
        done = subprocess.run(start, capture_output=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def become_subreaper() -> None:
    """Make orphans below this process its children, so that none can leave."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def die_with(parent: int) -> None:
    """End this process when its parent does; called in the child between fork and exec."""
    import signal

    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        _libc().prctl(option, value, 0, 0, 0)


@functools.cache
def _libc() -> ctypes.CDLL:
    import ctypes

    return ctypes.CDLL(None, use_errno=True)


def _namespaces(*, network: bool) -> list[str]:
    start = ["bwrap", "--die-with-parent", "--unshare-pid", "--unshare-ipc", "--unshare-uts"]
    if os.getuid() == 0:
        start += ["--cap-drop", "ALL"]
    return start if network else [*start, "--unshare-net"]


def _bwrap(view: View) -> list[str]:
    mounts: list[_Mount] = [
        ("/dev", ["--dev", "/dev"]),
        ("/proc", ["--proc", "/proc"]),
        (TMP, ["--bind", view.tmp, TMP]),
        (view.exchange, ["--bind", view.exchange, view.exchange]),
        *(_contained(view) if view.container else _plain(view)),
    ]
    mounts += [(path, _absent(path)) for path in _outermost(view)]
    hidden = (TMP, *view.masks)
    mounts += [
        (path, ["--ro-bind-try", path, path])
        for path in view.visible
        if any(below(path, mask) for mask in hidden)
    ]
    mounts += _protected(view)
    if view.gpu:
        found = [str(path) for path in Path("/dev").iterdir() if path.name.startswith(_GPU)]
        mounts += [(path, ["--dev-bind", path, path]) for path in found]
    # A mount covers what lies below it, so the outer ones come first.
    mounts.sort(key=lambda mount: mount[0].rstrip("/").count("/"))
    flags = [flag for _, mount in mounts for flag in mount]
    if view.container:
        flags += ["--remount-ro", "/"]
    return [*_namespaces(network=view.network), *flags, "--chdir", view.container or view.work]


_Mount = tuple[str, list[str]]
_GPU = ("nvidia", "dri", "kfd")


def _plain(view: View) -> list[_Mount]:
    return [
        ("/", ["--ro-bind", "/", "/"]),
        (view.work, ["--bind", view.work, view.work]),
    ]


def _contained(view: View) -> list[_Mount]:
    """Return the system and a Harbor task's folders, on a root where they can be made."""
    own = (view.container, f"/{TESTS}", f"/{LOGS}")
    made = {path.split("/")[1] for path in own}
    root = ["--tmpfs", "/"]
    for entry in sorted(Path("/").iterdir()):
        if entry.is_symlink():
            root += ["--symlink", str(entry.readlink()), str(entry)]
        elif entry.name not in made:
            root += ["--ro-bind-try", str(entry), str(entry)]
    return [
        ("/", root),
        (own[0], ["--bind", f"{view.work}/{ENVIRONMENT}", own[0]]),
        (own[1], ["--ro-bind-try", f"{view.work}/{TESTS}", own[1]]),
        (own[2], ["--bind", f"{view.exchange}/{LOGS}", own[2]]),
    ]


def _protected(view: View) -> list[_Mount]:
    """Return the read-only mounts of protected files, none if they are too many."""
    seen = {path: path for path in view.protected}
    if view.container:
        start = f"{view.work}/{ENVIRONMENT}"
        inside = (path for path in view.protected if below(path, start))
        seen = {path: view.container + path.removeprefix(start) for path in inside}
    if len(seen) > _MOST_BINDS:
        return []
    return [(place, ["--ro-bind", path, place]) for path, place in seen.items()]


def _outermost(view: View) -> list[str]:
    """Return the masks that are needed: there, and not inside another mask already."""
    shown = [path for path in view.masks if os.path.lexists(path)]
    return [
        path
        for path in shown
        if any(below(path, seen) for seen in view.visible)
        or not any(other != path and below(path, other) for other in shown)
    ]


def _absent(path: str) -> list[str]:
    if os.path.isdir(path):
        return ["--tmpfs", path]
    return ["--ro-bind", "/dev/null", path]


def _unshare() -> list[str]:
    user = [] if os.getuid() == 0 else ["--user", "--map-current-user"]
    # The inner one is process 1 of the namespace; a program in its place would miss signals.
    outer = ["unshare", *user, "--pid", "--fork", "--kill-child", "--mount-proc", "--"]
    return [*outer, "unshare", "--fork", "--kill-child", "--"]
