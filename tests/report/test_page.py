from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from outlay import events
from outlay.budget import Charge
from outlay.report import View, gather, history, markdown, page, words, write_report
from outlay.report import cards as all_cards
from outlay.report.glossary import WORDS
from outlay.report.words import whole
from outlay.state import State
from outlay.task import Budget, Evaluator, Lever, Option
from tests.report.samples import NASTY, accuracy, broken, drive, finished, flat, log, started, task

NOWHERE = Path("/nowhere/runs/six")


class Tags(HTMLParser):
    """Collects tags and attributes, and checks that they are closed in order."""

    VOID = ("meta",)

    def __init__(self, text: str) -> None:
        super().__init__()
        self.names: list[str] = []
        self.attributes: set[str] = set()
        self.open: list[str] = []
        self.text = ""
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def rendered(state: State, entries: list[events.Entry]) -> Tags:
    return Tags(page(gather(state, entries, NOWHERE, "six")))


@pytest.fixture(scope="module")
def run() -> tuple[State, list[events.Entry]]:
    return finished(12)


def test_everything_a_person_asks_for_is_on_the_page(run):
    found = rendered(*run)
    left_out = {all_cards.OF_AGENTS, all_cards.OF_HYPOTHESES, "Interrupted tries"}
    for title in all_cards.ANALYSES.keys() - left_out:
        assert title in found.text
    assert "Interrupted tries" not in found.text
    assert "Which switches raise the accuracy?" in found.text
    assert "ended: the budget of 12 attempts is spent" in found.text
    assert "run seed" in found.text
    assert "failed" not in re.findall(r"This analysis failed", found.text)
    assert "This analysis failed" not in found.text


def test_the_page_loads_and_runs_nothing(run):
    found = rendered(*run)
    assert not {"script", "link", "img", "iframe", "object", "form", "base"} & {*found.names}
    assert not {"src", "href"} & found.attributes
    assert not [name for name in found.attributes if name.startswith("on")]


def test_untrusted_text_stays_text(tmp_path):
    research = replace(
        task(3),
        question=f"Why? {NASTY}",
        levers=(Lever(name=f"l{NASTY}", options=(Option(name="a"), Option(name=f"b{NASTY}"))),),
    )

    def call(configuration: dict[str, str], seed: int | None) -> float:
        if configuration[f"l{NASTY}"] != "a":
            raise RuntimeError(f"fault {NASTY}")
        return 0.5

    state, entries = drive(research, call)
    job = tmp_path / "jobs" / "a1.1"
    job.mkdir(parents=True)
    (job / "out.txt").write_text(f"log {NASTY} \x1b[31m\n")
    text = page(gather(state, entries, tmp_path, f"run{NASTY}"))
    assert "<script" not in text
    assert "\x1b" not in text
    for word in ("Why? ", "log ", "fault ", "l", "b", "run"):
        assert f"{word}&lt;script&gt;" in text
    assert "script" not in Tags(text).names


def test_a_run_that_has_only_begun_says_so():
    entries = started()
    found = rendered(State.of(entries), entries)
    assert "The baseline is not measured yet" in found.text
    assert "No attempt has ended." in found.text
    assert "not ended" in found.text
    assert "This analysis failed" not in found.text


def test_an_empty_log_still_gives_a_page():
    found = rendered(State(), [])
    assert "The run has not begun." in found.text


def test_a_failed_baseline_is_the_finding():
    found = rendered(*drive(task(3), broken))
    assert "The baseline has no score (crash: RuntimeError: no data" in found.text
    assert "This analysis failed" not in found.text


def test_no_gain_is_said_plainly():
    state, entries = drive(task(6), flat)
    assert state.contest.champion == state.baseline
    found = rendered(state, entries).text
    assert "No confirmed gain. Of 6 attempts" in found
    assert "championnone–––" in found.replace("\n", "")


def test_an_attempt_is_named_by_all_that_sets_it_apart(run):
    state, entries = run
    node = max(state.tree.nodes, key=lambda node: (node.score is not None, node.depth))
    named = whole(state, node)
    assert named.count("=") == node.depth > 1
    assert f"· {named}" in rendered(state, entries).text


def test_one_word_for_what_was_not_tried(run):
    found = rendered(*run)
    assert "not tried" in found.text
    assert not re.search(r"#\d+open", found.text)


@pytest.mark.parametrize(
    ("status", "reason", "said"),
    [
        ("budget", "attempts: spent", "ended: the budget of 12 attempts is spent"),
        (
            "budget",
            "seconds: what is left does not cover one attempt",
            "ended: the budget of 10.0 min of time: what is left does not cover one attempt",
        ),
        ("budget", "usd: spent", "ended: the budget of 3.00 USD is spent"),
        ("budget", "tokens: spent", "ended: the budget of 1 token is spent"),
        ("budget", "usd: the rest", "ended: the budget of 3.00 USD: the rest"),
        ("exhausted", "nothing is left to try", "ended: exhausted, nothing is left to try"),
        ("failed", "baseline: crash", "ended: failed, baseline: crash"),
    ],
)
def test_the_end_is_said_in_words(status, reason, said):
    limits = Budget(attempts=12, seconds=600.0, usd=3.0, tokens=1)
    state = State.of(started(task(budget=limits)))
    state.ledger.spent = Charge(attempts=12, tokens_in=1, usd=3.0)
    state.apply(events.RunEnded(status=status, reason=reason), 1.0)
    assert words.status(state) == said


def test_a_budget_with_something_left_is_not_called_spent():
    state = State.of(started(task(budget=Budget(attempts=12, usd=0.004))))
    state.ledger.spent = Charge(attempts=1, usd=0.00294)
    state.apply(events.RunEnded(status="budget", reason="usd: spent"), 1.0)
    said = (
        "ended: the budget of 0.004 USD: the 0.00106 USD that is left does not cover another "
        "attempt"
    )
    assert words.status(state) == said


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (0.0, "0.00"),
        (0.004, "0.004"),
        (0.0029412, "0.00294"),
        (0.0999999, "0.1"),
        (1e-7, "0.0000001"),
        (0.125, "0.12"),
        (1234.5, "1,234.50"),
    ],
)
def test_money_is_said_to_the_cent_or_to_three_digits(value, said):
    assert words.amount(value) == said


def test_the_limit_of_time_is_called_as_in_the_task_file():
    found = rendered(*drive(task(2, budget=Budget(attempts=2, seconds=600.0)))).text
    assert "time10.0 min of time" in found


def test_every_word_is_in_the_glossary_of_the_documents(run):
    page_of_words = (Path(__file__).parents[2] / "docs" / "glossary.md").read_text()
    for word, meaning in WORDS:
        assert f"| {word} | {meaning} |" in page_of_words
        assert meaning in rendered(*run).text


def test_an_interrupted_try_is_listed_with_its_reason():
    entries = started()
    entries += log(
        events.MeasurementLaunched(work="m1", trial=1, purpose="baseline", runs=((0, 1),)),
        events.MeasurementSettled(
            work="m1", trial=1, outcome="interrupted", reason="host", detail="the driver died"
        ),
        after=len(entries),
    )
    found = rendered(State.of(entries), entries)
    assert "the driver died" in found.text
    assert "Interrupted tries" in found.text
    assert "not ended: it is running, or was interrupted" in found.text


def test_the_champions_patch_is_shown_in_part_and_stays_text(run):
    state, entries = run
    patch = "".join(f"+{number} {NASTY} {'x' * 400}\n" for number in range(300))
    view = View(run="six", state=state, history=history(entries), patch=patch)
    for text in (page(view), markdown(view)):
        assert "200 of 300 lines" in text
        assert "x" * 200 in text
        assert "x" * 300 not in text
        assert "+199 " in text
        assert "+200 " not in text
    assert "<script" not in page(view)


def test_what_is_under_way_is_counted_apart(run):
    _, entries = run
    kinds = [isinstance(entry.event, events.AttemptLaunched) for entry in entries]
    launched = entries[: kinds.index(True) + 1]
    said = rendered(State.of(launched), launched).text
    assert "Of 1 attempt (1 under way), 0 scored" in said


def test_two_hundred_attempts_stay_readable():
    state, entries = finished(200)
    text = page(gather(state, entries, NOWHERE, "six"))
    found = Tags(text)
    assert f"of {len(state.tree.nodes)} nodes" in found.text
    assert found.names.count("details") == state.attempts > 150
    assert len(text) < 400_000
    rows = re.search(r'height="(\d+)" role="img" aria-label="plan tree"', text)
    assert rows is not None
    assert int(rows[1]) < 130 * 22


def test_one_failing_card_leaves_the_others(run, monkeypatch):
    def fails(view: View) -> list[object]:
        raise ValueError(f"bad {NASTY}")

    monkeypatch.setitem(all_cards.ANALYSES, "Plan tree", fails)
    text = page(gather(*run, NOWHERE, "six"))
    assert "This analysis failed: ValueError: bad &lt;script" in text
    assert "Champion curve" in text


def test_the_evaluator_problems_are_shown():
    calls = iter(range(10_000))
    state, entries = drive(task(2), lambda c, s: accuracy(c, s) + next(calls) * 1e-6)
    assert "the same seed gave" in rendered(state, entries).text


def test_a_metric_printed_by_an_editable_file_is_self_reported():
    entries = started(agent="command:./agent")
    assert "self-reported" in rendered(State.of(entries), entries).text
    levers = started()
    assert "self-reported" not in rendered(State.of(levers), levers).text


def test_a_protected_evaluator_is_not_self_reported():
    research = task()
    research = replace(research, workspace=replace(research.workspace, protected=("train.py",)))
    entries = started(research, agent="command:./agent")
    assert "self-reported" not in rendered(State.of(entries), entries).text


@pytest.mark.parametrize(("protected", "said"), [((), True), (("score.py",), False)])
def test_a_function_in_an_editable_file_is_self_reported(protected, said):
    research = task()
    research = replace(
        research,
        evaluator=Evaluator(function="score:score"),
        workspace=replace(research.workspace, protected=protected),
    )
    entries = started(research, agent="command:./agent")
    assert ("self-reported" in rendered(State.of(entries), entries).text) is said


def test_the_report_is_one_file_in_the_run_folder(run, tmp_path):
    path = write_report(*run, tmp_path / "run", "six")
    assert path == tmp_path / "run" / "report.html"
    assert [p.name for p in path.parent.iterdir()] == ["report.html"]
    assert path.read_text() == page(gather(*run, tmp_path / "run", "six"))


def test_the_history_knows_who_reigned_when(run):
    state, entries = run
    found = history(entries)
    assert found.reigns[0] == (0, 0)
    assert found.reigns[-1].node == state.contest.champion
    assert len(found.done) == state.attempts == 12
    assert found.sittings == 1
