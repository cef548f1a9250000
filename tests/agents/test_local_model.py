"""Reflections by a real small model, with constrained decoding. Opt-in: see `NEEDS`.

Measured with SmolLM2-135M-Instruct Q4_1 and the llama-server of llama-cpp-python 0.3.36, `-t 1`.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
import urllib.request
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

import pytest

from outlay.agents.reflections.answers import parse
from outlay.agents.reflections.asking import Ask, ask_for
from outlay.agents.reflections.question import Told, question
from outlay.agents.reflections.shape import TERSE, schema
from tests.agents.models import ask_model
from tests.agents.reflections.samples import LOG, model_run, searched

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from outlay.allocation.tree import Node
    from outlay.state import State

CALLS = 50
LEAST = 0.8
PROMPT = 8_000
NEEDS = (
    "needs a llama.cpp server: OUTLAY_LLAMA_SERVER=http://HOST:PORT of one that runs, or "
    "OUTLAY_LLAMA_SERVER=path of llama-server and OUTLAY_LLAMA_MODEL=path of a .gguf file"
)
FAULTS = ["", "RuntimeError: loss is nan\n", "Killed: out of memory\n"]

pytestmark = [
    pytest.mark.local_model,
    pytest.mark.skipif(not os.environ.get("OUTLAY_LLAMA_SERVER"), reason=NEEDS),
]


class Call(NamedTuple):
    ended: bool
    children: int
    refused: tuple[str, ...]
    repeated: int
    tokens: int

    @property
    def good(self) -> bool:
        """It ended by itself, is valid, and the edits of every child apply."""
        return self.ended and self.children > 0 and not self.refused


@contextmanager
def server(folder: Path) -> Iterator[str]:
    """Yield the address of the server that the environment names, started if it is a program."""
    named = os.environ["OUTLAY_LLAMA_SERVER"]
    if named.startswith("http"):
        yield named
        return
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    command = [named, "-m", os.environ["OUTLAY_LLAMA_MODEL"], "--alias", "local", "-c", "8192"]
    command += ["-t", "1", "-np", "1", "--jinja", "--host", "127.0.0.1", "--port", port]
    with open(folder / "server.log", "wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        wait_for(f"http://127.0.0.1:{port}")
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


def wait_for(url: str) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(f"{url}/health", timeout=5):
                return
        except OSError:
            time.sleep(0.05)
    raise TimeoutError(url)


def place(number: int) -> tuple[State, Node]:
    """Return one of many states of a search in the digits example, and a node to reflect on."""
    if number % 10 == 9:
        state = model_run()
        state.tree.root.proposal = None  # the first plan is asked for
        return state, state.tree.root
    state = searched(number, number % 7)
    scored = [node for node in state.tree.nodes if node.score is not None and not node.pruned]
    return state, scored[number % len(scored)]


def reflect(folder: Path, url: str, number: int) -> Call:
    state, node = place(number)
    ask = ask_for(state, node, 1 + number % 3)
    prompt = question(state, node, ask, Told(log=LOG[:600] + FAULTS[number % 3]), PROMPT)
    form = schema(ask, TERSE)
    ended = ask_model(folder, url, prompt=prompt, form=form, model="local", timeout=600)
    found = parse(ended.answer, ask)
    refused = refusals(ended.answer, ask)
    return Call(
        ended=ended.ok,
        children=len(found.children),
        refused=refused,
        repeated=len(found.rejected) - len(refused),
        tokens=ended.usage.output,
    )


def refusals(answer: str, ask: Ask) -> tuple[str, ...]:
    """Return what is wrong with the children one by one, so that none repeats another."""
    try:
        children = json.loads(answer)["children"] if ask.plan else [json.loads(answer)]
    except (ValueError, KeyError, TypeError) as error:
        return (str(error),)
    alone = [{"children": [child]} if ask.plan else child for child in children]
    return tuple(p.reason for whole in alone for p in parse(json.dumps(whole), ask).rejected)


def test_a_small_models_answers_are_valid_and_their_edits_apply(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    calls: list[Call] = []
    with server(tmp_path) as url:
        for number in range(CALLS):
            calls.append(reflect(tmp_path, url, number))
            with capsys.disabled():
                print(f"\n{told(calls)}", end="", flush=True)
    assert sum(call.good for call in calls) >= LEAST * CALLS


def told(calls: list[Call]) -> str:
    """Return in one line what came of the calls so far, and what was wrong with the last one."""
    return (
        f"{sum(call.good for call in calls)} of {len(calls)} calls ended by themselves, valid, "
        f"with edits that apply; {sum(call.ended for call in calls)} ended by themselves, "
        f"{sum(call.repeated > 0 for call in calls)} named one plan twice; "
        f"{sum(call.children for call in calls)} new plans, "
        f"{sum(call.tokens for call in calls) / len(calls):.0f} tokens a call "
        f"{'; '.join(calls[-1].refused)}"
    )
