"""What a command inside the strongest sandbox can see and reach."""

from __future__ import annotations

import http.server
import os
import sys
import threading
from pathlib import Path

import pytest

from outlay.execution import sandbox
from tests.execution.conftest import SCORE, Lab

pytestmark = pytest.mark.skipif(not sandbox.works("bwrap"), reason="bubblewrap does not start")


def see(lab: Lab, expressions: list[str], **fields: object) -> list[object]:
    """Evaluate expressions inside a job and return their values."""
    lines = "".join(f"print('>>', repr({text}))\n" for text in expressions)
    job = lab.job(f"import os, socket, glob\n{lines}{SCORE}", sandbox="bwrap", **fields)
    result = lab.run(job)
    assert result.status == "done", (result, (lab.folder(job) / "err.txt").read_text())
    shown = [line[3:] for line in lab.output(job).splitlines() if line.startswith(">>")]
    return [eval(text) for text in shown]


def test_store_and_other_jobs_are_absent(lab: Lab) -> None:
    lab.run(lab.job(keep=True))
    (lab.run_folder / "store.db").write_text("x")
    jobs = f"{lab.run_folder}/jobs"
    listed, inside, own = see(
        lab,
        [
            f"os.listdir({str(lab.run_folder)!r})",
            f"sorted(os.listdir({jobs!r})) == [os.getcwd().split('/')[-3]]",
            "sorted(os.listdir(os.path.dirname(os.path.dirname(os.getcwd()))))",
        ],
    )
    assert listed == ["jobs"]
    assert inside is True
    assert own == ["exchange", "work"]


def test_masked_folders_are_absent_and_read_brings_back(lab: Lab) -> None:
    user = lab.root / "user"
    (user / "more").mkdir(parents=True)
    (user / "hidden.py").write_text("x")
    (user / "more/m").write_text("x")
    masks = (str(user),)
    assert see(lab, [f"os.listdir({str(user)!r})"], mask=masks) == [[]]
    read = (str(user / "more"),)
    found = see(
        lab,
        [f"os.listdir({str(user)!r})", f"os.listdir({read[0]!r})"],
        mask=masks,
        read=read,
    )
    assert found == [["more"], ["m"]]


def test_the_python_in_use_stays_visible(lab: Lab) -> None:
    above = Path(sys.prefix).resolve().parent
    if above == Path("/"):
        pytest.skip("this Python lies at the top of the file system")
    (found,) = see(lab, [f"os.listdir({str(above)!r})"], mask=(str(above),))
    assert isinstance(found, list)
    assert Path(sys.prefix).name in found
    assert len(found) <= 3


def test_secrets_of_the_home_folder_are_absent(lab: Lab) -> None:
    home = lab.root / "home"
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh/id").write_text("secret")
    (home / ".netrc").write_text("secret")
    environment = lab.job().environment | {"HOME": str(home)}
    found = see(
        lab,
        [f"sorted(os.listdir({str(home)!r}))", f"os.listdir({str(home / '.ssh')!r})"],
        environment=environment,
        read=(str(home), str(home / ".netrc")),
    )
    assert found == [[".netrc", ".ssh"], []]


def test_the_system_is_read_only(lab: Lab) -> None:
    script = f"""
import os
for place in ("/etc/x", "/usr/x", {str(lab.root / "x")!r}, {str(Path.home() / "x")!r}):
    try:
        open(place, "w")
    except OSError:
        pass
    else:
        print("wrote", place)
open("/tmp/mine", "w").write("x")
open("mine", "w").write("x")
"""
    job = lab.job(script + SCORE, sandbox="bwrap")
    assert lab.run(job).status == "done"
    assert not (lab.root / "x").exists()
    assert not Path("/etc/x").exists()
    assert not Path("/tmp/mine").exists()


def test_other_processes_are_out_of_sight(lab: Lab) -> None:
    (pids,) = see(lab, ["sorted(int(n) for n in os.listdir('/proc') if n.isdigit())"])
    assert isinstance(pids, list)
    assert len(pids) <= 3


def test_no_network_but_the_own_loopback(lab: Lab) -> None:
    with http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler) as server:
        threading.Thread(target=server.handle_request, daemon=True).start()
        port = server.server_address[1]
        reach = f"socket.socket().connect_ex(('127.0.0.1', {port}))"
        here = "socket.create_server(('127.0.0.1', 0))"
        own = f"(lambda s: socket.create_connection(s.getsockname()).fileno() > 0)({here})"
        names = "sorted(name for _, name in socket.if_nameindex())"
        assert see(lab, [f"{reach} != 0", own, names]) == [True, True, ["lo"]]
        assert see(lab, [reach], network=True) == [0]


def test_root_has_no_powers(lab: Lab) -> None:
    (line,) = see(lab, ["[x for x in open('/proc/self/status') if x.startswith('CapEff')]"])
    assert isinstance(line, list)
    assert int(line[0].split()[1], 16) == 0


def test_a_probe_starts_a_real_sandbox(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fake = tmp_path / "bwrap"
    fake.write_text("#!/bin/sh\n[ $1 = --version ] && exit 0\necho 'no uid map' >&2\nexit 1\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert not sandbox.works("bwrap")
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    assert not sandbox.works("bwrap")
    assert not sandbox.works("unshare")
    assert sandbox.works("subreaper")
