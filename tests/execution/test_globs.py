from __future__ import annotations

import pytest

from outlay.execution.globs import covers


@pytest.mark.parametrize(
    ("pattern", "path", "is_covered"),
    [
        ("**", "a/b/c", True),
        ("a.py", "a.py", True),
        ("a.py", "b/a.py", False),
        ("a.py", "axpy", False),
        ("*.py", "a.py", True),
        ("*.py", "b/a.py", False),
        ("**/*.py", "a.py", True),
        ("**/*.py", "b/c/a.py", True),
        ("data", "data/x/y", True),
        ("data/", "data/x", True),
        ("./data", "data/x", True),
        ("data", "src/data", False),
        ("data", "database", False),
        ("**/data", "src/data/x", True),
        ("data/**", "data/x/y", True),
        ("data/**", "data", False),
        ("a/**/z", "a/z", True),
        ("a/**/z", "a/b/c/z", True),
        ("a/*/z", "a/b/c/z", False),
        ("a?c", "abc", True),
        ("a?c", "a/c", False),
        ("[ab].py", "b.py", True),
        ("[!ab].py", "b.py", False),
        ("[!ab].py", "c.py", True),
        ("a[!x]b", "a/b", False),
        ("a[1", "a[1", True),
        (".hidden", ".hidden", True),
        ("*", ".hidden", True),
        ("a.py", "a.py\n", False),
        ("a+b(c)", "a+b(c)", True),
    ],
)
def test_covers(pattern: str, path: str, is_covered: bool) -> None:
    assert covers([pattern], path) is is_covered


def test_no_pattern_covers_nothing() -> None:
    assert not covers([], "a")
