"""A provider asked directly, before a run, and never anywhere else than where it was named."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any

from outlay.agents.clients.lines import part, record, shown, word

if TYPE_CHECKING:
    from http.client import HTTPMessage
    from typing import IO

_REFUSED = (401, 403)
_SOON = 10.0


class _Stay(urllib.request.HTTPRedirectHandler):
    """A key goes to the address that was named and to no other."""

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: HTTPMessage,
        newurl: str,
    ) -> None:
        """Follow no redirection."""


def ask(url: str, secret: str, fields: dict[str, Any] | None, seconds: float) -> str:
    """Return what is answered to a request.

    Args:
        url: Whole address.
        secret: The key; empty for none.
        fields: Body of a `POST`; `None` for a `GET`.
        seconds: Limit of each wait.

    Raises:
        HTTPError: It answered with an error.
        OSError: It did not answer.
        ValueError: The address is none.
    """
    headers = {"content-type": "application/json", "anthropic-version": "2023-06-01"}
    if secret:
        headers |= {"authorization": f"Bearer {secret}", "x-api-key": secret}
    if not url.startswith(("http://", "https://")):
        raise ValueError("found no http:// or https:// address")
    body = None if fields is None else json.dumps(fields).encode()
    request = urllib.request.Request(url, body, headers)  # noqa: S310
    with urllib.request.build_opener(_Stay).open(request, timeout=seconds) as answer:
        text: bytes = answer.read(1_000_000)
    return text.decode("utf-8", "replace")


def base(url: str) -> str:
    """Return an address without the version part, which each path begins with."""
    return url.rstrip("/").removesuffix("/v1")


def said(error: urllib.error.HTTPError) -> str:
    """Return the words of an error answer."""
    body = error.read(10_000).decode("utf-8", "replace")
    return word(part(record(body) or {}, "error"), "message") or body


def without(text: str, secret: str) -> str:
    """Return one line for people, without the key if the provider shows it."""
    return shown(text.replace(secret, "***") if secret else text)


def refusal(url: str, secret: str) -> str:
    """Return how a provider refuses a key, asked for its list of models, which costs nothing.

    Empty if it lets the key in, and where it does not tell: a server may be busy, or have no such
    list.
    """
    try:
        ask(f"{base(url)}/v1/models", secret, None, _SOON)
    except urllib.error.HTTPError as error:
        return without(f"{error.code}, {said(error)}", secret) if error.code in _REFUSED else ""
    except (OSError, ValueError):
        pass
    return ""
