"""What an agent inside the strongest sandbox sees and reaches, through a whole search."""

from __future__ import annotations

import ast
import json
import os
import shutil
from pathlib import Path

import pytest

from outlay.execution import sandbox
from tests.agent_faults import (
    BETTER,
    FAULTS,
    KEY,
    VARIABLE,
    charged,
    files_of,
    holding,
    options,
    prepare,
    settled,
)
from tests.agents.clients.real import CLIENTS, REAL, installed
from tests.e2e.conftest import Command, edit
from tests.model_protocols import Turn
from tests.model_server import ModelServer, turns

pytestmark = pytest.mark.skipif(not sandbox.works("bwrap"), reason="bubblewrap does not start")

LOOKS = """\
import os, socket, sys, urllib.request
from pathlib import Path
url, key, task, provider = sys.argv[1:]
task = "/" + task  # as an argument its path would be refused

def reach(port):
    with socket.socket() as found:
        return found.connect_ex(("127.0.0.1", int(port))) == 0

def write(path):
    try:
        open(path, "a").close()
    except OSError:
        return False
    return True

runs = Path(task, ".outlay", "runs", "faults")
found = {
    "workspace": sorted(os.listdir(".")),
    "user": sorted(path.name for path in Path(task).glob("*")),
    "stores": [str(path) for path in Path(task).rglob("store.db*")],
    "jobs": len(list((runs / "jobs").glob("*"))),
    "objects": len(list((runs / "objects").rglob("*"))),
    "protected": write("score.py"),
    "provider": reach(provider.rpartition(":")[2]),
    "proxy": reach(url.rpartition(":")[2]),
    "networks": sorted(name for _, name in socket.if_nameindex()),
    "variables": sorted(n for n, v in os.environ.items() if "KEY" in n or "recognisable" in v),
    "key": "recognisable" in key,
}
print("SEEN", found)
write(task + "/planted")  # a folder in memory is there in place of the user's
level = float(Path("program.py").read_text()[6:9])
Path("program.py").write_text(f"print({level + 0.1:.1f})\\n")
"""


def test_hidden_files_the_store_other_attempts_and_the_provider_are_out_of_reach(
    tmp_path: Path, outlay: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, KEY)
    task = prepare(tmp_path)
    edit(task, "attempts = 1", "attempts = 2")
    (tmp_path / "agent.py").write_text(LOOKS)
    with ModelServer(turns(Turn(text=BETTER))) as server:
        more = f"{str(task).lstrip('/')} {server.url}"
        done = outlay("search", task, *options(task, server.url, more))
    assert done.returncode == 0, done.stderr
    assert [(e.outcome, e.sandbox) for e in settled(task)] == [("scored", "bwrap")] * 2
    jobs = task / ".outlay" / "runs" / "faults" / "jobs"
    for attempt in ("a1.1", "a2.1"):
        printed = (jobs / attempt / "out.txt").read_text()
        line = next(line for line in printed.splitlines() if line.startswith("SEEN "))
        assert ast.literal_eval(line.removeprefix("SEEN ")) == {
            "workspace": ["program.py", "score.py"],
            "user": [".outlay"],
            "stores": [],
            "jobs": 1,
            "objects": 0,
            "protected": False,
            "provider": False,
            "proxy": True,
            "networks": ["lo"],
            "variables": [],
            "key": False,
        }
    assert not (task / "planted").exists()
    assert holding(task / ".outlay", KEY) == []
    assert KEY not in done.stdout + done.stderr


def copied(program: str, folder: Path) -> Path:
    """Return a client's program in a `node_modules` of the folder, at no cost where links work."""
    package = next(p for p in Path(program).parents if p.parent.name.startswith("@"))
    place = folder / "node_modules" / package.parent.name / package.name
    place.mkdir(parents=True)
    target = place / Path(program).name
    try:
        os.link(os.path.realpath(program), target)
    except OSError:
        shutil.copy(program, target)
    return target


def account(client: str, home: Path, url: str) -> str:
    """Write a user's own configuration of a client, with an account; return the model's name."""
    provider = f'name = "mine"\nbase_url = "{url}/v1"\nwire_api = "responses"\n'
    provider += f'http_headers = {{ Authorization = "Bearer {KEY}" }}\n'
    variables = {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": KEY}
    options = {"baseURL": f"{url}/v1", "apiKey": KEY}
    model = {"npm": "@ai-sdk/openai-compatible", "options": options, "models": {"fake-1": {}}}
    name, text = {
        "codex": (
            ".codex/config.toml",
            f'model_provider = "mine"\n[model_providers.mine]\n{provider}',
        ),
        "claude": (".claude/settings.json", json.dumps({"env": variables})),
        "opencode": (
            ".config/opencode/opencode.json",
            json.dumps({"provider": {"mine": model}}),
        ),
    }[client]
    (home / name).parent.mkdir(parents=True)
    (home / name).write_text(text)
    return "mine/fake-1" if client == "opencode" else "fake-1"


class TestReal:
    pytestmark = REAL

    @pytest.mark.parametrize("client", CLIENTS)
    def test_a_client_with_the_users_account_changes_nothing_of_it(
        self, client: str, tmp_path: Path, outlay: Command, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        installed(client, monkeypatch)
        for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
            monkeypatch.delenv(name, raising=False)
        home = tmp_path / "home"
        monkeypatch.setenv("HOME", str(home))
        task = prepare(tmp_path)
        with ModelServer(FAULTS[-1].script(shell=True), keys=(KEY,)) as server:
            model = account(client, home, server.url)
            before = files_of(home)
            common = ("--model", model, "--policy", "linear", "--json")
            done = outlay("search", task, "--agent", client, *common)
            told = server.told(KEY)
        assert done.returncode == 0, done.stderr
        (event,) = settled(task)
        assert event.agent is not None
        assert (event.outcome, event.agent.source, event.agent.complete) == (
            *("scored", "stream"),
            False,
        )
        assert charged(task) == (told.input, told.output)
        assert files_of(home) == before
        assert holding(task / ".outlay", KEY) == []

    def test_a_client_that_lies_in_the_users_workspace_starts(
        self, tmp_path: Path, outlay: Command, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        program = installed("claude", monkeypatch)
        monkeypatch.setenv(VARIABLE, KEY)
        task = prepare(tmp_path)
        modules = Path(program).resolve().parents
        if not any(folder.name == "node_modules" for folder in modules):
            pytest.skip("claude is not from npm here")
        client = copied(os.path.realpath(program), task)
        monkeypatch.setenv("PATH", f"{task}:{os.environ['PATH']}")
        (task / "claude").symlink_to(client)
        fault = FAULTS[-1]
        with ModelServer(fault.script(shell=True)) as server:
            common = ("--model", "fake-1", "--policy", "linear", "--json")
            where = ("--base-url", server.url, "--key", VARIABLE)
            done = outlay("search", task, "--agent", "claude", *common, *where)
        assert done.returncode == 0, done.stderr
        assert [(e.outcome, e.sandbox) for e in settled(task)] == [("scored", "bwrap")]
