from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outlay import quantities


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (1_500_000, 1_500_000),
        ("1.5M", 1_500_000),
        ("20k", 20_000),
        ("0.1M", 100_000),
        (" 3 ", 3),
        (2e6, 2_000_000),
        ("1.5 m", 1_500_000),
    ],
)
def test_count_reads_what_people_write(found: object, expected: int) -> None:
    assert quantities.count(found) == expected


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (90, 90),
        ("90s", 90),
        ("10m", 600),
        ("1h30m", 5400),
        ("1.5h", 5400),
        ("1d", 86400),
        ("250ms", 0.25),
        ("90", 90),
        ("1 h 30 m", 5400),
        (0.5, 0.5),
    ],
)
def test_duration_reads_what_people_write(found: object, expected: float) -> None:
    assert quantities.duration(found) == expected


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (10, 10),
        ("2GB", 2_000_000_000),
        ("2GiB", 2 * 1024**3),
        ("512MB", 512_000_000),
        ("1k", 1000),
    ],
)
def test_size_reads_what_people_write(found: object, expected: int) -> None:
    assert quantities.size(found) == expected


@pytest.mark.parametrize("read", [quantities.count, quantities.duration, quantities.size])
@pytest.mark.parametrize(
    "found",
    [
        "",
        "x",
        "-1",
        -1,
        math.nan,
        math.inf,
        -math.inf,
        True,
        None,
        [1],
        "1e9",
        "nan",
        "1.5.2M",
        "1 2",
        "١",
        "1h2",
        "9" * 30,
        "5 parsecs",
        10**30,
    ],
)
def test_nonsense_is_refused_with_what_is_allowed(read: object, found: object) -> None:
    with pytest.raises(ValueError, match=r"a number|a whole number"):
        read(found)  # type: ignore[operator]


def test_a_fraction_of_one_thing_is_refused() -> None:
    with pytest.raises(ValueError, match="whole number"):
        quantities.count("1.5")
    with pytest.raises(ValueError, match="bytes"):
        quantities.size(0.5)


@given(st.integers(0, 10**12), st.sampled_from(["k", "M", "G"]))
def test_a_unit_multiplies(amount: int, unit: str) -> None:
    factor = {"k": 10**3, "M": 10**6, "G": 10**9}[unit]
    if amount * factor <= 10**18:
        assert quantities.count(f"{amount}{unit}") == amount * factor


@given(st.integers(0, 23), st.integers(0, 59), st.integers(0, 59))
def test_durations_add_up(hours: int, minutes: int, seconds: int) -> None:
    text = f"{hours}h{minutes}m{seconds}s"
    assert quantities.duration(text) == 3600 * hours + 60 * minutes + seconds


@given(st.text(max_size=60))
def test_any_text_is_a_number_or_a_value_error(text: str) -> None:
    for read in (quantities.count, quantities.duration, quantities.size):
        try:
            assert 0 <= read(text) < math.inf
        except ValueError as error:
            assert "number" in str(error)  # noqa: PT017
