from __future__ import annotations

import os
import subprocess
import threading
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outlay.execution import objects as store
from outlay.execution import snapshot

if TYPE_CHECKING:
    from pathlib import Path


def tree(root: Path) -> dict[str, tuple[str, bytes]]:
    """Return what stands below a folder, read without the code under test."""
    found = {}
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        if path.is_symlink():
            found[name] = ("link", os.fsencode(path.readlink()))
        elif path.is_file():
            mode = "x" if path.stat().st_mode & 0o100 else "-"
            found[name] = (mode, path.read_bytes())
    return found


def build(root: Path) -> None:
    (root / "a/b").mkdir(parents=True)
    (root / "a/b/c.py").write_text("1\n")
    (root / "run.sh").write_text("#!/bin/sh\n")
    (root / "run.sh").chmod(0o755)
    (root / "big").write_bytes(os.urandom(3_000_000))
    (root / "empty").write_bytes(b"")
    (root / "link").symlink_to("a/b/c.py")
    (root / "out").symlink_to("/etc")
    (root / os.fsdecode(b"odd\xff name")).write_text("odd")


def test_a_snapshot_comes_back_as_it_was(tmp_path: Path) -> None:
    root = tmp_path / "ws"
    build(root)
    manifest = snapshot.take(root, tmp_path / "objects")
    snapshot.lay(manifest, tmp_path / "objects", tmp_path / "again")
    assert tree(tmp_path / "again") == tree(root)
    assert snapshot.take(tmp_path / "again", tmp_path / "objects") == manifest


def test_no_history_no_task_file_no_store(tmp_path: Path) -> None:
    root = tmp_path / "ws"
    for path in (".git/config", ".outlay/x", "outlay.toml", "sub/.git/x", "sub/outlay.toml", "a"):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("x")
    manifest = snapshot.take(root, tmp_path / "objects", plain=True)
    assert list(snapshot.load(manifest, tmp_path / "objects")) == ["a", "sub/outlay.toml"]


def git(root: Path, *arguments: str) -> None:
    subprocess.run(
        ["git", "-c", "user.name=n", "-c", "user.email=e@x", *arguments],
        cwd=root,
        check=True,
        capture_output=True,
    )


def test_in_a_repository_what_git_tracks_or_would(tmp_path: Path) -> None:
    root = tmp_path / "ws"
    build(root)
    git(root, "init", "-q")
    (root / ".gitignore").write_text("ignored\n*.log\n")
    (root / "gone").write_text("1")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "x")
    (root / "gone").unlink()
    (root / "ignored").mkdir()
    (root / "ignored/x").write_text("x")
    (root / "a/new").write_text("new")
    (root / "a/b/c.py").write_text("changed\n")
    before = sorted((p, p.stat().st_mtime_ns) for p in (root / ".git").rglob("*"))
    found = snapshot.load(snapshot.take(root, tmp_path / "o"), tmp_path / "o")
    assert sorted((p, p.stat().st_mtime_ns) for p in (root / ".git").rglob("*")) == before
    assert "gone" not in found
    assert "ignored/x" not in found
    assert store.get(tmp_path / "o", found["a/b/c.py"].blob) == b"changed\n"
    inner = snapshot.load(snapshot.take(root / "a", tmp_path / "o"), tmp_path / "o")
    assert list(inner) == ["b/c.py", "new"]


def test_an_ignored_folder_is_a_plain_one(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    (tmp_path / ".gitignore").write_text("ws\n")
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws/x.log").write_text("x")
    found = snapshot.load(snapshot.take(tmp_path / "ws", tmp_path / "o"), tmp_path / "o")
    assert list(found) == ["x.log"]


def test_skip_and_choose(tmp_path: Path) -> None:
    build(tmp_path / "ws")
    manifest = snapshot.take(tmp_path / "ws", tmp_path / "o", skip=("a", "big", "o*"))
    assert list(snapshot.load(manifest, tmp_path / "o")) == ["empty", "link", "run.sh"]
    snapshot.lay(manifest, tmp_path / "o", tmp_path / "t", choose=lambda path: path == "run.sh")
    assert list(tree(tmp_path / "t")) == ["run.sh"]


def test_what_is_no_file_is_left_out(tmp_path: Path) -> None:
    root = tmp_path / "ws"
    root.mkdir()
    os.mkfifo(root / "pipe")
    (root / "f").write_text("x")
    manifest = snapshot.take(root, tmp_path / "o")
    assert list(snapshot.load(manifest, tmp_path / "o")) == ["f"]
    with pytest.raises(OSError, match="no regular file"):
        store.file_hash(root / "pipe")


def test_laying_replaces_and_never_leaves_the_target(tmp_path: Path) -> None:
    root = tmp_path / "ws"
    (root / "eval").mkdir(parents=True)
    (root / "eval/hidden.py").write_text("right")
    (root / "file").write_text("right")
    manifest = snapshot.take(root, tmp_path / "o")
    outside, target = tmp_path / "outside", tmp_path / "t"
    outside.mkdir()
    target.mkdir()
    (outside / "hidden.py").write_text("untouched")
    (target / "eval").symlink_to(outside)
    (target / "file").mkdir()
    (target / "file/more").write_text("x")
    snapshot.lay(manifest, tmp_path / "o", target)
    assert (outside / "hidden.py").read_text() == "untouched"
    assert tree(target) == tree(root)


@pytest.mark.parametrize("path", ["../x", "/etc/x", "a/../../x", "", "a//b", "."])
def test_a_path_that_leaves_is_refused(tmp_path: Path, path: str) -> None:
    with pytest.raises(ValueError, match="leaves the workspace"):
        snapshot.free(tmp_path, path)


def test_a_damaged_object_is_named(tmp_path: Path) -> None:
    name = store.put(tmp_path, os.urandom(1000))
    place = tmp_path / name[:2] / name[2:]
    whole = place.read_bytes()
    for damaged in (whole[: len(whole) // 2], b"", b"y" + whole[1:], store_of(b"other")):
        place.write_bytes(damaged)
        with pytest.raises(store.Damaged, match=name):
            store.get(tmp_path, name)
    place.unlink()
    with pytest.raises(store.Damaged, match=name):
        store.get(tmp_path, name)


def store_of(content: bytes) -> bytes:
    import zlib

    return zlib.compress(content)


def test_many_writers_of_the_same_content(tmp_path: Path) -> None:
    content = os.urandom(200_000)
    threads = [threading.Thread(target=store.put, args=(tmp_path, content)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (name,) = {"".join(p.parts[-2:]) for p in tmp_path.rglob("*") if p.is_file()}
    assert store.get(tmp_path, name) == content


FILES = st.dictionaries(
    st.sampled_from(["a", "b/c", "b/d e", "z"]), st.sampled_from([b"", b"1\n", b"2", b"\0\xff"])
)


@given(FILES, FILES)
@settings(max_examples=25, deadline=None)
def test_the_difference_of_two_snapshots(
    tmp_path_factory: pytest.TempPathFactory, old: dict[str, bytes], new: dict[str, bytes]
) -> None:
    base = tmp_path_factory.mktemp("d")
    hashes = []
    for name, files in (("old", old), ("new", new)):
        for path, content in files.items():
            (base / name / path).parent.mkdir(parents=True, exist_ok=True)
            (base / name / path).write_bytes(content)
        (base / name).mkdir(exist_ok=True)
        hashes.append(snapshot.take(base / name, base / "o", plain=True))
    patch = snapshot.diff(hashes[0], hashes[1], base / "o")
    assert (patch == "") == (old == new)
    if patch:
        env = {"GIT_CEILING_DIRECTORIES": str(base), "PATH": "/usr/bin:/bin"}
        command = ["git", "apply", "--whitespace=nowarn", "-"]
        subprocess.run(command, cwd=base / "old", input=patch.encode(), check=True, env=env)
        assert tree(base / "old") == tree(base / "new")
