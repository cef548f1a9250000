"""Content-addressed store of file contents: `objects/ab/cdef…`, compressed, named by SHA-256."""

from __future__ import annotations

import hashlib
import os
import stat
import zlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_CHUNK = 1 << 20


class Damaged(ValueError):  # noqa: N818 - reads as what was found
    """Raised when an object's content is not what its name says, or is absent."""


def name_of(content: bytes) -> str:
    """Return the name that the content has in every object store."""
    return hashlib.sha256(content).hexdigest()


def put(objects: Path, content: bytes) -> str:
    """Store the content and return its name."""
    name = name_of(content)
    if not _place(objects, name).exists():
        _write(objects, name, iter([content]))
    return name


def put_file(objects: Path, path: Path) -> str:
    """Store a regular file's content and return its name; raises `OSError` for anything else."""
    name = file_hash(path)
    if not _place(objects, name).exists():
        _write(objects, name, _chunks(path))
    return name


def holds(objects: Path, name: str) -> bool:
    """Return whether there is an object of that name."""
    return _place(objects, name).is_file()


def file_hash(path: Path) -> str:
    """Return the SHA-256 of a regular file; links, pipes and devices raise `OSError`."""
    digest = hashlib.sha256()
    for chunk in _chunks(path):
        digest.update(chunk)
    return digest.hexdigest()


def get(objects: Path, name: str) -> bytes:
    """Return the content of that name; raises `Damaged`."""
    return b"".join(stream(objects, name))


def stream(objects: Path, name: str) -> Iterator[bytes]:
    """Yield the content in chunks; raises `Damaged`, at the end at the latest."""
    digest, unpack = hashlib.sha256(), zlib.decompressobj()
    try:
        with open(_place(objects, name), "rb") as file:
            while packed := file.read(_CHUNK):
                chunk = unpack.decompress(packed)
                digest.update(chunk)
                yield chunk
    except (FileNotFoundError, zlib.error) as error:
        raise Damaged(f"object {name} in {objects}: {error}") from error
    if digest.hexdigest() != name:
        raise Damaged(f"object {name} in {objects}: its content is another, restore or remove it")


def _place(objects: Path, name: str) -> Path:
    return objects / name[:2] / name[2:]


def _write(objects: Path, name: str, chunks: Iterator[bytes]) -> None:
    place = _place(objects, name)
    place.parent.mkdir(parents=True, exist_ok=True)
    beside = place.with_name(f".{name[2:10]}.{os.urandom(4).hex()}")
    digest, pack = hashlib.sha256(), zlib.compressobj(1)
    try:
        with open(beside, "wb") as file:
            for chunk in chunks:
                digest.update(chunk)
                file.write(pack.compress(chunk))
            file.write(pack.flush())
        if digest.hexdigest() != name:
            raise Damaged(f"object {name}: the file changed while it was read; try again")
        beside.rename(place)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def _chunks(path: Path) -> Iterator[bytes]:
    # Opening a pipe would wait for its writer and a link may lead out of the workspace.
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(handle, "rb", buffering=0) as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(f"{path} is no regular file")
        while chunk := file.read(_CHUNK):
            yield chunk
