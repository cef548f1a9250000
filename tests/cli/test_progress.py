from __future__ import annotations

import io
import time

import pytest
from rich.console import Console

from outlay import events
from outlay.cli._events import sentence
from outlay.cli._progress import Progress
from outlay.report.words import whole
from outlay.state import State
from outlay.task import Budget
from tests.report.samples import NASTY, broken, drive, log, started, task


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_without_a_terminal_each_step_is_at_most_one_line():
    stream = io.StringIO()
    steps = []
    with Progress(task(4), "six", stream) as progress:

        def on_step(entries, state):
            before = stream.getvalue().count("\n")
            progress.step(entries, state)
            steps.append(stream.getvalue().count("\n") - before)

        drive(task(4), on_step=on_step)
    text = stream.getvalue()
    # What was held back until the baseline was known comes with it.
    assert steps[:2] == [0, 0]
    assert sorted(set(steps[3:])) == [0, 1]
    assert text.splitlines()[0] == "six: Which switches raise the accuracy?"
    for said in (
        "measuring the baseline",
        "attempt 1, node",
        "new champion",
        "ended: the budget of",
    ):
        assert said in text
    assert "\x1b" not in text


def test_a_comparison_is_told_once_when_it_begins():
    stream = io.StringIO()
    with Progress(task(4), "six", stream) as progress:
        state, _ = drive(task(4), on_step=progress.step)
    tested = [f"comparing attempt {j.attempt} with" for j in state.judgements if j.event.pairs]
    assert tested
    for said in tested:
        assert stream.getvalue().count(said + " the champion, pair 1") == 1
    assert "pair 2" not in stream.getvalue()
    promoted = next(j for j in state.judgements if j.event.promoted)
    named = whole(state, state.tree.nodes[promoted.node])
    assert f"node {promoted.node} ({named}) is the new champion" in stream.getvalue()
    assert f"attempt {promoted.attempt}, node {promoted.node}: {named}" in stream.getvalue()


@pytest.mark.parametrize(
    ("status", "said"),
    [("budget", "; raise a limit (--attempts N) or"), ("exhausted", "; choose")],
)
def test_a_finished_run_says_what_to_do(status, said):
    sitting = events.SittingStarted(pid=1, host="h", workers=1)
    ended = events.RunEnded(status=status, reason="attempts: spent")
    entries = [*started(), *log(ended, sitting, after=1)]
    state = State.of(entries)
    assert sentence(sitting, state).startswith(f"this run has ended{said}")
    assert sentence(sitting, State.of(started())) == ""


def test_running_a_finished_run_again_says_so(tmp_path):
    stream = io.StringIO()
    drive(task(1), store=tmp_path / "store.db")
    with Progress(task(1), "six", stream) as progress:
        drive(task(1), store=tmp_path / "store.db", on_step=progress.step)
    assert "this run has ended; raise a limit" in stream.getvalue()
    assert "another name with --run" in stream.getvalue()


def test_limits_are_named_as_in_the_task_file():
    changed = events.BudgetChanged(budget=Budget(attempts=1, seconds=600.0))
    assert sentence(changed, State.of(started())) == "limits now: 1 attempt, 10.0 min of time"


def drawn(progress: Progress, width: int = 100) -> str:
    console = Console(file=io.StringIO(), width=width, height=30)
    console.print(progress.draw())
    return console.file.getvalue()


def test_a_terminal_shows_champion_budget_tree_and_what_runs():
    clock = [100.0]
    progress = Progress(task(40), "six", Terminal(), monotonic=lambda: clock[0])
    launched = []

    def on_step(entries, state):
        progress.step(entries, state)
        if isinstance(entries[-1].event, events.AttemptLaunched):
            clock[0] += 5
            launched.append(drawn(progress))

    with progress:
        state, _ = drive(task(40), on_step=on_step)
        end = drawn(progress)
    assert "now       attempt 40, node" in launched[-1]
    assert "5.0 s" in launched[-1]
    assert "left      1 of 40 attempts" in launched[-2]
    assert f"champion  node {state.contest.champion}, accuracy about" in end
    assert "★" in end
    assert "more)" in end
    assert "ended: the budget of" in end
    assert end.count("\n") <= 30
    assert all(len(line) <= 100 for line in end.splitlines())


def test_control_characters_do_not_reach_the_terminal():
    baseline = []

    def call(configuration, seed):
        baseline.append(configuration)
        if configuration != baseline[0]:
            raise RuntimeError("\x1b[2J\x07 fault")
        return 0.5

    stream = io.StringIO()
    with Progress(task(1), "six", stream) as progress:
        drive(task(1), call, on_step=progress.step)
    assert "fault" in stream.getvalue()
    assert "\x1b" not in stream.getvalue()
    assert "\x07" not in stream.getvalue()


def test_markup_of_the_terminal_library_is_text():
    stream = Terminal()
    with Progress(task(1), "[bold]six[/bold]", stream) as progress:
        drive(task(1), broken, on_step=progress.step)
        assert "[bold]six[/bold]" in drawn(progress)
        assert NASTY in drawn(progress, width=200)


def test_a_step_of_a_big_run_is_quick():
    parent = 0
    entries = started()
    recorded = []
    for number in range(1, 4001):
        child = events.Child(node=number, changes={"depth": "o1"})
        recorded.append(events.Reflected(node=parent, asked=1, children=(child,)))
        parent = number if number % 4 == 0 else parent
    entries += log(*recorded, after=len(entries))
    state = State.of(entries)
    with Progress(task(), "six", Terminal()) as progress:
        progress.step(entries[-1:], state)
        took = []
        for _ in range(20):
            began = time.perf_counter()
            progress.step(entries[-1:], state)
            took.append(time.perf_counter() - began)
    assert sorted(took)[10] < 0.005
