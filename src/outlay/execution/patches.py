"""Unified patches between snapshots, written and applied without git but in git's format.

`difference` and `applied` are pure: file contents in, text or file contents out.
"""

from __future__ import annotations

import base64
import hashlib
import re
import zlib
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PLAIN = "100644"
_ESCAPES = {"\a": "a", "\b": "b", "\t": "t", "\n": "n", "\v": "v", "\f": "f", "\r": "r"}
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_NO_NEWLINE = "\\ No newline at end of file\n"


class File(NamedTuple):
    """A file's content and its mode as git writes it."""

    content: bytes
    mode: str


class PatchError(ValueError):
    """Raised when a patch cannot be read or does not fit the files."""


def difference(path: str, old: File | None, new: File | None) -> str:
    """Return the patch of one file that `git apply` takes; `None` stands for no file.

    Contents that are not UTF-8 text go in as a git binary literal, so that nothing is lost.
    """
    if old == new:
        return ""
    if old is not None and new is not None and old.mode[:3] != new.mode[:3]:
        return difference(path, old, None) + difference(path, None, new)  # a file became a link
    text = f"diff --git {_quoted('a/' + path)} {_quoted('b/' + path)}\n" + _modes(old, new)
    before, after = old.content if old else b"", new.content if new else b""
    if before == after:
        return text
    lines, others = _lines(before), _lines(after)
    if lines is None or others is None:
        both = _literal(after) + _literal(before)
        return text + _index(old, new) + "GIT binary patch\n" + both
    text += f"--- {_name('a/' + path) if old else '/dev/null'}\n"
    text += f"+++ {_name('b/' + path) if new else '/dev/null'}\n"
    return text + "".join(_hunks(lines, others))


def applied(
    patch: str, read: Callable[[str], File | None], *, strip: int = 1
) -> dict[str, File | None]:
    """Return the new files of a patch by path, `None` for those that it removes.

    Args:
        patch: A unified diff as `git diff` or `diff -u` writes it, or `difference` here, decoded
            with `surrogateescape`.
        read: Returns the file at a path as it stands.
        strip: Leading parts of the names in the patch that are dropped.

    Raises:
        PatchError: A part has no place where its context fits, or is of a kind not known here.
    """
    out: dict[str, File | None] = {}
    sections = _sections(patch)
    for section in sections:
        source, target = _names(section, strip)
        old = out[source] if source in out else read(source) if source else None
        if source and old is None:
            raise PatchError(f"patch changes {source}, which is not there")
        if not source and (out[target] if target in out else read(target)) is not None:
            raise PatchError(f"patch creates {target}, which is there already")
        new = _changed(section, source or target, old)
        if source and source != target and not section.copies:
            out[source] = None
        if target:
            out[target] = new
    if not sections:
        raise PatchError("patch holds no file: expected lines '--- a/file' and '+++ b/file'")
    return out


class _Section(NamedTuple):
    head: list[str]
    body: list[str]

    def field(self, start: str) -> str | None:
        """Return the rest of the head's line that begins so."""
        return next((line[len(start) :] for line in self.head if line.startswith(start)), None)

    @property
    def copies(self) -> bool:
        return self.field("copy from ") is not None


def _sections(patch: str) -> list[_Section]:
    found: list[_Section] = []
    left = [0, 0]
    for line in _split(patch):
        inside = left[0] > 0 or left[1] > 0
        if not inside and _begins(line, found):
            found.append(_Section([], []))
        if not found:
            continue
        head, body = found[-1]
        if not inside and (match := _HUNK.match(line)):
            left = [int(match[2] or 1), int(match[4] or 1)]
            body.append(line)
        elif inside:
            body.append(line)
            left[0] -= line[:1] in (" ", "-", "\n")
            left[1] -= line[:1] in (" ", "+", "\n")
        elif line.startswith(("GIT binary patch", "\\")) or (body and body[0].startswith("GIT ")):
            body.append(line)
        elif not body:
            head.append(line.rstrip("\n"))
    return found


def _begins(line: str, found: list[_Section]) -> bool:
    if line.startswith("diff --git "):
        return True
    if not line.startswith("--- "):
        return False
    return not found or bool(found[-1].body) or found[-1].field("--- ") is not None


def _names(section: _Section, strip: int) -> tuple[str, str]:
    """Return the old and the new path, empty where there is no file."""
    source, target = section.field("--- "), section.field("+++ ")
    for moved in ("rename", "copy"):
        if (before := section.field(f"{moved} from ")) is not None:
            return _unquoted(before), _unquoted(section.field(f"{moved} to ") or "")
    if source is None or target is None:
        name = _from_header(section)
        source = "/dev/null" if section.field("new file mode ") else name
        target = "/dev/null" if section.field("deleted file mode ") else name
    return _stripped(source, strip), _stripped(target, strip)


def _from_header(section: _Section) -> str:
    text = section.field("diff --git ") or ""
    if text.startswith('"'):
        return text[: text.index('" ') + 1]
    return text[: len(text) // 2]  # both names are equal but for a/ and b/


def _stripped(name: str, strip: int) -> str:
    name = name if name.startswith('"') else name.split("\t")[0].rstrip()
    if name == "/dev/null":
        return ""
    parts = _unquoted(name).split("/")
    if len(parts) <= strip:
        raise PatchError(f"patch names {name!r}; expected a/… and b/… before the path")
    return "/".join(parts[strip:])


def _changed(section: _Section, path: str, old: File | None) -> File:
    mode = section.field("new mode ") or section.field("new file mode ")
    mode = (mode or (old.mode if old else PLAIN)).strip()
    content = old.content if old else b""
    if not section.body:
        return File(content, mode)
    if section.body[0].startswith("GIT binary patch"):
        return File(_from_literal(section.body[1:], path), mode)
    # Bytes that are no UTF-8 pass through unchanged, as they do in git's text patches.
    lines = _split(content.decode("utf-8", "surrogateescape"))
    text = "".join(_patched(lines, section.body, path))
    return File(text.encode("utf-8", "surrogateescape"), mode)


def _patched(lines: list[str], body: list[str], path: str) -> list[str]:
    out: list[str] = []
    at = drift = 0
    for start, before, after in _read_hunks(body):
        place = _find(lines, before, start + drift, at)
        if place is None:
            raise PatchError(f"patch does not fit {path} near line {start + 1}")
        drift = place - start
        out += lines[at:place] + after
        at = place + len(before)
    return out + lines[at:]


def _find(lines: list[str], wanted: list[str], near: int, at: int) -> int | None:
    """Return the place nearest to the expected one where the lines stand, from `at` on."""
    if not wanted:
        return min(max(near, at), len(lines))
    places = (
        i
        for i in range(at, len(lines) - len(wanted) + 1)
        if lines[i] == wanted[0] and lines[i : i + len(wanted)] == wanted
    )
    return min(places, key=lambda i: abs(i - near), default=None)


def _read_hunks(body: list[str]) -> Iterator[tuple[int, list[str], list[str]]]:
    """Yield start (from 0), lines before and lines after of every hunk."""
    starts = [i for i, line in enumerate(body) if _HUNK.match(line)]
    for i, end in zip(starts, [*starts[1:], len(body)], strict=True):
        match = _HUNK.match(body[i])
        assert match is not None  # noqa: S101 - the line was chosen by this
        before: list[str] = []
        after: list[str] = []
        last: list[list[str]] = []
        for line in body[i + 1 : end]:
            if line.startswith("\\"):
                for side in last:
                    side[-1] = side[-1].removesuffix("\n")
                continue
            kind, rest = (line[0], line[1:]) if line != "\n" else (" ", "\n")
            last = {" ": [before, after], "-": [before], "+": [after]}.get(kind, [])
            for side in last:
                side.append(rest)
        start = int(match[1])
        yield (start if match[2] == "0" else start - 1), before, after


def _modes(old: File | None, new: File | None) -> str:
    if old is None and new is not None:
        return f"new file mode {new.mode}\n"
    if new is None and old is not None:
        return f"deleted file mode {old.mode}\n"
    if old is not None and new is not None and old.mode != new.mode:
        return f"old mode {old.mode}\nnew mode {new.mode}\n"
    return ""


def _hunks(old: list[str], new: list[str]) -> Iterator[str]:
    from difflib import unified_diff  # slow to import, and only needed here

    for i, line in enumerate(unified_diff(old, new, n=3)):
        if i >= 2:  # the first two lines are the names
            yield line if line.endswith("\n") else line + "\n" + _NO_NEWLINE


def _lines(content: bytes) -> list[str] | None:
    """Return the text's lines; `None` for what is not text."""
    if b"\0" in content:
        return None
    try:
        return _split(content.decode("utf-8"))
    except UnicodeDecodeError:
        return None


def _split(text: str) -> list[str]:
    """Return the lines with their ends; only a line feed ends a line, as for git."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def _index(old: File | None, new: File | None) -> str:
    # git wants whole names to take a binary patch; it checks them only where it can.
    return f"index {_git_name(old)}..{_git_name(new)}\n"


def _git_name(file: File | None) -> str:
    if file is None:
        return "0" * 40
    head = f"blob {len(file.content)}\0".encode()
    return hashlib.sha1(head + file.content, usedforsecurity=False).hexdigest()


def _literal(content: bytes) -> str:
    packed = zlib.compress(content)
    text = f"literal {len(content)}\n"
    for i in range(0, len(packed), 52):
        part = packed[i : i + 52]
        size = chr(ord("A") + len(part) - 1) if len(part) <= 26 else chr(ord("a") + len(part) - 27)
        text += size + base64.b85encode(part, pad=True).decode() + "\n"
    return text + "\n"


def _from_literal(body: list[str], path: str) -> bytes:
    if not body or not body[0].startswith("literal "):
        raise PatchError(f"patch of {path} is a binary delta; write it with git diff --full-index")
    packed = b""
    for line in body[1:]:
        if line == "\n":
            break
        size = ord(line[0]) - (ord("A") - 1 if line[0] <= "Z" else ord("a") - 27)
        packed += base64.b85decode(line[1:].rstrip("\n"))[:size]
    try:
        return zlib.decompress(packed)
    except zlib.error as error:
        raise PatchError(f"patch of {path} holds a damaged binary part: {error}") from error


def _name(name: str) -> str:
    quoted = _quoted(name)
    return quoted + "\t" if " " in name and quoted == name else quoted


def _quoted(name: str) -> str:
    out = ""
    for char in name:
        if char in '"\\':
            out += "\\" + char
        elif char in _ESCAPES:
            out += "\\" + _ESCAPES[char]
        elif 32 <= ord(char) < 127:
            out += char
        else:
            out += "".join(f"\\{byte:03o}" for byte in char.encode("utf-8", "surrogateescape"))
    return name if out == name else f'"{out}"'


def _unquoted(name: str) -> str:
    if not name.startswith('"'):
        return name
    back = {code: char.encode() for char, code in _ESCAPES.items()} | {'"': b'"', "\\": b"\\"}

    def one(match: re.Match[bytes]) -> bytes:
        code = match[1].decode()
        return bytes([int(code, 8)]) if code.isdigit() else back.get(code, code.encode())

    inner = name[1 : name.rindex('"')].encode("utf-8", "surrogateescape")
    return re.sub(rb"\\([0-7]{3}|.)", one, inner).decode("utf-8", "surrogateescape")
