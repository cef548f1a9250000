from __future__ import annotations

import io

from hypothesis import given
from hypothesis import strategies as st

from outlay.execution import capture
from outlay.execution.capture import Capture


@given(st.lists(st.binary(max_size=40)), st.integers(0, 60))
def test_at_most_the_share_is_kept_head_and_tail(pieces: list[bytes], share: int) -> None:
    file = io.BytesIO()
    taken = Capture(file, share)
    for piece in pieces:
        taken.feed(piece)
    taken.close()
    whole = b"".join(pieces)
    kept = file.getvalue()
    half = share // 2
    if len(whole) <= 2 * half:
        assert kept == whole
    else:
        assert kept[:half] == whole[:half]
        assert kept.endswith(whole[len(whole) - half :])
        assert f"[{len(whole) - 2 * half} bytes left out]".encode() in kept
    assert taken.text() == whole.decode("utf-8", "replace")


def test_a_line_that_was_cut_is_not_read() -> None:
    taken = Capture(io.BytesIO(), 0)
    line = b"score: 0.123456789\n"
    count = 10 * capture.KEEP // len(line)
    for _ in range(count):
        taken.feed(line)
    assert set(taken.text().splitlines()) == {line.decode().strip()}
    assert taken.total == count * len(line)


def test_a_full_disk_does_not_stop_the_reading() -> None:
    class Full(io.BytesIO):
        def write(self, data: object) -> int:
            raise OSError(28, "No space left on device")

    taken = Capture(Full(), 100)
    taken.feed(b"score: 1\n")
    taken.close()
    assert taken.text() == "score: 1\n"
    assert taken.fault is not None
