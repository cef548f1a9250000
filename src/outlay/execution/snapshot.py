"""Snapshots of a folder's files: taken into an object store, laid out again anywhere.

A snapshot is a manifest, itself an object: path to (object, mode). It holds files, no history: a
hidden file could be read from history. Empty folders, pipes, sockets and devices are left out.
"""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from outlay.execution import objects as store
from outlay.execution.patches import File, difference
from outlay.globs import matches

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

PLAIN, EXECUTABLE, LINK = "100644", "100755", "120000"
NEVER = ("**/.git", "**/.outlay", "**/__pycache__", "outlay.toml", ".venv")
"""What no snapshot holds, so what no agent sees; byte code comes and goes by itself."""


class Entry(NamedTuple):
    """One file: the object with its content (a link's target) and its mode as git writes it."""

    blob: str
    mode: str


Manifest = dict[str, Entry]


def take(
    folder: str | os.PathLike[str],
    objects: str | os.PathLike[str],
    *,
    skip: Iterable[str] = (),
    plain: bool = False,
) -> str:
    """Return the hash of the manifest of the folder's files, which are stored.

    In a git repository these are the tracked files and the untracked ones that are not ignored,
    as they stand in the working tree; git is only read. Elsewhere, or with `plain`, all files.

    Args:
        folder: Where the files are.
        objects: Object store, made if absent.
        skip: Globs of files to leave out, beside `NEVER`.
        plain: Whether to take all files without asking git.
    """
    root, left_out = Path(folder), (*NEVER, *skip)
    manifest: Manifest = {}
    for path in _listed(root, plain=plain):
        if not matches(path, left_out):
            entry = _stored(root / path, Path(objects))
            if entry is not None:
                manifest[path] = entry
    return save(manifest, objects)


def save(manifest: Manifest, objects: str | os.PathLike[str]) -> str:
    """Store a manifest and return its hash; equal files give an equal hash."""
    return store.put(Path(objects), encoded(manifest))


def encoded(manifest: Manifest) -> bytes:
    """Return the manifest as it is stored."""
    files = {path: list(manifest[path]) for path in sorted(manifest)}
    return json.dumps({"format": 1, "files": files}, separators=(",", ":")).encode("ascii")


def load(manifest: str, objects: str | os.PathLike[str]) -> Manifest:
    """Return the manifest of that hash; raises `objects.Damaged`."""
    fields: Any = json.loads(store.get(Path(objects), manifest))
    return {path: Entry(*entry) for path, entry in fields["files"].items()}


def lay(
    manifest: str,
    objects: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    choose: Callable[[str], bool] = lambda path: True,
) -> None:
    """Write the manifest's files into the target folder, over whatever is there.

    Args:
        manifest: Hash of the manifest.
        objects: Its object store.
        target: Folder, made if absent. Nothing outside it is written, whatever links it holds.
        choose: Which paths to write.
    """
    root = Path(target)
    root.mkdir(parents=True, exist_ok=True)
    for path, entry in load(manifest, objects).items():
        if choose(path):
            write(root, path, entry.mode, store.stream(Path(objects), entry.blob))


def diff(old: str, new: str, objects: str | os.PathLike[str]) -> str:
    """Return the patch from one manifest to another, in the format that `git apply` takes.

    Contents that are not UTF-8 text are in it as git binary literals.
    """
    before, after = load(old, objects), load(new, objects)
    changed = sorted(
        path for path in before.keys() | after.keys() if before.get(path) != after.get(path)
    )

    def file(entry: Entry | None) -> File | None:
        return File(store.get(Path(objects), entry.blob), entry.mode) if entry else None

    return "".join(difference(p, file(before.get(p)), file(after.get(p))) for p in changed)


def write(root: Path, path: str, mode: str, content: Iterable[bytes]) -> None:
    """Write one file or link below the root, replacing what is there, never through a link."""
    place = free(root, path)
    if mode == LINK:
        place.symlink_to(os.fsdecode(b"".join(content)))
        return
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(place, flags, 0o755 if mode == EXECUTABLE else 0o644), "wb") as file:
        for chunk in content:
            file.write(chunk)


def free(root: Path, path: str) -> Path:
    """Return the place of a path below the root, with real folders above it and nothing there.

    Raises `ValueError` for a path that leaves the root.
    """
    parts = path.split("/")
    if not path or any(part in ("", ".", "..") for part in parts):
        raise ValueError(f"path {path!r} leaves the workspace; paths are relative, without ..")
    place = root
    for part in parts[:-1]:
        place = place / part
        if place.is_symlink() or not place.is_dir():
            place.unlink(missing_ok=True)
            place.mkdir()
    place = place / parts[-1]
    if place.is_dir() and not place.is_symlink():
        remove_tree(place)
    place.unlink(missing_ok=True)
    return place


def remove_tree(folder: Path) -> None:
    """Remove a folder with everything in it, however its modes were left; links stay closed."""
    os.chmod(folder, 0o700)
    with os.scandir(folder) as found:
        for item in found:
            if item.is_dir(follow_symlinks=False):
                remove_tree(Path(item.path))
            else:
                os.unlink(item.path)
    os.rmdir(folder)


def all_files(root: Path) -> Iterator[str]:
    """Yield the relative paths of all files and links below the root, links not followed."""
    todo = [""]
    while todo:
        at = todo.pop()
        with os.scandir(root / at) as found:
            for item in found:
                path = f"{at}/{item.name}" if at else item.name
                if item.is_dir(follow_symlinks=False):
                    if not matches(path, NEVER):
                        todo.append(path)
                else:
                    yield path


def _listed(root: Path, *, plain: bool) -> Iterator[str]:
    tracked = None if plain else _git_files(root)
    if tracked is None:
        yield from all_files(root)
        return
    for path in tracked:
        inner = root / path
        if inner.is_dir() and not inner.is_symlink():  # a submodule or a nested repository
            yield from (f"{path.rstrip('/')}/{below}" for below in all_files(inner))
        else:
            yield path


def _git_files(root: Path) -> list[str] | None:
    """Return what git tracks or would track; `None` without git or where it ignores the root."""
    if _git(root, "rev-parse", "--is-inside-work-tree") != b"true\n":
        return None
    if _git(root, "check-ignore", "-q", ".") is not None:
        return None
    listed = _git(root, "ls-files", "-co", "--exclude-standard", "-z")
    return None if listed is None else sorted({os.fsdecode(p) for p in listed.split(b"\0") if p})


def dirty(folder: str | os.PathLike[str]) -> bool:
    """Return whether git knows of changes in the folder that are not committed."""
    return bool(_git(Path(folder), "status", "--porcelain", "--", "."))


def _git(root: Path, *arguments: str) -> bytes | None:
    import subprocess  # not needed in an attempt's process, which has to start fast

    # Only to read: no index refresh, no hook of the repository, whoever owns the folder.
    options = ("-c", "safe.directory=*", "-c", "core.fsmonitor=false", "-C", str(root))
    env = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    env["GIT_OPTIONAL_LOCKS"] = "0"
    command = ("git", *options, *arguments)
    try:
        done = subprocess.run(command, capture_output=True, env=env, check=False)
    except FileNotFoundError:
        return None
    return done.stdout if done.returncode == 0 else None


def _stored(path: Path, objects: Path) -> Entry | None:
    try:
        mode = path.lstat().st_mode
        if stat.S_ISLNK(mode):
            return Entry(store.put(objects, os.fsencode(path.readlink())), LINK)
        if stat.S_ISREG(mode):
            blob = store.put_file(objects, path)
            return Entry(blob, EXECUTABLE if mode & stat.S_IXUSR else PLAIN)
    except FileNotFoundError:
        return None  # Tracked by git but deleted, or gone while we looked.
    return None
