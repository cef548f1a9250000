"""The workspace of one subject: laid out, changed by its levers, guarded, and read back."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from outlay.execution import fault, objects, patches, snapshot
from outlay.globs import matches

if TYPE_CHECKING:
    from outlay.execution.job import Job, Subject
    from outlay.execution.snapshot import Manifest

_CACHES = ("**/__pycache__",)


class Workspace:
    """Files of one subject in `work/N` of the job's folder.

    `files` is the hash of the manifest that the folder holds, hidden files included.
    """

    def __init__(self, job: Job, index: int) -> None:
        self.job = job
        self.subject: Subject = job.subjects[index]
        self.root = Path(job.folder) / "work" / str(index)
        self.files = self.subject.files
        self._loaded: tuple[str, Manifest] | None = None

    def lay_out(self) -> None:
        """Write the starting files and apply the swaps and patches; raises `Fault`."""
        snapshot.lay(self.files, self.job.objects, self.root)
        for target, source in self.subject.swaps.items():
            self._swap(target, source)
        for path in self.subject.patches:
            self._patch(path)
        if self.subject.swaps or self.subject.patches:
            self.files = self._take()
        for source, target in self.job.data.items():
            snapshot.free(self.root, target).symlink_to(source)
        self._guard()

    def withhold(self) -> None:
        """Remove the hidden files, before an agent looks."""
        for path in self._manifest():
            if self._hides(path):
                snapshot.free(self.root, path)
                self._prune(path)

    def settle(self) -> str:
        """Read back what an agent left, add the hidden files, and return what was undone.

        Changes outside the editable paths are undone; a workspace that was removed, or is no
        folder any more, counts as empty; a changed protected file raises `Fault`.
        """
        if self.root.is_symlink() or not self.root.is_dir():
            self.root.unlink(missing_ok=True)
            self.root.mkdir()
        before, after = self._manifest(), snapshot.load(self._take(), self.job.objects)
        undone = []
        for path in sorted(before.keys() | after.keys()):
            if before.get(path) == after.get(path) or self._hides(path):
                continue
            if matches(path, self.job.protected) and path in before:
                raise fault.failed("protected", f"protected file {path} was changed")
            if matches(path, self.job.protected) or not matches(path, self.job.editable):
                undone.append(path)
        self._remove_caches()
        kept = {p: e for p, e in after.items() if p not in undone and not self._hides(p)}
        kept |= {p: e for p, e in before.items() if p in undone or self._hides(p)}
        self.files = snapshot.save(kept, self.job.objects)
        for path in undone:
            snapshot.free(self.root, path)
        snapshot.lay(
            self.files,
            self.job.objects,
            self.root,
            choose=lambda path: path in undone or self._hides(path),
        )
        self._guard()
        return f"outside the editable paths, undone: {', '.join(undone[:5])}" if undone else ""

    def guarded(self) -> list[Path]:
        """Return the files whose content decides the score and that are there now."""
        globs = (*self.job.protected, *self.job.hidden)
        places = (self.root / path for path in self._manifest() if matches(path, globs))
        return [place for place in places if os.path.lexists(place)]

    def check(self) -> None:
        """Raise `Fault` if a protected or hidden file is no longer what it was."""
        manifest = self._manifest()
        globs = (*self.job.protected, *self.job.hidden)
        for path, entry in manifest.items():
            if matches(path, globs) and not self._is(path, entry):
                raise fault.failed("protected", f"protected file {path} was changed")

    def _is(self, path: str, entry: snapshot.Entry) -> bool:
        place = self.root / path
        if place.parent.resolve() != self.root.resolve() / os.path.dirname(path):
            return False
        try:
            if entry.mode == snapshot.LINK:
                target = objects.get(Path(self.job.objects), entry.blob)
                return os.fsencode(os.readlink(place)) == target
            return objects.file_hash(place) == entry.blob
        except OSError:
            return False

    def _prune(self, path: str) -> None:
        """Remove the folders above a path that are empty, since their names tell something."""
        while path := path.rpartition("/")[0]:
            try:
                (self.root / path).rmdir()
            except OSError:
                return

    def _hides(self, path: str) -> bool:
        return matches(path, self.job.hidden)

    def _manifest(self) -> Manifest:
        if self._loaded is None or self._loaded[0] != self.files:
            self._loaded = (self.files, snapshot.load(self.files, self.job.objects))
        return self._loaded[1]

    def _take(self) -> str:
        skip = (*self.job.data.values(), *_CACHES)
        return snapshot.take(self.root, self.job.objects, skip=skip, plain=True)

    def _guard(self) -> None:
        for place in self.guarded():
            if not place.is_symlink():
                place.chmod(stat.S_IMODE(place.stat().st_mode) & ~0o222)

    def _remove_caches(self) -> None:
        # A planted cache file would run in place of the source that it claims to be made from.
        for at, folders, _ in os.walk(self.root):
            if "__pycache__" in folders:
                folders.remove("__pycache__")
                snapshot.free(self.root, os.path.relpath(f"{at}/__pycache__", self.root))

    def _swap(self, target: str, source: str) -> None:
        found = self._read(source)
        if found is None:
            raise fault.failed("patch", f"file {source!r} to swap in for {target!r} is not there")
        snapshot.write(self.root, target, found.mode, [found.content])

    def _patch(self, path: str) -> None:
        text = self._read(path)
        if text is None:
            raise fault.failed("patch", f"patch file {path!r} is not there")
        try:
            changed = patches.applied(text.content.decode("utf-8", "surrogateescape"), self._read)
            for name, file in changed.items():
                if file is None:
                    snapshot.free(self.root, name)
                else:
                    snapshot.write(self.root, name, file.mode, [file.content])
        except ValueError as error:
            raise fault.failed("patch", f"patch {path!r} does not apply: {error}") from error

    def _read(self, path: str) -> patches.File | None:
        """Return a file of the workspace; `None` if it is none or lies behind a link."""
        place = self.root / path
        if place.parent.resolve() != self.root.resolve() / os.path.dirname(path):
            return None
        if place.is_symlink():
            return patches.File(os.fsencode(os.readlink(place)), snapshot.LINK)
        if not place.is_file():
            return None
        executable = place.stat().st_mode & stat.S_IXUSR
        return patches.File(
            place.read_bytes(), snapshot.EXECUTABLE if executable else snapshot.PLAIN
        )
