from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outlay.errors import InputError
from outlay.evaluators.claims import agreement, read_claims

if TYPE_CHECKING:
    from pathlib import Path

pairs = st.sets(st.tuples(st.integers(0, 4), st.integers(0, 4)))


@given(st.integers(0, 5), st.integers(1, 5), pairs)
def test_shares_are_those_of_the_whole_table_of_verdicts(
    made: int, there: int, matching: set[tuple[int, int]]
) -> None:
    asked = []

    def judge(claim: str, reference: str) -> bool:
        asked.append((claim, reference))
        return (int(claim), int(reference)) in matching

    found = agreement([str(i) for i in range(made)], [str(k) for k in range(there)], judge)
    inside = {(i, k) for i, k in matching if i < made and k < there}
    precision = len({i for i, _ in inside}) / made if made else 0.0
    recall = len({k for _, k in inside}) / there
    assert found.precision == precision
    assert found.recall == recall
    assert found.f1 == pytest.approx(2 * precision * recall / (precision + recall or 1))
    assert len(asked) == len(set(asked))


def test_a_pair_that_cannot_change_anything_is_not_judged() -> None:
    asked = []

    def judge(claim: str, reference: str) -> bool:
        asked.append((claim, reference))
        return True

    assert agreement(["a", "b"], ["x", "y"], judge) == (1.0, 1.0, 1.0)
    assert asked == [("a", "x"), ("a", "y"), ("b", "x")]


def test_many_wrong_claims_cost_precision() -> None:
    found = agreement(["x", "wrong", "worse"], ["x"], str.__eq__)
    assert found == (1 / 3, 1.0, 0.5)


@pytest.mark.parametrize("text", ['["A b.", "C"]', '{"claims": ["A b.", " a  B.", "C"], "x": 1}'])
def test_a_file_of_claims(tmp_path: Path, text: str) -> None:
    (tmp_path / "claims.json").write_text(text)
    assert read_claims(tmp_path / "claims.json") == ["A b.", "C"]


@pytest.mark.parametrize(
    "text", ["", "nothing", '"A"', "{}", '{"claims": "A"}', '["A", 1]', '["A", " "]', "[" * 99_999]
)
def test_anything_else_is_an_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "claims.json").write_text(text)
    with pytest.raises(InputError, match=r"claims.json: found .*, allowed: a JSON list of texts"):
        read_claims(tmp_path / "claims.json")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="found no such file"):
        read_claims(tmp_path / "claims.json")
