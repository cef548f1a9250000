from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outlay.ablations.components import between, combined, split
from outlay.errors import InputError
from outlay.execution import objects as store
from outlay.execution import snapshot
from outlay.execution.patches import File, applied

if TYPE_CHECKING:
    from pathlib import Path

PLAIN, LINK = "100644", "120000"

lines = st.lists(st.sampled_from(["a", "b", "c", "", "mode x"]), max_size=60)


def file(text: str, mode: str = PLAIN) -> File:
    return File(text.encode(), mode)


def after(parts, old):
    """Return the file once the components were applied one after the other."""
    for part in parts:
        found = applied(part.patch, lambda path, now=old: now if path == "p" else None)
        old = found["p"]
    return old


@settings(deadline=None, max_examples=200)
@given(before=lines, edits=st.lists(st.tuples(st.integers(0, 60), st.sampled_from("xyz-"))))
def test_all_hunks_make_the_champion_and_every_subset_applies_where_it_belongs(
    before, edits
) -> None:
    changed = {place: what for place, what in edits if place < len(before)}
    new = [changed.get(k, line) for k, line in enumerate(before)]
    old, champion = file("\n".join(before)), file("\n".join(new))
    if old == champion:
        return
    parts = split("p", old, champion)
    assert after(parts, old) == champion
    assert len({part.name for part in parts}) == len(parts)
    for size in range(1, min(len(parts), 3)):
        for some in combinations(parts, size):
            # Hunks replace lines one by one here, so each line comes from one of the two files.
            found = after(some, old).content.decode().split("\n")
            touched = [k for k in range(len(before)) if found[k] != before[k]]
            assert all(found[k] == new[k] for k in touched)


def test_hunks_are_named_by_the_line_that_they_change() -> None:
    before = [str(k) for k in range(40)]
    new = [*before]
    new[4], new[29] = "changed", "too"
    parts = split("src/p.py", file("\n".join(before)), file("\n".join(new)))
    assert [part.name for part in parts] == ["src/p.py:30", "src/p.py:5"]
    one = split("p", file("a\n"), file("b\n"))
    assert [part.name for part in one] == ["p"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (None, file("a\n")),
        (file("a\n"), None),
        (file("a\n"), file("a\n", "100755")),
        (file("a\n"), File(b"\0\xff", PLAIN)),
    ],
)
def test_what_has_no_hunks_of_its_own_is_one_component(old, new) -> None:
    (part,) = split("p", old, new)
    assert part.name == "p"
    assert after([part], old) == new


def test_a_part_that_does_not_apply_alone_is_taken_with_its_neighbour() -> None:
    # The patch removes the file and makes a link in its place, which needs the place free.
    (part,) = split("p", file("a\n"), file("target", LINK))
    assert part.name == "p"
    assert after([part], file("a\n")) == file("target", LINK)


def test_several_patches_become_one_that_does_the_same() -> None:
    before = [str(k) for k in range(40)]
    new = ["x" if k in (4, 20, 35) else line for k, line in enumerate(before)]
    old = file("\n".join(before))
    parts = split("p", old, file("\n".join(new)))
    assert len(parts) == 3
    some = [parts[0].patch, parts[2].patch]
    one = combined(some, lambda path: old if path == "p" else None)
    assert one.count("diff --git") == 1
    assert applied(one, lambda path: old)["p"] == after([parts[0], parts[2]], old)
    assert "a/sub/p" in combined(some, lambda path: old if path == "p" else None, "sub/")


def test_too_many_components_are_refused_with_the_way_out(tmp_path: Path) -> None:
    text = [str(k) for k in range(1000)]
    manifests = []
    for changed in (text, ["x" if k % 20 == 0 else line for k, line in enumerate(text)]):
        blob = store.put(tmp_path, "\n".join(changed).encode())
        manifests.append(snapshot.save({"p": snapshot.Entry(blob, PLAIN)}, tmp_path))
    with pytest.raises(InputError, match="--by file"):
        between(*manifests, tmp_path, "hunk")
    assert [part.name for part in between(*manifests, tmp_path, "file")] == ["p"]
