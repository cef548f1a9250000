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
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import pytest

from outlay import events
from outlay.agents.plans import Edit, apply_edits
from outlay.agents.reflections.texts import plan_of
from outlay.errors import InputError
from outlay.reflecting import received, request
from outlay.task import Agent
from tests.agents.models import ask_model
from tests.agents.reflections.samples import DIGITS, LOG, model_run, searched

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from outlay.state import State

CALLS = 50
LEAST = 0.8
AT_ONCE = 2
TASK = replace(DIGITS, reflector=Agent(client="model", model="local", terse=True))
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
    """What became of one question.

    Attributes:
        ended: The model ended by itself, not by a limit.
        valid: It is of the form, every text within the parser's bounds, and brings a plan.
        applies: The edits of every child find their line of the plan exactly once.
        refused: Why a child on its own is no new plan, or why the answer is none.
        repeated: Children that make the same plan as another one of the answer.
        plans: What would be added to the tree.
        tokens: Of the answer.
    """

    ended: bool
    valid: bool
    applies: bool
    refused: tuple[str, ...]
    repeated: int
    plans: int
    tokens: int


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
    command = [
        named,
        "-m",
        os.environ["OUTLAY_LLAMA_MODEL"],
        "--alias",
        "local",
        "-c",
        f"{4096 * AT_ONCE}",
    ]
    command += ["-t", "1", "-np", f"{AT_ONCE}", "--jinja", "--host", "127.0.0.1", "--port", port]
    command += ["--flash-attn", "off"]  # most of the time of a processor goes into it
    command += ["--no-repack"]  # some virtual machines announce AMX and do not let it be used
    with open(folder / "server.log", "wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        wait_for(f"http://127.0.0.1:{port}", process)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


def wait_for(url: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(f"{url}/health", timeout=5):
                return
        except OSError:
            time.sleep(0.05)
    raise TimeoutError(f"{url} is not there; llama-server ended with {process.poll()}")


def place(number: int) -> tuple[State, int]:
    """Return one of many states of a search in the digits example, and where to reflect."""
    if number % 10 == 9:
        state = model_run(TASK)
        state.tree.root.proposal = None
        return state, events.ROOT_DRAFT
    state = searched(number, number % 7, TASK)
    scored = [node for node in state.tree.nodes if node.score is not None and not node.pruned]
    return state, scored[number % len(scored)].id


def reflect(folder: Path, url: str, number: int) -> Call:
    """Ask as a run would, in a folder of the run's own."""
    folder.mkdir()
    state, node = place(number)
    if node >= 0:
        job = folder / "jobs" / f"a{state.tree.nodes[node].attempt}.1"
        job.mkdir(parents=True)
        (job / "out.txt").write_text(LOG + FAULTS[number % 3])
    launch = events.ReflectionLaunched(work="r1", trial=1, node=node, asked=1 + number % 3)
    asked = request(state, launch, folder)
    ended = ask_model(
        folder, url, prompt=asked.text, form=asked.schema, model="local", timeout=2_000
    )
    came = received(state, launch, ended.answer)
    plan = plan_of(state.tree.nodes[node]) if node >= 0 else ""
    refused = tuple(
        one.reason
        for alone in apart(ended.answer, plan)
        for one in received(state, launch, alone).rejected
    )
    return Call(
        ended=ended.ok,
        valid=bool(came.children) and not refused,
        applies=all(applies(alone, plan) for alone in apart(ended.answer, plan)),
        refused=refused,
        repeated=len(came.rejected) - len(refused),
        plans=len(came.children),
        tokens=ended.usage.output,
    )


def apart(answer: str, plan: str) -> list[str]:
    """Return one answer for each child, so that none repeats another; a broken one as it is."""
    try:
        children = json.loads(answer)["children"] if plan else []
    except (ValueError, KeyError, TypeError):
        children = []
    return [json.dumps({"children": [child]}) for child in children] or [answer]


def applies(alone: str, plan: str) -> bool:
    try:
        edits = json.loads(alone)["children"][0]["edits"] if plan else []
        apply_edits(plan, [Edit(edit["search"], edit["replace"]) for edit in edits])
    except (ValueError, KeyError, TypeError, InputError):
        return False
    return True


def test_a_small_models_answers_are_valid_and_their_edits_apply(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    calls: list[Call] = []
    with server(tmp_path) as url, ThreadPoolExecutor(AT_ONCE) as pool:
        asked = [pool.submit(reflect, tmp_path / str(k), url, k) for k in range(CALLS)]
        for done in as_completed(asked):
            calls.append(done.result())
            with capsys.disabled():
                print(f"\n{told(calls)}", end="", flush=True)
    assert sum(call.ended for call in calls) >= LEAST * CALLS
    assert sum(call.valid for call in calls) >= LEAST * CALLS
    assert sum(call.applies for call in calls) >= LEAST * CALLS
    assert sum(good(call) for call in calls) >= LEAST * CALLS


def good(call: Call) -> bool:
    return call.ended and call.valid and call.applies


def told(calls: list[Call]) -> str:
    """Return in one line what came of the calls so far, and what was wrong with the last one."""
    tokens = sum(call.tokens for call in calls) / len(calls)
    return (
        f"of {len(calls)} calls {sum(call.ended for call in calls)} ended by themselves, "
        f"{sum(call.valid for call in calls)} were valid, "
        f"the edits of {sum(call.applies for call in calls)} applied; "
        f"all three: {sum(good(call) for call in calls)}; "
        f"{sum(call.repeated > 0 for call in calls)} named a plan twice, "
        f"{sum(call.plans for call in calls)} new plans, {tokens:.0f} tokens a call "
        f"{'; '.join(calls[-1].refused)}".rstrip()
    )
