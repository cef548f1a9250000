import json
import os
import signal
import subprocess
import sys
import time

import pytest
from click.testing import CliRunner

from outlay.bench.designs import endpoint as endpoint_module
from outlay.bench.designs.archive import (
    ArchiveWriter,
    Prices,
    answer_text,
    exchange,
    is_intact,
    read_archive,
)
from outlay.bench.designs.collection import Setting, chain, items
from outlay.bench.designs.endpoint import Answer, Endpoint, UnansweredError, ask
from outlay.bench.designs.gathering import gather
from outlay.bench.designs.panel import panel
from outlay.bench.designs.policies import catalogues
from outlay.bench.designs.report import report
from outlay.bench.designs.scored import score_archive
from outlay.cli.bench_designs import command
from outlay.designs.catalogue import best_design
from outlay.errors import InputError, StoreError
from tests.bench.scripted_server import Script, completion, serving

PANEL = panel(11)[:3]
STATES = [drawn.state for drawn in PANEL]
TABLES = catalogues(panel(11)[:3])
SETTING = Setting(name="scripted", family="scripts", model="m")


def collect(path, setting, plan, states, endpoint, **options):
    return gather(path, [chain(setting, item, states) for item in plan], endpoint, **options)


def state_in(request):
    text = request["messages"][0]["content"]
    return next(i for i, s in enumerate(STATES) if "\n".join(s.observations[:3]) in observed(text))


def observed(text):
    return "\n".join(
        line.removeprefix("Observed: ") for line in text.splitlines() if "Observed: " in line
    )


def oracle_text(index):
    best = best_design(TABLES[index])
    arms = ", ".join(STATES[index].arms[j] for j in best.arms)
    lines = (f"TARGET: {STATES[index].arms[best.arms[0]]}", f"ARMS: {arms}")
    return "\n".join(("FINAL", *lines, f"SEEDS: {best.seeds}", "CRITERION: c", "PREDICTION: p"))


def oracle(request):
    return oracle_text(state_in(request))


def test_requests_and_replies_are_archived_with_checksums(tmp_path):
    script = Script(oracle)
    plan = items(("L3", "self_refine"), 3, 2)
    with serving(script) as url:
        done = collect(
            tmp_path / "a.jsonl",
            SETTING,
            plan,
            STATES,
            Endpoint(url=url, key="secret"),
            prices=Prices(1.0, 0.1, 2.0),
        )
    assert done == (18, 18, ())
    assert len(script.requests) == 18
    assert {path for path, _, _ in script.requests} == {"/v1/chat/completions"}
    assert {key for _, key, _ in script.requests} == {"Bearer secret"}
    archive = read_archive(tmp_path / "a.jsonl")
    assert len(archive) == 18
    assert all(is_intact(record) for record in archive.values())
    assert "secret" not in (tmp_path / "a.jsonl").read_text()
    charge = archive["scripted/L3/s00/r0/t0"].charge
    assert (charge.tokens_in, charge.tokens_cached, charge.tokens_out) == (60, 40, 10)
    assert charge.usd == pytest.approx((60 + 4 + 20) / 1e6)
    draft = archive["scripted/self_refine/s01/r0/t0"]
    revision = archive["scripted/self_refine/s01/r0/t1"]
    assert answer_text(draft.reply) in revision.request["messages"][0]["content"]
    scores = score_archive(SETTING, plan, archive, TABLES)
    assert len(scores) == 12
    assert all(scored.efficiency == pytest.approx(1) for scored in scores)


def test_replies_are_not_asked_again_for_their_quality(tmp_path):
    script = Script(lambda request: "I would rather not.")
    plan = items(("L3",), 3, 1)
    with serving(script) as url:
        for _ in range(2):
            collect(tmp_path / "a.jsonl", SETTING, plan, STATES, Endpoint(url=url))
    assert len(script.requests) == 3
    scores = score_archive(SETTING, plan, read_archive(tmp_path / "a.jsonl"), TABLES)
    assert [scored.efficiency for scored in scores] == [0, 0, 0]
    assert {scored.problem for scored in scores} == {"TARGET is missing"}


def test_transport_faults_are_tried_again_at_most_three_times(tmp_path):
    pauses = []
    statuses = {1: 503, 2: 429, 3: 500}
    with serving(Script(oracle, statuses.get)) as url:
        text = "\n".join(f"Observed: {line}" for line in STATES[0].observations)
        request = {"messages": [{"content": text}]}
        answer = ask(Endpoint(url=url), request, sleep=pauses.append)
    assert answer.retries == ("status 503", "status 429", "status 500")
    assert pauses == [1, 2, 4]
    with serving(Script(oracle, lambda number: 502)) as url:
        pauses.clear()
        with pytest.raises(UnansweredError, match="status 502"):
            ask(Endpoint(url=url), {}, sleep=pauses.append)
        assert len(pauses) == 3


def test_a_closed_port_is_a_transport_fault(tmp_path):
    with serving(Script(oracle)) as url:
        pass
    pauses = []
    with pytest.raises(UnansweredError):
        ask(Endpoint(url=url), {}, sleep=pauses.append)
    assert len(pauses) == 3


def test_a_refused_request_stops_the_collection(tmp_path):
    script = Script(oracle, lambda number: 401)
    with serving(script) as url, pytest.raises(InputError, match="status 401"):
        collect(tmp_path / "a.jsonl", SETTING, items(("L1",), 3, 1), STATES, Endpoint(url=url))
    assert read_archive(tmp_path / "a.jsonl") == {}


def test_unanswered_requests_stay_open_and_are_asked_the_next_time(tmp_path, monkeypatch):
    monkeypatch.setattr(endpoint_module, "_FIRST_PAUSE", 0.0)
    down = Script(lambda request: "ACTION: ablate", lambda number: 503 if number > 1 else None)
    plan = items(("L1",), 3, 1)
    with serving(down) as url:
        done = collect(tmp_path / "a", SETTING, plan, STATES, Endpoint(url=url), workers=1)
    assert (done.wanted, done.answered, len(done.unanswered)) == (3, 1, 2)
    up = Script(lambda request: "ACTION: ablate")
    with serving(up) as url:
        done = collect(tmp_path / "a", SETTING, plan, STATES, Endpoint(url=url))
    assert (done.answered, len(up.requests)) == (3, 2)


def test_another_plan_under_the_same_ids_is_refused(tmp_path):
    plan = items(("L1",), 1, 1)
    with serving(Script(lambda request: "ACTION: ablate")) as url:
        collect(tmp_path / "a", SETTING, plan, STATES, Endpoint(url=url))
        other = Setting(name="scripted", family="scripts", model="another")
        with pytest.raises(InputError, match="holds another request"):
            collect(tmp_path / "a", other, plan, STATES, Endpoint(url=url))


def test_one_writer_at_a_time(tmp_path):
    with (
        ArchiveWriter(tmp_path / "a"),
        pytest.raises(StoreError, match="another process"),
        ArchiveWriter(tmp_path / "a"),
    ):
        pass


def record(name, text="hello"):
    return exchange(name, {"model": "m"}, json.dumps(completion(text)).encode())


def test_a_torn_last_line_is_cut_off_at_every_byte(tmp_path):
    path = tmp_path / "a"
    with ArchiveWriter(path) as archive:
        archive.add(record("one"))
        size = path.stat().st_size
        archive.add(record("two"))
    whole = path.read_bytes()
    for length in range(size, len(whole)):
        path.write_bytes(whole[:length])
        assert set(read_archive(path)) == {"one"}
        with ArchiveWriter(path) as archive:
            assert set(archive.known) == {"one"}
            archive.add(record("two"))
        assert path.read_bytes() == whole


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda line: line.replace(b"hello", b"hallo"), "checksum"),
        (lambda line: line + line, "stands twice"),
        (lambda line: b"{}\n" + line, "line 1"),
        (lambda line: b"nonsense\n" + line, "line 1"),
    ],
)
def test_damage_is_reported_with_its_line(tmp_path, damage, message):
    path = tmp_path / "a"
    with ArchiveWriter(path) as archive:
        archive.add(record("one"))
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(InputError, match=message):
        read_archive(path)


@pytest.mark.parametrize(
    "body",
    [b"", b"null", b"[]", b'{"choices": []}', b'{"choices": [3]}', b"\xff\xfe", b"[" * 99_999],
)
def test_replies_of_any_form_are_archived_and_give_an_empty_answer(tmp_path, body):
    with ArchiveWriter(tmp_path / "a") as archive:
        archive.add(exchange("x", {}, body))
    (kept,) = read_archive(tmp_path / "a").values()
    assert kept.reply.encode("utf-8", "surrogateescape") == body
    assert answer_text(kept.reply) == ""
    assert kept.charge.tokens_out == 0


def test_the_answer_is_the_content_and_not_the_reasoning():
    assert answer_text(json.dumps(completion("final"))) == "final"
    only_reasoning = {"choices": [{"message": {"content": None, "reasoning": "SEEDS: 3"}}]}
    assert answer_text(json.dumps(only_reasoning)) == ""


def collect_in_child(folder, url, workers=3):
    arguments = ["collect", str(folder), "--url", url, "--model", "m", "--name", "killed"]
    arguments += ["--interfaces", "L3,self_refine", "--states", "3", "--repetitions", "2"]
    arguments += ["--workers", str(workers)]
    code = f"from outlay.cli.bench_designs import command; command({arguments!r})"
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.DEVNULL)


def triples(path):
    return {(r.id, r.request_sha256, r.reply_sha256) for r in read_archive(path).values()}


@pytest.mark.parametrize("killed_at", [1, 7, 18])
def test_kill_and_resume_gives_the_same_archive(tmp_path, killed_at):
    child = []

    def kill(number):
        if number == killed_at:
            while not child:
                time.sleep(0.001)
            os.kill(child[0].pid, signal.SIGKILL)

    script = Script(oracle, kill)
    with serving(script) as url:
        child.append(collect_in_child(tmp_path / "cut", url))
        assert child[0].wait(60) == -signal.SIGKILL
        kept = read_archive(tmp_path / "cut" / "killed.jsonl")
        sent_before = len(script.requests)
        assert collect_in_child(tmp_path / "cut", url).wait(60) == 0
        assert len(script.requests) - sent_before == 18 - len(kept)
        assert collect_in_child(tmp_path / "whole", url).wait(60) == 0
    cut, whole = (tmp_path / name / "killed.jsonl" for name in ("cut", "whole"))
    assert triples(cut) == triples(whole)
    assert len(triples(cut)) == 18
    assert {k: v for k, v in read_archive(cut).items() if k in kept} == kept


@pytest.mark.parametrize("kept", range(19))
def test_any_archive_that_a_crash_can_leave_is_completed(tmp_path, kept):
    """A crash leaves whole lines and at most a part of the next."""
    plan = items(("L3", "self_refine"), 3, 2)
    sent = []

    def send(endpoint, request):
        sent.append(request)
        return Answer(json.dumps(completion(oracle(request))).encode(), (), 0.1)

    endpoint = Endpoint(url="http://unused")
    collect(tmp_path / "whole", SETTING, plan, STATES, endpoint, send=send)
    lines = (tmp_path / "whole").read_bytes().splitlines(keepends=True)
    rest = lines[kept][: 10 + 40 * kept] if kept < 18 else b""
    (tmp_path / "cut").write_bytes(b"".join(lines[:kept]) + rest)
    sent.clear()
    collect(tmp_path / "cut", SETTING, plan, STATES, endpoint, send=send, workers=1 + kept % 4)
    assert len(sent) == 18 - kept
    assert triples(tmp_path / "cut") == triples(tmp_path / "whole")


def test_replies_in_flight_are_kept_when_another_request_is_refused(tmp_path):
    def send(endpoint, request):
        if state_in(request) == 0:
            raise InputError("refused")
        time.sleep(0.05)
        return Answer(b"{}", (), 0.05)

    plan = items(("L3",), 3, 1)
    with pytest.raises(InputError, match="refused"):
        collect(tmp_path / "a", SETTING, plan, STATES, Endpoint(url="http://x"), send=send)
    assert len(read_archive(tmp_path / "a")) == 2


def test_an_interface_is_asked_for_once():
    with pytest.raises(InputError, match="each once"):
        items(("L1", "L1"), 3, 1)


def test_a_panel_of_scripted_models_from_collection_to_report(tmp_path):
    """Two families of two settings; every reply is the best design, or invalid."""
    runner = CliRunner()
    counts = {}

    def answer(request):
        index = state_in(request)
        text = request["messages"][0]["content"]
        with script.lock:
            key = request["model"], text
            counts[key] = counts.get(key, 0) + 1
        if "ACTION:" in text:
            return "nothing"
        if "Choose the arm" in text or (request["model"] == "weak" and index == 1):
            return "nothing"
        return oracle_text(index)

    script = Script(answer)
    interfaces = "L1,L2,L3,L4,L1_padded,L3_short,json,think_then_act,plan_and_solve,self_refine"
    with serving(script) as url:
        for name, family, model in (
            ("a-low", "A", "strong"),
            ("a-max", "A", "strong"),
            ("b-low", "B", "weak"),
            ("b-max", "B", "weak"),
        ):
            arguments = [str(tmp_path), "--url", url, "--model", model, "--name", name]
            arguments += ["--family", family, "--interfaces", interfaces, "--states", "3"]
            arguments += ["--repetitions", "2", "--prices", "1,0.1,2", "--json"]
            result = runner.invoke(
                command, ["collect", *arguments], catch_exceptions=False, standalone_mode=False
            )
            assert json.loads(result.stdout)["answered"] == 66
    out = tmp_path / "out"
    result = runner.invoke(
        command, ["report", str(tmp_path), "--out", str(out), "--json"], catch_exceptions=False
    )
    data = json.loads(result.stdout)
    assert (out / "tables.md").read_text().startswith("# Action construction")
    assert {p.name for p in out.glob("*.png")} == {"levels.png", "controls.png"}
    rows = {(row["setting"], row["interface"]): row for row in data["rows"]}
    assert rows["a-low", "L3"]["efficiency"]["value"] == pytest.approx(100)
    assert rows["b-low", "L3"]["means"] == pytest.approx([1, 0, 1])
    assert rows["b-low", "L3"]["efficiency"]["value"] == pytest.approx(200 / 3)
    assert rows["b-low", "L3"]["parsed"] == 4
    assert rows["b-low", "json"]["efficiency"]["value"] == 0
    contrasts = {c["name"]: c for c in data["contrasts"]}
    assert len(contrasts) == 12
    assert contrasts["A: L1 to L3"]["difference"] == pytest.approx(1)
    # differences 1, 0, 1: mean 2/3, variance 1/3, t^2 = 4, dz^2 = 4/3
    assert contrasts["B: L1 to L3"]["t"] ** 2 == pytest.approx(4)
    assert contrasts["B: L1 to L3"]["dz"] ** 2 == pytest.approx(4 / 3)
    assert contrasts["L3: a-low to a-max"]["p"] == 1
    assert len(data["strategies"]) == 12
    assert data["retained"]["b-low: L3_short"]["value"] == pytest.approx(100)
    assert data["charges"]["a-low"]["tokens_out"] == 660
    assert len([p for p in data["problems"] if p.startswith("b-low L3 ")]) == 2
    again = runner.invoke(command, ["report", str(tmp_path)])
    assert "| b-low | L3 | 66.67 |" in again.stdout


def test_a_report_needs_every_reply(tmp_path):
    runner = CliRunner()
    result = runner.invoke(command, ["report", str(tmp_path)])
    assert "found no collection there" in str(result.exception)
    with serving(Script(lambda request: "ACTION: ablate")) as url:
        arguments = [str(tmp_path), "--url", url, "--model", "m", "--name", "n", "--states", "3"]
        runner.invoke(command, ["collect", *arguments, "--interfaces", "L1"])
    path = tmp_path / "n.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[1:]))
    with pytest.raises(InputError, match="1 of 9 replies are missing"):
        report(tmp_path, TABLES)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--url", "ftp://x", "--model", "m", "--name", "n"], "url: found 'ftp://x'"),
        (["--url", "http://x", "--model", "m", "--name", "a/b"], "name: found 'a/b'"),
        (["--url", "http://x", "--model", "m", "--name", "n", "--interfaces", "L9"], "L9"),
        (["--url", "http://x", "--model", "m", "--name", "n", "--prices", "1"], "--prices"),
        (["--url", "http://x", "--model", "m", "--name", "n", "--parameter", "x"], "KEY=VALUE"),
        (["--url", "http://x", "--model", "m", "--name", "n", "--key-env", "NO_KEY_X"], "not set"),
    ],
)
def test_wrong_options(tmp_path, arguments, message):
    result = CliRunner().invoke(command, ["collect", str(tmp_path), *arguments])
    assert isinstance(result.exception, InputError)
    assert message in str(result.exception)
    assert list(tmp_path.iterdir()) == []


def test_panel_json():
    result = CliRunner().invoke(command, ["--json"])
    data = json.loads(result.stdout)
    assert data["affordable"] == {"4": 130, "6": 478, "8": 684}
    assert data["panel"]["seed"] == 11
    assert data["panel"]["target_oracle"] == pytest.approx(100, abs=1e-9)
    assert "six_arms" in CliRunner().invoke(command, []).stdout


def test_gate_command():
    result = CliRunner().invoke(command, ["gate", "--pairs", "4", "--json"])
    data = json.loads(result.stdout)
    assert data["mixed"]["tokens_gated"] < data["mixed"]["tokens_open"]
