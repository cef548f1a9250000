"""What `import outlay` promises: its names, their documentation, and that it is cheap."""

from __future__ import annotations

import inspect
import subprocess
import sys
import types

import pytest

import outlay

HELP = """\
import contextlib, io, sys
from outlay.__main__ import main
sys.argv = ["outlay", "--help"]
with contextlib.redirect_stdout(io.StringIO()):
    main()
"""

HEAVY = ("numpy", "scipy", "click", "rich", "msgspec", "sqlite3", "pandas", "matplotlib")


def test_the_names_are_sorted_and_all_can_be_imported() -> None:
    assert sorted(outlay.__all__) == list(outlay.__all__)
    assert len(set(outlay.__all__)) == len(outlay.__all__)
    space: dict[str, object] = {}
    exec("from outlay import *", space)
    assert set(space) - {"__builtins__"} == set(outlay.__all__)
    assert set(outlay.__all__) <= set(dir(outlay))


def test_what_is_importable_and_not_a_module_is_listed() -> None:
    public = {
        name
        for name, value in vars(outlay).items()
        if not name.startswith("_") and not isinstance(value, types.ModuleType)
    }
    assert public - {"annotations", "Any", "TYPE_CHECKING"} <= set(outlay.__all__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        outlay.nothing  # noqa: B018


@pytest.mark.parametrize("name", outlay.__all__)
def test_every_public_thing_is_documented(name: str) -> None:
    thing = getattr(outlay, name)
    assert _documented(thing), name
    if inspect.isclass(thing):
        for part, value in vars(thing).items():
            value = value.fget if isinstance(value, property) else value
            if not part.startswith("_") and inspect.isfunction(value):
                assert _documented(value), f"{name}.{part}"


def _documented(thing: object) -> bool:
    text = getattr(thing, "__doc__", None) or ""
    # A dataclass without one gets its own signature for documentation.
    return bool(text.strip()) and not text.startswith(f"{getattr(thing, '__name__', '')}(")


@pytest.mark.parametrize(
    ("code", "absent"),
    [
        ("import outlay", HEAVY),
        (HELP, ("numpy", "scipy", "pandas", "matplotlib")),
    ],
    ids=["import", "help"],
)
def test_what_is_cheap_loads_nothing_heavy(code: str, absent: tuple[str, ...]) -> None:
    show = "\nimport sys\nprint(*{name.partition('.')[0] for name in sys.modules})"
    done = subprocess.run(
        [sys.executable, "-c", code + show], capture_output=True, text=True, check=True
    )
    loaded = set(done.stdout.split())
    assert "outlay" in loaded
    assert not loaded & set(absent)
