"""A proxy before a scripted model, and a client that speaks plain HTTP to it."""

from __future__ import annotations

import http.client
import json
import socket
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from outlay.execution.metering.patience import Pace
from outlay.execution.metering.provider import Upstream
from outlay.execution.metering.proxy import Proxy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from outlay.agents.clients.contract import Usage
    from tests.model_server import ModelServer

KEY, SECRET = 'sk-provider/"4711"', "attempt-secret"
PATHS = {
    "responses": "/v1/responses",
    "messages": "/v1/messages?beta=true",
    "chat": "/v1/chat/completions",
}
QUICK = Pace(first=0.01, most=0.02, connect=2.0, idle=0.2)
QUIET = Pace(idle=30.0)


class Got(NamedTuple):
    """What a client was answered; `text` is what it read before the end or the break."""

    status: int
    headers: dict[str, str]
    text: str
    whole: bool = True


@contextmanager
def metered(server: ModelServer | str, **given: Any) -> Iterator[Proxy]:
    url = server if isinstance(server, str) else server.url
    told: list[Usage] = []
    fields: dict[str, Any] = {"secret": SECRET, "told": told.append, "patience": 0.0}
    with Proxy(Upstream(url, KEY), **fields | {"pace": QUICK} | given) as proxy:
        yield proxy
    assert not told or told[-1] == proxy.usage


def asking(protocol: str, *, stream: bool = False, prompt: str = "hello", **more: Any) -> bytes:
    """Return the body of a request that offers a shell."""
    body: dict[str, Any] = {"model": "m", "stream": stream}
    if protocol == "responses":
        body |= {"input": prompt, "tools": [{"type": "function", "name": "exec_command"}]}
    elif protocol == "messages":
        body |= {"messages": [{"role": "user", "content": prompt}], "tools": [{"name": "Bash"}]}
    else:
        body |= {"messages": [{"role": "user", "content": prompt}]}
        body["tools"] = [{"type": "function", "function": {"name": "bash"}}]
    return json.dumps(body | more).encode()


def send(
    port: int,
    path: str,
    body: bytes | None,
    *,
    key: str = SECRET,
    method: str = "POST",
    **headers: str,
) -> Got:
    """Send one request and read its answer as far as it comes."""
    door = {"x-api-key": key} if "messages" in path else {"authorization": f"Bearer {key}"}
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, body, door | given)
        answer = connection.getresponse()
        text, whole = b"", True
        try:
            text = answer.read()
        except http.client.IncompleteRead as cut:
            text, whole = cut.partial, False
        named = {name.lower(): value for name, value in answer.getheaders()}
        return Got(answer.status, named, text.decode(), whole)
    finally:
        connection.close()


def raw(port: int, data: bytes, *, wait: float = 5.0) -> bytes:
    """Send bytes as they are and return all that comes back."""
    with socket.create_connection(("127.0.0.1", port), wait) as connection:
        connection.sendall(data)
        found = b""
        while piece := connection.recv(1 << 16):
            found += piece
        return found
