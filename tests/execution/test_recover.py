"""What a later driver finds, and the pool over real children."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

from outlay.execution import processes, recover
from outlay.execution.folder import holder, read_claim, read_result, read_usage
from outlay.execution.job import to_json
from outlay.execution.pool import LocalPool
from tests.execution.conftest import SCORE, Lab, of_token, until

if TYPE_CHECKING:
    from outlay.execution.job import Job

SLOW = "import time\nprint('started', flush=True)\ntime.sleep(1)\n" + SCORE


def test_a_job_that_never_started_cannot_start_late(lab: Lab) -> None:
    job = lab.job()
    lab.written(job)
    for _ in range(2):
        assert recover.look(lab.run_folder, job.id, job.token) == recover.NeverStarted()
    command = [sys.executable, "-P", "-m", "outlay", "attempt", lab.run_folder, job.id]
    late = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "is taken" in late.stderr
    assert read_result(lab.folder(job)) is None
    assert not (lab.folder(job) / "out.txt").exists()


def test_without_a_folder_it_never_started(lab: Lab) -> None:
    assert recover.look(lab.run_folder, "a99.1", "t") == recover.NeverStarted()


def test_finished(lab: Lab) -> None:
    job = lab.job()
    result = lab.run(job)
    assert recover.look(lab.run_folder, job.id, job.token) == recover.Finished(result)


def test_a_result_cut_anywhere_is_no_result(lab: Lab) -> None:
    job = lab.job()
    lab.run(job)
    place = lab.folder(job) / "result.json"
    whole = place.read_bytes()
    for size in range(len(whole)):
        place.write_bytes(whole[:size])
        assert read_result(lab.folder(job)) is None
    fate = recover.look(lab.run_folder, job.id, job.token)
    assert isinstance(fate, recover.Dead)
    for odd in (b"[]", b"1", b"null", b'{"format": 1}', b'{"format": 1, "runs": 3}', b"\xff"):
        place.write_bytes(odd)
        assert read_result(lab.folder(job)) is None


def test_a_usage_file_cut_anywhere_is_nothing_used(lab: Lab) -> None:
    job = lab.job("import time\ntime.sleep(0.3)\n" + SCORE)
    lab.run(job)
    place = lab.folder(job) / "usage.json"
    whole = place.read_bytes()
    assert read_usage(lab.folder(job)).seconds > 0
    for size in range(len(whole)):
        place.write_bytes(whole[:size])
        assert read_usage(lab.folder(job)).seconds == 0


def test_a_claim_of_another_boot_is_dead(lab: Lab) -> None:
    job = lab.job()
    folder = lab.written(job)
    me = processes.row(os.getpid())
    assert me is not None
    text = f'{{"pid": {me.process.pid}, "start": {me.process.start}, "token": "t", "boot": "B"}}'
    (folder / "claim").write_text(text)
    assert recover.look(lab.run_folder, job.id, "t") == recover.Dead({"seconds": 0.0})


DRIVER = """
import sys, time
from outlay.execution.folder import job_from_json
from outlay.execution.pool import LocalPool
pool = LocalPool(sys.argv[1], 1)
pool.start(job_from_json(sys.argv[2]))
time.sleep(600)
"""


def killed_driver(lab: Lab, job: Job) -> None:
    """Start the job from a driver that is then killed."""
    command = [sys.executable, "-c", DRIVER, str(lab.run_folder), to_json(job)]
    with subprocess.Popen(command) as driver:
        out = lab.folder(job) / "out.txt"
        until(lambda: out.exists() and "started" in out.read_text())
        driver.send_signal(signal.SIGKILL)


def test_the_job_of_a_killed_driver_is_adopted(lab: Lab) -> None:
    job = lab.job(SLOW)
    killed_driver(lab, job)
    fate = recover.look(lab.run_folder, job.id, job.token)
    assert isinstance(fate, recover.Alive)
    with LocalPool(lab.run_folder, 1) as pool:
        pool.adopt(job.id, job.token)
        assert pool.free == 0
        assert pool.wait(0) == []
        (result,) = pool.wait(20)
        assert (result.status, result.runs[0].value) == ("done", 0.5)
        assert pool.free == 1


def test_the_job_of_a_killed_driver_is_ended(lab: Lab) -> None:
    job = lab.job(SLOW.replace("sleep(1)", "sleep(600)"))
    killed_driver(lab, job)
    with LocalPool(lab.run_folder, 1) as pool:
        pool.adopt(job.id, job.token)
        pool.end(job.id)
        assert pool.wait(20)[0].reason == "ended"
    assert of_token(job.token) == []


def test_leftovers_are_ended_without_adopting(lab: Lab) -> None:
    job = lab.job(SLOW.replace("sleep(1)", "sleep(600)"))
    killed_driver(lab, job)
    assert recover.ensure_ended(lab.run_folder, job.id, job.token) == []
    assert of_token(job.token) == []
    fate = recover.look(lab.run_folder, job.id, job.token)
    assert isinstance(fate, recover.Dead)


def test_adopting_what_is_over_gives_its_result(lab: Lab) -> None:
    job = lab.job()
    result = lab.run(job)
    never = lab.job()
    lab.written(never)
    with LocalPool(lab.run_folder, 2) as pool:
        pool.adopt(job.id, job.token)
        pool.adopt(never.id, never.token)
        found = {one.id: one for one in pool.wait(5)}
    assert found[job.id] == result
    assert (found[never.id].status, found[never.id].seconds) == ("infrastructure", 0.0)


def test_results_come_as_they_are_ready(lab: Lab) -> None:
    slow, quick = lab.job(SLOW), lab.job()
    lab.pool.start(slow)
    lab.pool.start(quick)
    assert lab.pool.free == 0
    order = [result.id for _ in range(2) for result in lab.pool.wait(20)]
    assert order == [quick.id, slow.id]
    assert lab.pool.wait(None) == []


def test_a_wrapper_that_hangs_is_killed_after_the_grace(lab: Lab) -> None:
    job = lab.job(SLOW.replace("sleep(1)", "sleep(600)"))
    with LocalPool(lab.run_folder, 1, grace=0.3) as pool:
        pool.start(job)
        until(lambda: (lab.folder(job) / "out.txt").exists() and "started" in lab.output(job))
        claim = read_claim(lab.folder(job))
        assert claim is not None
        process = holder(claim)
        assert process is not None
        os.kill(process.pid, signal.SIGSTOP)
        begun = time.monotonic()
        pool.end(job.id)
        (result,) = pool.wait(5)
        assert time.monotonic() - begun < 5
        assert (result.status, result.reason) == ("infrastructure", "host")
    assert of_token(job.token) == []


def test_closing_ends_all(lab: Lab) -> None:
    jobs = [lab.job(SLOW.replace("sleep(1)", "sleep(600)")) for _ in range(2)]
    with LocalPool(lab.run_folder, 2) as pool:
        for job in jobs:
            pool.start(job)
        until(lambda: all((lab.folder(job) / "out.txt").exists() for job in jobs))
    for job in jobs:
        assert of_token(job.token) == []
        result = read_result(lab.folder(job))
        assert result is not None
        assert result.reason == "ended"


def test_the_last_words_of_a_process_that_could_not_begin(lab: Lab) -> None:
    job = lab.job()
    lab.folder(job).mkdir(parents=True)
    lab.pool.start(job._replace(folder=str(lab.root / "elsewhere")))
    (result,) = lab.pool.wait(20)
    assert (result.status, result.reason) == ("infrastructure", "host")
    assert f"no job {job.id}" in result.detail
