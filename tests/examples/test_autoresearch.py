from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from outlay import taskfile

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "autoresearch"


def test_the_layout_is_recognised() -> None:
    task = taskfile.recognise(FOLDER)
    assert task is not None
    assert task.metric.name == "val_bpb"


def test_training_prints_both_numbers_and_the_same_ones_again() -> None:
    printed = [
        subprocess.run(
            [sys.executable, "train.py"], cwd=FOLDER, capture_output=True, text=True, check=True
        ).stdout
        for _ in range(2)
    ]
    found = [re.findall(r"^val_bpb: (\S+)$", text, re.MULTILINE) for text in printed]
    assert found[0] == found[1]
    assert 0 < float(found[0][0]) < 1
    assert re.search(r"^peak_vram_mb: \d+\.\d$", printed[0], re.MULTILINE)
