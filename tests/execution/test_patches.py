from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outlay.execution.patches import File, PatchError, applied, difference

if TYPE_CHECKING:
    from pathlib import Path

PLAIN, EXECUTABLE, LINK = "100644", "100755", "120000"
LINES = st.lists(st.sampled_from(["a", "b", "", "c\r", "--- a/x", "+++ b", "@@ -1 +1 @@", "ä"]))
CONTENT = st.one_of(
    st.builds(lambda lines, end: ("\n".join(lines) + end).encode(), LINES, st.sampled_from("\n ")),
    st.binary(max_size=200),
    st.just(b""),
)
FILE = st.builds(File, CONTENT, st.sampled_from([PLAIN, EXECUTABLE]))
PATHS = ["f.txt", "a b/c d.txt", 'q"\\uote', "tab\there", "grüße.py", "deep/er/x"]


@given(st.sampled_from(PATHS), st.none() | FILE, st.none() | FILE)
@settings(max_examples=400)
def test_a_difference_applies_to_its_old_file(
    path: str, old: File | None, new: File | None
) -> None:
    patch = difference(path, old, new)
    if old == new:
        assert patch == ""
        return
    found = applied(patch, lambda name: old if name == path else None)
    assert found == {path: new}


CASES = {
    "text": (b"1\n2\n3\n4\n5\n6\n7\n8\n9\n", b"1\n2\nx\n4\n5\n6\n7\n8\n9\n10\n"),
    "no newline": (b"a\nb", b"a\nc"),
    "newline added": (b"a\nb", b"a\nb\n"),
    "binary": (b"\0\1\2" * 50, b"\0\1\3" * 70),
    "to binary": (b"text\n", b"\xff\xfe"),
    "emptied": (b"a\n", b""),
    "filled": (b"", b"a\n"),
    "crlf": (b"a\r\nb\r\n", b"a\r\nc\r\n"),
}


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("path", PATHS)
def test_git_applies_a_difference(tmp_path: Path, case: str, path: str) -> None:
    old, new = CASES[case]
    (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / path).write_bytes(old)
    patch = difference(path, File(old, PLAIN), File(new, EXECUTABLE))
    patch += difference("gone", File(b"x\n", PLAIN), None)
    patch += difference("new/file", None, File(new, PLAIN))
    patch += difference("new/link", None, File(b"../f", LINK))
    (tmp_path / "gone").write_text("x\n")
    _git_apply(tmp_path, patch)
    assert (tmp_path / path).read_bytes() == new
    assert (tmp_path / path).stat().st_mode & 0o100
    assert not (tmp_path / "gone").exists()
    assert (tmp_path / "new/file").read_bytes() == new
    assert (tmp_path / "new/link").readlink().as_posix() == "../f"


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
@pytest.mark.parametrize("case", CASES)
def test_a_patch_from_git_applies(tmp_path: Path, case: str) -> None:
    old, new = CASES[case]
    for name, content in (("a", old), ("b", new)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "f x").write_bytes(content)
        (tmp_path / name / f"only in {name}").write_bytes(b"1\n")
    done = subprocess.run(
        ["git", "diff", "--no-index", "--no-prefix", "--no-renames", "--binary", "a", "b"],
        cwd=tmp_path,
        capture_output=True,
        check=False,
    )
    files = {"f x": File(old, PLAIN), "only in a": File(b"1\n", PLAIN)}
    found = applied(done.stdout.decode("utf-8", "surrogateescape"), files.get)
    if b"delta" not in done.stdout:
        assert found["f x"] == File(new, PLAIN)
        assert found["only in b"] == File(b"1\n", PLAIN)
        assert found["only in a"] is None


def _git_apply(folder: Path, patch: str) -> None:
    subprocess.run(
        ["git", "apply", "--whitespace=nowarn", "-"],
        cwd=folder,
        input=patch.encode(),
        check=True,
        env={"GIT_CEILING_DIRECTORIES": str(folder.parent), "PATH": "/usr/bin:/bin"},
    )


def test_hunks_find_lines_that_moved() -> None:
    patch = "--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n"
    old = File(b"0\n0\na\nb\nc\n", PLAIN)
    assert applied(patch, {"f": old}.get) == {"f": File(b"0\n0\na\nB\nc\n", PLAIN)}


def test_words_around_a_patch_are_no_part_of_it() -> None:
    patch = (
        "From: me\nSubject: -- x\n\n--- a/f\t2020-01-01\n+++ b/f\t2020-01-02\n"
        "@@ -1 +1 @@ def f():\n--x\n+-y\n-- \n2.39.2\n\n"
    )
    assert applied(patch, {"f": File(b"-x\n", PLAIN)}.get) == {"f": File(b"-y\n", PLAIN)}


def test_a_rename_removes_the_old_name() -> None:
    patch = "diff --git a/f b/g\nsimilarity index 100%\nrename from f\nrename to g\n"
    file = File(b"1\n", EXECUTABLE)
    assert applied(patch, {"f": file}.get) == {"f": None, "g": file}


@pytest.mark.parametrize(
    ("patch", "words"),
    [
        ("", "holds no file"),
        ("hello\n", "holds no file"),
        ("--- a/f\n+++ b/f\n@@ -1 +1 @@\n-x\n+y\n", "does not fit f near line 1"),
        ("--- a/no\n+++ b/no\n@@ -1 +1 @@\n-x\n+y\n", "changes no, which is not there"),
        ("--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+y\n", "creates f, which is there already"),
        ("--- f\n+++ f\n@@ -1 +1 @@\n-x\n+y\n", "expected a/"),
        ("diff --git a/b b/b\nGIT binary patch\ndelta 1\nA\n\n", "binary delta"),
        ("diff --git a/b b/b\nGIT binary patch\nliteral 1\nA0\n\n", "damaged"),
    ],
)
def test_a_patch_that_does_not_fit(patch: str, words: str) -> None:
    files = {"f": File(b"1\n", PLAIN), "b": File(b"\xff", PLAIN)}
    with pytest.raises(PatchError, match=words):
        applied(patch, files.get)
