"""A provider behind TLS, as all but local ones are."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from typing import TYPE_CHECKING

import pytest

from outlay.agents.clients.contract import Usage
from tests.execution.metering.conftest import KEY, PATHS, asking, metered, send
from tests.model_server import ModelServer, Turn, turns

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(
    not shutil.which("openssl"), reason="openssl makes the certificate"
)


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    file = tmp_path / "both.pem"
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2"
    where = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    files = ["-keyout", str(tmp_path / "key.pem"), "-out", str(tmp_path / "certificate.pem")]
    subprocess.run([*command.split(), *where, *files], capture_output=True, check=True)
    names = ("key.pem", "certificate.pem")
    file.write_text("".join((tmp_path / name).read_text() for name in names))
    return file


def secure(server: ModelServer, certificate: Path) -> str:
    """Put TLS before a server and return its address."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    server._http.socket = context.wrap_socket(server._http.socket, server_side=True)
    return server.url.replace("http://127.0.0.1", "https://localhost")


def test_usage_is_exact_behind_tls(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    used = Usage(input=1000, cached=300, output=700)
    server = ModelServer(turns(Turn(text="many words " * 2000, usage=used)), chunk=500)
    url = secure(server, certificate)
    with server, metered(url) as proxy:
        for protocol in PATHS:
            for stream in (True, False):
                got = send(proxy.port, PATHS[protocol], asking(protocol, stream=stream))
                assert (got.status, got.whole) == (200, True)
                assert got.text.count("many words") >= 1900
        assert proxy.usage._replace(source="") == server.told(KEY)
        assert proxy.usage.requests == 6


def test_a_certificate_that_nobody_vouches_for(certificate: Path) -> None:
    server = ModelServer()
    url = secure(server, certificate)
    with server, metered(url) as proxy:
        got = send(proxy.port, PATHS["chat"], asking("chat"))
        assert (got.status, proxy.fault) == (502, "provider")
        assert "CERTIFICATE_VERIFY_FAILED" in got.text
    assert server.seen == []
