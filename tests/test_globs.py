from __future__ import annotations

import pytest

from outlay import globs


@pytest.mark.parametrize(
    ("glob", "path"),
    [
        ("**", "a"),
        ("**", "a/b/c.py"),
        ("*.py", "a.py"),
        ("src/**", "src/a/b.py"),
        ("src/**/*.py", "src/a.py"),
        ("src/**/*.py", "src/x/y/a.py"),
        ("**/test_*.py", "test_a.py"),
        ("**/test_*.py", "t/u/test_a.py"),
        ("src", "src/a/b.py"),
        ("src/", "src/a/b.py"),
        ("./src", "src/a.py"),
        ("a?c", "abc"),
        ("[id].tsx", "[id].tsx"),
        ("a.b", "a.b"),
    ],
)
def test_a_glob_names(glob: str, path: str) -> None:
    assert globs.matches(path, (glob,))


@pytest.mark.parametrize(
    ("glob", "path"),
    [
        ("*.py", "a/b.py"),
        ("src/*", "srcs/a"),
        ("src", "src2/a.py"),
        ("src/**/*.py", "src/a.txt"),
        ("a?c", "a/c"),
        ("a.b", "axb"),
        ("[id].tsx", "i.tsx"),
        ("*.py", "a.pyc"),
    ],
)
def test_a_glob_does_not_name(glob: str, path: str) -> None:
    assert not globs.matches(path, (glob,))


def test_many_stars_stay_fast() -> None:
    assert not globs.matches("a" * 200, ("*a" * 3 + "b",))
