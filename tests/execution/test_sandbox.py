"""What a command inside the strongest sandbox can see and reach."""

from __future__ import annotations

import http.server
import os
import re
import socket
import sys
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from outlay.execution import absent, sandbox
from tests.execution.conftest import SCORE, Lab

if TYPE_CHECKING:
    from collections.abc import Iterator

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


SEVERAL = (
    *(".cache/huggingface/token", ".kaggle/kaggle.json", ".cargo/credentials.toml"),
    *(".zsh_history", ".bash_history", ".pgpass", ".my.cnf", ".config/chromium/Cookies"),
    *(".config/google-chrome/Cookies", ".mozilla/x", ".local/share/keyrings/x"),
    *(".password-store/x", ".config/gh/hosts.yml", ".config/op/config", ".azure/x"),
    *(".config/rclone/rclone.conf", ".vault-token", ".huggingface/token"),
)


def test_well_known_secrets_cannot_be_read(lab: Lab) -> None:
    home = lab.root / "home"
    for name in (*SEVERAL, ".cache/huggingface/model"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text("secret")
    there = "".join(f"{str(home / name)!r}, " for name in (*SEVERAL, ".cache/huggingface/model"))
    found = see(
        lab,
        [f"[p for p in ({there}) if 'secret' in os.popen(f'cat {{p}} 2>/dev/null').read()]"],
        environment=lab.job().environment | {"HOME": str(home)},
        read=(str(home),),
    )
    assert found == [[str(home / ".cache/huggingface/model")]]


@pytest.fixture
def outside() -> Iterator[Path]:
    """A folder that is not below `/tmp`, which is absent whatever it holds."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        yield Path(folder)


def listening(place: Path) -> socket.socket:
    made = socket.socket(socket.AF_UNIX)
    made.bind(str(place))
    made.listen()
    return made


def tried(place: Path) -> str:
    return f"socket.socket(socket.AF_UNIX).connect_ex({str(place)!r})"


@pytest.mark.parametrize("network", [False, True])
def test_sockets_of_the_user_cannot_be_reached(
    lab: Lab, outside: Path, monkeypatch: pytest.MonkeyPatch, *, network: bool
) -> None:
    (outside / "runtime").mkdir()
    bus, keys, other = (outside / name for name in ("runtime/bus", "agent", "other"))
    with listening(bus), listening(keys), listening(other):
        every = [tried(place) for place in (bus, keys, other)]
        assert see(lab, every, network=network) == [0, 0, 0]
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(bus.parent))
        monkeypatch.setenv("SSH_AUTH_SOCK", str(keys))
        found = see(lab, every, network=network)
        assert [code == 0 for code in found] == [False, False, True]
        assert see(lab, every, network=network, read=(str(bus),))[0] == 0


@pytest.mark.skipif(not os.access("/run", os.W_OK), reason="/run cannot be written here")
@pytest.mark.parametrize("network", [False, True])
def test_sockets_of_services_cannot_be_reached(lab: Lab, *, network: bool) -> None:
    with tempfile.TemporaryDirectory(dir="/run") as folder:
        place = Path(folder, "docker.sock")
        with listening(place):
            again = Path("/var/run", *place.parts[2:])
            found = see(lab, [tried(place), tried(again)], network=network)
            assert 0 not in found
            assert see(lab, [tried(place)], network=network, read=(folder,)) == [0]


def test_the_docs_name_every_secret() -> None:
    page = Path(__file__).parents[2] / "docs" / "execution.md"
    table = page.read_text().partition("### What is absent of the home folder")[2]
    rows = [line for line in table.partition("\n## ")[0].splitlines() if line.startswith("| ")]
    named = [name for row in rows[1:] for name in re.findall(r"`([^`]+)`", row)]
    assert sorted(named) == sorted(absent.SECRETS)


def test_what_the_machine_needs_of_run_stays() -> None:
    resolved = os.path.realpath("/etc/resolv.conf")
    assert resolved in absent.needed(network=True)
    assert resolved not in absent.needed(network=False)
    seen = absent.sockets({"HOME": "/home/me", "XDG_RUNTIME_DIR": "/home", "SSH_AUTH_SOCK": ""})
    assert seen == ["/run", "/var/run"]


def test_a_name_server_below_a_mask_is_visible(outside: Path) -> None:
    view = sandbox.View(
        work="/w",
        exchange="/e",
        tmp="/t",
        masks=(str(outside),),
        visible=(f"{outside}/resolv.conf",),
        network=True,
    )
    command = sandbox.wrap("bwrap", ("true",), view)
    masked, shown = command.index(str(outside)), command.index(f"{outside}/resolv.conf")
    assert (command[masked - 1], command[shown - 1]) == ("--tmpfs", "--ro-bind-try")
    assert masked < shown


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
