from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from outlay.errors import InputError
from tests.taskfiles import SMALLEST, TASK, changed, load

if TYPE_CHECKING:
    from pathlib import Path

EVALUATE = 'direction = "maximize"'


LEVERS = 'options = { off = "", on = "--a 1" }'


CASES = [
    # an edit of the smallest task, the key, what was found, what is allowed
    (
        changed("command =", "comand ="),
        "evaluate.comand",
        "unknown key (did you mean 'command'?)",
        "command, f",
    ),
    (
        changed("[budget]", "[budgets]"),
        "budgets",
        "unknown key (did you mean 'budget'?)",
        "task, eval",
    ),
    (changed("attempts = 16", "tries = 16"), "budget.tries", "an unknown key", "attempts, tokens"),
    (changed(LEVERS, f"{LEVERS}\nnote = 1"), "levers.a.note", "an unknown key", "options"),
    (
        changed('on = "--a 1"', "on = { arg = '' }"),
        "levers.a.options.on.arg",
        "did you mean 'args'",
        "args, ",
    ),
    (changed("attempts = 16", "attempts = true"), "budget.attempts", "True", "a whole number"),
    (changed("attempts = 16", "attempts = 0"), "budget.attempts", "0", "at least 1"),
    (changed("attempts = 16", "attempts = -3"), "budget.attempts", "-3", "a whole number of at"),
    (changed("attempts = 16", "attempts = 1.5"), "budget.attempts", "1.5", "a whole number"),
    (changed("attempts = 16", 'tokens = "many"'), "budget.tokens", "'many'", "1.5M"),
    (changed("attempts = 16", "usd = nan"), "budget.usd", "nan", "a finite number above 0"),
    (changed("attempts = 16", "usd = inf"), "budget.usd", "inf", "a finite number above 0"),
    (changed("attempts = 16", "usd = 0"), "budget.usd", "0.0", "above 0"),
    (changed("attempts = 16", 'usd = "3"'), "budget.usd", "'3'", "a number"),
    (changed("attempts = 16", 'time = "2 weeks"'), "budget.time", "'2 weeks'", "90s, 10m, 2h"),
    (changed("attempts = 16", "time = 0"), "budget.time", "0.0", "a time above 0"),
    (changed("[budget]\nattempts = 16", ""), "budget", "nothing", "at least one limit"),
    (
        changed("[budget]\nattempts = 16", "").replace("[task]", "budget = 3\n[task]"),
        "budget",
        "3",
        "a table",
    ),
    (changed('name = "switches"\n', ""), "task.name", "nothing", "a short name"),
    (changed('"switches"', '"a/b"'), "task.name", "'a/b'", "letters, digits"),
    (changed('"switches"', "3"), "task.name", "3", "a text"),
    (
        changed('question = "Which switches raise the score?"', ""),
        "task.question",
        "nothing",
        "in words",
    ),
    (
        changed('command = "python3 score.py --seed {seed}"', ""),
        "evaluate.command",
        "nothing",
        "a command such",
    ),
    (
        changed('"python3 score.py --seed {seed}"', "''"),
        "evaluate.command",
        "nothing",
        "a command such",
    ),
    (
        changed('"python3 score.py --seed {seed}"', '"a \'b"'),
        "evaluate.command",
        "a 'b",
        "no closing quotation",
    ),
    (
        changed('{seed}"', '{seed} | tail"'),
        "evaluate.command",
        "| tail",
        "no shell: put `|` into a script",
    ),
    (
        changed('"python3 score.py --seed {seed}"', "[1]"),
        "evaluate.command",
        "[1]",
        "a list of texts",
    ),
    (
        changed(EVALUATE, f'{EVALUATE}\nfunction = "m:f"'),
        "evaluate.function",
        "'m:f'",
        "either a command or",
    ),
    (
        changed('command = "python3 score.py --seed {seed}"', 'function = "m.f"'),
        "evaluate.function",
        "'m.f'",
        '"module:name"',
    ),
    (
        changed('command = "python3 score.py --seed {seed}"', 'function = "m:f()"'),
        "evaluate.function",
        "'m:f()'",
        '"module:name"',
    ),
    (changed('metric = "score" ', ""), "evaluate.metric", "nothing", "the name of a number"),
    (
        changed('metric = "score" ', 'metric = "a: b"'),
        "evaluate.metric",
        "'a: b'",
        "without a colon",
    ),
    (changed(EVALUATE, ""), "evaluate.direction", "nothing", "maximize, minimize"),
    (changed('"maximize"', '"max"'), "evaluate.direction", "'max'", "maximize, minimize"),
    (
        changed(EVALUATE, f"{EVALUATE}\nrange = [1, 1]"),
        "evaluate.range",
        "[1.0, 1.0]",
        "low < high",
    ),
    (
        changed(EVALUATE, f"{EVALUATE}\nrange = [nan, 1]"),
        "evaluate.range",
        "[nan, 1.0]",
        "low < high",
    ),
    (changed(EVALUATE, f"{EVALUATE}\nrange = [inf, inf]"), "evaluate.range", "inf", "low < high"),
    (changed(EVALUATE, f"{EVALUATE}\nrange = [1]"), "evaluate.range", "[1]", "[low, high]"),
    (
        changed(EVALUATE, f'{EVALUATE}\nread = "/etc/x"'),
        "evaluate.read",
        "'/etc/x'",
        "inside the workspace",
    ),
    (
        changed(EVALUATE, f'{EVALUATE}\nmetric_line = "first"'),
        "evaluate.metric_line",
        "'first'",
        "only, last",
    ),
    (
        changed(EVALUATE, f'{EVALUATE}\nnoise = "none"'),
        "evaluate.noise",
        "'none'",
        "seed, machine",
    ),
    (
        changed(EVALUATE, f'{EVALUATE}\nsecondary = ["score"]'),
        "evaluate.secondary",
        "['score']",
        "different",
    ),
    (
        changed(EVALUATE, f'{EVALUATE}\nreward = "rank"'),
        "evaluate.reward",
        "'rank'",
        "logistic, identity",
    ),
    (
        changed(EVALUATE, f"{EVALUATE}\nreward_scale = 0"),
        "evaluate.reward_scale",
        "0.0",
        "above 0",
    ),
    (
        changed('"maximize"', '"minimize"\nreward = "identity"'),
        "evaluate.reward",
        "'identity'",
        "minimized",
    ),
    (f"{SMALLEST}[limits]\nseconds = -1\n", "limits.seconds", "-1", "90s, 10m"),
    (f'{SMALLEST}[limits]\nmemory = "2 potatoes"\n', "limits.memory", "'2 potatoes'", "2GB"),
    (f"{SMALLEST}[limits]\nmemory = 5\n", "limits.memory", "5", "at least 1MB"),
    (f"{SMALLEST}[seeds]\nfinal = [1, 2]\n", "seeds.final", "1", "not in seeds.selection"),
    (
        f"{SMALLEST}[seeds]\nselection = [3, 3]\n",
        "seeds.selection",
        "[3, 3]",
        "different whole numbers",
    ),
    (f"{SMALLEST}[seeds]\nselection = [-3]\n", "seeds.selection", "[-3]", "from 0 to"),
    (f"{SMALLEST}[seeds]\nselection = []\n", "seeds.selection", "[]", "at least 1"),
    (
        f"{SMALLEST}[seeds]\nconfirmation = 1000\n",
        "seeds.final",
        "1010",
        "below seeds.confirmation = 1000",
    ),
    (
        changed(TASK, f'protected = ["../x"]\n{TASK}'),
        "task.protected",
        "'../x'",
        "inside the workspace",
    ),
    (changed(TASK, f'data = ["/data"]\n{TASK}'), "task.data", "'/data'", "inside the workspace"),
    (changed(TASK, f"editable = []\n{TASK}"), "task.editable", "[]", "at least one"),
    (
        changed(TASK, f'editable = ["a.py"]\nprotected = ["a.py"]\n{TASK}'),
        "task.protected",
        "'a.py'",
        "not in task.editable",
    ),
    (
        changed(TASK, f'editable = ["src/**"]\nhidden = ["src/x"]\n{TASK}'),
        "task.hidden",
        "'src/x'",
        "not in task.editable",
    ),
    (
        changed(TASK, f'protected = ["a"]\nhidden = ["a"]\n{TASK}'),
        "task.hidden",
        "'a'",
        "not in task.protected",
    ),
    (
        changed(TASK, f'protected = ["absent.py"]\n{TASK}'),
        "task.protected",
        "'absent.py'",
        "that exists",
    ),
    (
        changed(TASK, f'workspace = "absent"\n{TASK}'),
        "task.workspace",
        "absent",
        "a folder that exists",
    ),
    (changed(LEVERS, ""), "levers.a.options", "nothing", "at least two options"),
    (changed(LEVERS, "options = {}"), "levers.a.options", "[]", "at least two options"),
    (
        changed(LEVERS, 'options = { off = "" }'),
        "levers.a.options",
        "['off']",
        "at least two options",
    ),
    (changed(LEVERS, 'options = ["", "--a"]'), "levers.a.options", "['', '--a']", "a table"),
    (changed('"--a 1"', "1"), "levers.a.options.on", "1", "a text of arguments"),
    (changed('"--a 1"', '""'), "levers.a.options.on", "'on'", "options that differ"),
    (
        changed('"--a 1"', "{ files = { 'x' = '../y' } }"),
        "levers.a.options.on.files",
        "'../y'",
        "inside the work",
    ),
    (
        changed('"--a 1"', "{ files = { 'x' = 'gone' } }"),
        "levers.a.options.on.files",
        "'gone'",
        "that exists",
    ),
    (
        changed('"--a 1"', "{ patch = 'gone' }"),
        "levers.a.options.on.patch",
        "'gone'",
        "that exists",
    ),
    (
        changed('"--a 1"', "{ patch = '/p' }"),
        "levers.a.options.on.patch",
        "'/p'",
        "inside the workspace",
    ),
    (
        changed('"--a 1"', "{ env = { OUTLAY_RESULT = 'x' } }"),
        "levers.a.options.on.env",
        "'OUTLAY_RESULT'",
        "variable",
    ),
    (
        changed('"--a 1"', "{ env = { X = 1 } }"),
        "levers.a.options.on.env",
        "{'X': 1}",
        "a table of texts",
    ),
    (
        changed('off = ""', "off = { patch = 'p' }"),
        "levers.a.options.off.patch",
        "'p'",
        "as it stands",
    ),
    (changed("[levers.a]", "[levers.'a b']"), "levers.'a b'", "'a b'", "letters, digits"),
    (
        changed('"--a 1"', "{ env = { X = '1' } }")
        + "[levers.b]\noptions = { x = '', y = { env = { X = '2' } } }",
        "levers.b.options",
        "'X'",
        "one lever only; a sets it too",
    ),
    (f"{SMALLEST}[sandbox]\nread = ['x']\n", "sandbox.read", "'x'", "an absolute path"),
    (
        f"{SMALLEST}[sandbox]\nread = ['/no/such']\n",
        "sandbox.read",
        "'/no/such'",
        "a path that exists",
    ),
    (f"{SMALLEST}[sandbox]\ngpu = 1\n", "sandbox.gpu", "1", "true or false"),
    (
        f"{SMALLEST}[coordination]\nconfirmation = 'x'\n",
        "coordination.confirmation",
        "'x'",
        "sequential, band, none",
    ),
    (
        f"{SMALLEST}[coordination]\nerror_rate = 1.0\n",
        "coordination.error_rate",
        "1.0",
        "between 0 and 1",
    ),
    (f"{SMALLEST}[coordination]\nteams = 0\n", "coordination.teams", "0", "at least 1"),
    (f"{SMALLEST}[coordination]\nteams = 1.5\n", "coordination.teams", "1.5", "a whole number"),
    (f"{SMALLEST}[search]\nchildren = 0\n", "search.children", "0", "at least 1"),
    (f"{SMALLEST}[search]\nprune_below = -0.1\n", "search.prune_below", "-0.1", "at least 0"),
]


@pytest.mark.parametrize(("text", "key", "found", "allowed"), CASES)
def test_bad_input_names_file_key_found_and_allowed(
    tmp_path: Path, text: str, key: str, found: str, allowed: str
) -> None:
    with pytest.raises(InputError) as caught:
        load(tmp_path, text)
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith(f"{tmp_path / 'outlay.toml'}: {key}: found ")
    head, _, tail = message.partition(", allowed: ")
    assert found in head
    assert allowed in tail
    assert caught.value.exit_code == 2
