"""One request to an OpenAI-compatible endpoint, retried for faults of the transport only."""

from __future__ import annotations

import http.client
import json
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from outlay.errors import InputError, OutlayError

if TYPE_CHECKING:
    from collections.abc import Callable

MOST_RETRIES = 3
LARGEST_REPLY = 20_000_000
_RETRIED = frozenset({408, 429, 500, 502, 503, 504})
_FIRST_PAUSE = 1.0


class UnansweredError(OutlayError):
    """Raised when a request stays without an answer after every retry; it may be sent again."""


class Answer(NamedTuple):
    """What came back.

    Attributes:
        body: Bytes of the reply.
        retries: What went wrong before.
        seconds: From sending the answered request to its last byte.
    """

    body: bytes
    retries: tuple[str, ...]
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where requests go.

    Attributes:
        url: Base address, such as `http://127.0.0.1:8000/v1`.
        key: Bearer token; never archived. Empty for none.
        timeout: Seconds without a byte until a request counts as a transport fault.
    """

    url: str
    key: str = ""
    timeout: float = 600.0

    def __post_init__(self) -> None:
        if not self.url.startswith(("http://", "https://")):
            raise InputError(f"url: found {self.url!r}, allowed: http:// or https://")


def ask(
    endpoint: Endpoint,
    request: dict[str, Any],
    *,
    sleep: Callable[[float], object] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> Answer:
    """Send a chat completion request and return the reply, whatever it says.

    A reply is never asked for again because of its content. A refused or lost connection, a
    timeout, a rate limit and a server failure are tried again at most three times, after 1, 2 and
    4 seconds.

    Raises:
        UnansweredError: No answer after three retries.
        InputError: The endpoint refuses the request (another status from 400 to 499).
    """
    retries: list[str] = []
    while True:
        started = clock()
        try:
            return Answer(_send(endpoint, request), tuple(retries), clock() - started)
        except urllib.error.HTTPError as error:
            problem = f"status {error.code}"
            if error.code not in _RETRIED:
                detail = error.read(500).decode("utf-8", "replace")
                raise InputError(f"{endpoint.url}: {problem}: {detail}") from error
        except (OSError, http.client.HTTPException) as error:
            problem = f"{type(error).__name__}: {error}"
        if len(retries) == MOST_RETRIES:
            raise UnansweredError(f"{endpoint.url}: no answer: {problem}")
        retries.append(problem)
        sleep(_FIRST_PAUSE * 2 ** (len(retries) - 1))


def _send(endpoint: Endpoint, request: dict[str, Any]) -> bytes:
    headers = {"Content-Type": "application/json"}
    if endpoint.key:
        headers["Authorization"] = f"Bearer {endpoint.key}"
    address = f"{endpoint.url.rstrip('/')}/chat/completions"
    message = urllib.request.Request(  # noqa: S310 - the scheme was checked
        address, data=json.dumps(request).encode(), headers=headers, method="POST"
    )
    with urllib.request.urlopen(message, timeout=endpoint.timeout) as reply:  # noqa: S310
        body: bytes = reply.read(LARGEST_REPLY + 1)
    if len(body) > LARGEST_REPLY:
        raise http.client.HTTPException(f"a reply above {LARGEST_REPLY} bytes")
    return body
