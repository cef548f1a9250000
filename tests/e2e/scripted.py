"""A model that drafts plans and carries them out, for whole searches with any client.

A plan has a line `Set the level to X.`; carrying it out writes X into level.txt. `write_task`
makes the folder whose program such plans improve, and `write_agent` a small agent for where no
real one is wanted.
"""

from __future__ import annotations

import json
import re
import sys
from itertools import count
from typing import TYPE_CHECKING, Any

from tests.model_server import Turn
from tests.taskfiles import SCORED

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from tests.model_protocols import Asked

KEY = "provider/key+42=0123456789abcdef"
"""The provider's key, which is written otherwise in addresses; in the variable SCRIPTED_KEY."""

_SCORE = """\
import json, random, sys
from pathlib import Path
seed = int(sys.argv[sys.argv.index("--seed") + 1])
random.seed(seed)
level = float(Path("level.txt").read_text())
print(json.dumps({"score": min(level, 0.6) + random.gauss(0, 0.005)}))
"""

_TASK = f"""\
[task]
name = "switches"
question = "QUESTION"
editable = ["level.txt", "notes.txt"]
protected = ["score.py"]
{SCORED}[budget]
attempts = ATTEMPTS
[agent]
model = "fake-1"
url = "URL"
key = "SCRIPTED_KEY"
"""

_REFLECTOR = """\
[reflector]
client = "model"
model = "fake-1"
url = "URL"
key = "SCRIPTED_KEY"
"""

_AGENT = """\
import json, subprocess, sys, urllib.request
url, key, plan = sys.argv[1:]
tools = [{"type": "function", "function": {"name": "bash"}}]
messages = [{"role": "user", "content": open(plan).read()}]
while True:
    body = {"model": "fake-1", "messages": messages, "tools": tools}
    asked = urllib.request.Request(url + "/v1/chat/completions", json.dumps(body).encode(), {
        "authorization": "Bearer " + key, "content-type": "application/json"})
    message = json.load(urllib.request.urlopen(asked))["choices"][0]["message"]
    messages.append(message)
    if not message.get("tool_calls"):
        print(message["content"])
        break
    for call in message["tool_calls"]:
        line = json.loads(call["function"]["arguments"])["command"]
        done = subprocess.run(["/bin/sh", "-c", line], capture_output=True, text=True)
        messages.append({"role": "tool", "tool_call_id": call["id"], "content": done.stdout})
"""

LEVELS = ("0.5", "0.0", "0.4", "0.6", "0.55", "0.45", "0.52", "0.48")
"""What its revisions try, in this order; 0.6 is the best there is and 0.0 is far below."""


def write_task(
    folder: Path, url: str, *, attempts: int = 6, question: str = "Which level?", more: str = ""
) -> Path:
    """Make the folder whose level starts at 0.2 and is best at 0.6, and return it."""
    folder.mkdir()
    (folder / "score.py").write_text(_SCORE)
    (folder / "level.txt").write_text("0.2")
    task = (_TASK + more).replace("URL", url).replace("ATTEMPTS", str(attempts))
    (folder / "outlay.toml").write_text(task.replace("QUESTION", question))
    return folder


def write_agent(folder: Path, first: str = "") -> tuple[str, str]:
    """Write an agent that does what the model says; return its name, and what the task needs.

    Args:
        folder: Where.
        first: Python that it runs before all else, after `url`, `key` and `plan` are known.
    """
    path = folder / "agent.py"
    path.write_text(_AGENT.replace("tools = ", f"{first}\ntools = ", 1))
    more = f'{_REFLECTOR}[sandbox]\nread = ["{path}"]\n'
    return f"command:{sys.executable} -I -S {path} {{url}} {{key}} {{plan}}", more


_SCHEMA = re.compile(r"valid by this JSON schema:\n(\{.*\})")
_LINE = re.compile(r"Set the level to\s([0-9.]+)\.")


def researcher(designs: Sequence[dict[str, Any]] = ()) -> Callable[[Asked], Turn]:
    """Return a script of one run: a first plan, then revisions, each of them carried out.

    Args:
        designs: What its revisions name where they may name one, in this order; then none.
    """
    numbers, left = count(), iter(designs)

    def script(asked: Asked) -> Turn:
        form = asked.schema or _form(asked.prompt)
        if form is not None:
            answer = _answer(form, numbers)
            if "children" in answer and "design" in form["$defs"]["child"]["properties"]:
                for child in answer["children"]:
                    child["design"] = next(left, None)
            return Turn(answer=answer, text=json.dumps(answer))
        level = _LINE.search(asked.prompt)
        if asked.results or level is None:
            return Turn(text=f"I have set the level; it is plan {asked.number}.")
        return Turn(shell=f"printf {level[1]} > level.txt")

    return script


def _form(prompt: str) -> dict[str, Any] | None:
    found = _SCHEMA.search(prompt)
    return json.loads(found[1]) if found else None


def _answer(form: dict[str, Any], numbers: count[int]) -> dict[str, Any]:
    if "children" not in form["properties"]:
        return {
            "title": "The level",
            "hypothesis": "A higher level helps.",
            "approach": ["Set the level to 0.3."],
        }
    children = form["properties"]["children"]
    edit = form["$defs"]["child"]["properties"]["edits"]["items"]
    line = next(one for one in edit["properties"]["search"]["enum"] if _LINE.search(one))
    levels = [LEVELS[next(numbers) % len(LEVELS)] for _ in range(children["maxItems"])]
    return {"children": [_child(line, level) for level in levels]}


def _child(line: str, level: str) -> dict[str, Any]:
    return {
        "hypothesis": f"Level {level} is better.",
        "edits": [{"search": line, "replace": f"Set the level to {level}."}],
        "changes": f"Level {level}.",
        "axis": "level",
        "direction": f"to-{level.replace('.', '-')}",
        "chance": 50,
        "rationale": "Nobody knows.",
        "risks": "It may be too much.",
    }
