"""Calls `module:name` with (configuration, seed) and writes its answer as the result.

Run as source text in the evaluator's own process, in the workspace, so it imports nothing of ours.
"""

import importlib
import json
import os
import sys


def _plain(value: object) -> object:
    item = getattr(value, "item", None)  # numbers of numpy and of tensors
    return item() if callable(item) else value


def main() -> None:
    """Import the function, call it, leave its number or its named numbers."""
    module, _, name = sys.argv[1].partition(":")
    seed = json.loads(sys.argv[2])
    # Under -c the first entry is the empty name, which moves with the folder.
    sys.path.insert(0, os.getcwd())
    place = os.environ["OUTLAY_RESULT"]
    function = getattr(importlib.import_module(module), name)
    answer = function(json.loads(os.environ["OUTLAY_CONFIG"]), seed)
    with open(place, "w", encoding="utf-8") as file:
        json.dump(_plain(answer), file, default=_plain)


main()
