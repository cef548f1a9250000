"""`outlay.search` with a callable, and `outlay.Study`, through whole runs."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

import outlay
from outlay.digest import digest
from outlay.errors import InputError
from outlay.replay import verify
from outlay.state import State

if TYPE_CHECKING:
    from pathlib import Path


def research(**changes: Any) -> outlay.Task:
    """Return a task with two levers, one of which helps, that the caller evaluates."""
    fields: dict[str, Any] = {
        "name": "quiet",
        "question": "Which lever helps?",
        "workspace": outlay.Workspace(path="."),
        "metric": outlay.Metric(name="score", direction="maximize", secondary=("size",)),
        "budget": outlay.Budget(attempts=8),
        "seeds": outlay.Seeds(final=(101, 102, 103)),
        "levers": tuple(
            outlay.Lever(name=name, options=(outlay.Option(name="off"), outlay.Option(name="on")))
            for name in ("a", "b")
        ),
    }
    return outlay.Task(**(fields | changes))


def score(configuration: dict[str, str], seed: int | None) -> float:
    noise = random.Random(f"{seed}/{sorted(configuration.items())}").gauss(0, 0.005)
    return 0.5 + 0.2 * (configuration["a"] == "on") - 0.1 * (configuration["b"] == "on") + noise


def test_a_callable_is_searched_in_memory() -> None:
    seen = []

    def evaluate(configuration: dict[str, str], seed: int | None) -> dict[str, float]:
        seen.append((tuple(configuration.items()), seed))
        return {"score": score(configuration, seed), "size": 3.0, "other": 1.0}

    steps = []
    run = outlay.search(research(), evaluate, on_step=lambda entries, state: steps.append(entries))
    assert run.champion is not None
    assert run.champion.configuration == {"a": "on", "b": "off"}
    assert run.difference is not None
    assert run.difference.low is not None
    assert 0.15 < run.difference.low < run.difference.mean < 0.25
    assert run.baseline is not None
    assert run.baseline.configuration == {"a": "off", "b": "off"}
    assert [entry for step in steps for entry in step] == list(run.events())
    assert run.folder is None
    assert ((("a", "on"), ("b", "off")), 101) in seen
    assert verify(run.events()) == []
    assert run.ledger.spent.attempts == run.state.attempts == run.summary().attempts
    assert repr(run).startswith("<Run 'quiet': exhausted")


def test_the_same_seed_gives_the_same_run() -> None:
    digests = {digest(outlay.search(research(), score, seed=seed).events()) for seed in (1, 1, 1)}
    assert len(digests) == 1


def test_failures_of_a_callable_have_no_score() -> None:
    def evaluate(configuration: dict[str, str], seed: int | None) -> float:
        if configuration["b"] == "on":
            raise RuntimeError("b does not work")
        return score(configuration, seed)

    run = outlay.search(research(), evaluate)
    records = run.to_records()
    failed = [record for record in records if record["config_b"] == "on" and record["attempt"]]
    assert failed
    assert {record["status"] for record in failed} == {"failed"}
    assert all(record["score"] is None and record["reward"] is None for record in failed)


def test_a_file_store_is_continued_by_the_same_call(tmp_path: Path) -> None:
    store = tmp_path / "store.db"
    whole = outlay.search(research(), score, store=tmp_path / "whole.db")
    calls = 0

    def stops(configuration: dict[str, str], seed: int | None) -> float:
        nonlocal calls
        calls += 1
        if calls == 7:
            raise KeyboardInterrupt
        return score(configuration, seed)

    with pytest.raises(KeyboardInterrupt):
        outlay.search(research(), stops, store=store)
    run = outlay.search(research(), score, store=store)
    assert digest(run.events()) == digest(whole.events())
    again = outlay.search(research(), score, store=store)
    assert len(list(again.events())) == len(list(run.events())) + 1  # one more sitting
    with pytest.raises(outlay.InputError, match="seed"):
        outlay.search(research(), score, store=store, seed=5)
    flipped = research(metric=outlay.Metric(name="score", direction="minimize"))
    with pytest.raises(outlay.InputError, match=r"metric\.direction"):
        outlay.search(flipped, score, store=store)


def test_a_task_without_an_evaluator_needs_a_callable() -> None:
    with pytest.raises(outlay.InputError, match=r"evaluate\.command"):
        outlay.search(research())


def finish(study: outlay.Study, fails: str = "") -> None:
    """Answer everything that the study asks; configurations with a failing lever on fail."""
    while (ask := study.ask()) is not None:
        if fails and ask.configuration[fails] == "on":
            study.fail(ask, "it broke", seconds=0.5)
        else:
            study.tell(ask, score(ask.configuration, ask.seed), seconds=1.0)


def test_ask_and_tell_come_to_the_same_run_as_a_callable() -> None:
    with outlay.Study(research()) as study:
        finish(study)
        assert study.ended
        found = study.run()
    assert digest(found.events()) == digest(outlay.search(research(), score).events())
    assert found.ledger.spent.seconds > 0


def test_failures_that_are_told() -> None:
    with outlay.Study(research()) as study:
        finish(study, fails="b")
        records = study.run().to_records()
    assert {r["status"] for r in records if r["config_b"] == "on" and r["attempt"]} == {"failed"}
    with outlay.Study(research()) as study:
        while (ask := study.ask()) is not None:
            broken = ask.configuration["a"] == "on"
            study.tell(ask, float("nan") if broken else score(ask.configuration, ask.seed))
        run = study.run()
    assert run.champion is not None
    assert run.champion.configuration["a"] == "off"


def test_an_answer_is_taken_once() -> None:
    with outlay.Study(research()) as study:
        ask = study.ask()
        assert ask is not None
        assert ask.purpose == "measurement"
        study.tell(ask, 1.0)
        with pytest.raises(ValueError, match="told already"):
            study.tell(ask, 2.0)


def test_several_workers_ask_at_once_and_answers_come_in_any_order() -> None:
    dice = random.Random(3)
    task = research(
        levers=tuple(
            outlay.Lever(name=name, options=(outlay.Option(name="off"), outlay.Option(name="on")))
            for name in "abcd"
        )
    )
    most = 0
    with outlay.Study(task, workers=3) as study:
        out: list[outlay.Ask] = []
        while True:
            while (ask := study.ask()) is not None:
                out.append(ask)
            if not out:
                break
            most = max(most, len({ask.job for ask in out}))
            ask = out.pop(dice.randrange(len(out)))
            study.tell(ask, score(ask.configuration, ask.seed))
        assert study.ended
        run = study.run()
    assert most == 3
    assert verify(run.events()) == []
    assert run.champion is not None
    assert run.champion.configuration["a"] == "on"


def test_a_study_in_a_file_is_taken_up_where_it_was(tmp_path: Path) -> None:
    store = tmp_path / "study.db"
    for _ in range(60):
        with outlay.Study(research(), store=store) as study:
            for _ in range(4):
                if (ask := study.ask()) is not None:
                    study.tell(ask, score(ask.configuration, ask.seed))
            if study.ended:
                break
    with outlay.Study(research()) as whole:
        finish(whole)
        assert whole.ended
        expected = digest(whole.run().events())
    with outlay.Study(research(), store=store) as study:
        finish(study)
        assert study.ended
        assert digest(study.run().events()) == expected


def test_a_second_study_on_the_same_file_is_refused(tmp_path: Path) -> None:
    store = tmp_path / "study.db"
    with (
        outlay.Study(research(), store=store),
        pytest.raises(outlay.StoreError, match="in use by process"),
    ):
        outlay.Study(research(), store=store)
    outlay.Study(research(), store=store).close()


def test_records_frames_and_pictures(tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    pytest.importorskip("matplotlib")
    run = outlay.search(research(), score)
    records = run.to_records()
    assert [record["node"] for record in records] == list(range(len(records)))
    assert records[0]["parent"] is None
    assert records[0]["attempt"] is None
    assert sum(record["champion"] for record in records) == 1
    frame = run.to_pandas()
    assert list(frame.index) == [record["node"] for record in records]
    assert {"score", "reward", "status", "config_a", "config_b"} <= set(frame.columns)
    assert frame.loc[frame["champion"], "config_a"].tolist() == ["on"]
    path = tmp_path / "run.png"
    figure = run.plot(path)
    assert path.read_bytes().startswith(b"\x89PNG")
    assert figure.axes
    assert State.of(run.events()).tree.nodes[0].score == records[0]["score"]
    assert '"status":"exhausted"' in run.to_json()


@pytest.mark.parametrize(
    "settings",
    [{"seed": "x"}, {"seed": 1.5}, {"seed": -1}, {"seed": True}, {"seed": 2**63}]
    + [{"workers": wrong} for wrong in (0, -1, "2", 1.0, None)],
)
def test_a_wrong_seed_or_number_of_workers_is_refused_before_anything_is_written(
    settings: dict[str, object], tmp_path: Path
) -> None:
    store = tmp_path / "store.db"
    task = research(evaluator=outlay.Evaluator(command=("python3", "score.py")))
    with pytest.raises(InputError, match=f"{next(iter(settings))}: found .* a whole number"):
        outlay.ablate_task(task, 3, store=store, **settings)
    assert not list(tmp_path.iterdir())


def test_what_is_no_task_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="task: found 5, allowed: a Task, or the path"):
        outlay.ablate_task(5, 3)  # type: ignore[arg-type]
    options = (outlay.Option(name="off"), outlay.Option(name="on", args=("--a",)))
    task = research(
        workspace=outlay.Workspace(path=str(tmp_path)),
        evaluator=outlay.Evaluator(command=("python3", "score.py")),
        levers=tuple(outlay.Lever(name=name, options=options) for name in "ab"),
    )
    for name in ("store", "run"):
        with pytest.raises(InputError, match=f"{name}: found 5"):
            outlay.ablate_task(task, 3, **{name: 5})


def test_limits_replace_those_of_the_task_one_by_one() -> None:
    run = outlay.search(research(), score, budget=outlay.Budget(attempts=2))
    assert (run.state.attempts, run.state.budget.attempts) == (2, 2)


@pytest.mark.parametrize("options", [{"workers": 2}, {"agent": "command:true"}])
def test_a_callable_works_alone(options: dict[str, Any]) -> None:
    with pytest.raises(outlay.InputError, match="with a callable, allowed: 'levers' and 1"):
        outlay.search(research(), score, **options)
