"""A proposer that asks a language model, and a rule that stands in when the model is no help."""

from __future__ import annotations

import http.client
import json
import math
import socket
from contextlib import closing
from dataclasses import replace
from threading import Timer
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from outlay.bench.coordination.proposers import Proposal, RuleBased, axis_index
from outlay.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from outlay.bench.coordination.proposers import Avoid, Board

_LARGEST_REPLY = 1_000_000  # bytes
_SHOWN = 8  # latest outcomes in a prompt
_LONGEST_RATIONALE = 500  # characters

_TASK = """\
You tune a program with the numeric axes {axes}. A higher metric is better. The champion is
{champion} with metric {metric:.6g}. The next experiment changes one axis of it by +0.5 or -0.5.
Latest experiments, oldest first:
{log}
Given up, do not propose: {avoid}
Reply with one JSON object and nothing else:
{{"axis": one of {axes}, "step": 0.5 or -0.5, "rationale": one sentence}}"""


class LanguageModel:
    """Asks an OpenAI-compatible endpoint, Ollama's included, for each step.

    A reply that is late, unreadable, names an axis that was not offered or a direction that is
    given up makes the paper's rule propose instead; the proposal then says why in `fallback`.
    Whatever the endpoint sends, the search goes on.

    Args:
        url: Base address, such as `http://127.0.0.1:11434/v1`.
        model: Model, as the endpoint calls it.
        key: Bearer token; empty for none.
        seconds: Time for one whole reply.

    Raises:
        InputError: The address is not http or https.
    """

    def __init__(self, url: str, model: str, key: str = "", seconds: float = 60.0) -> None:
        if not url.startswith(("http://", "https://")):
            raise InputError(f"url: found {url!r}, allowed: http:// or https://")
        self._address = f"{url.rstrip('/')}/chat/completions"
        self._model = model
        self._key = key
        self._seconds = seconds
        self._rule = RuleBased()

    def propose(
        self, board: Board, axes: Sequence[str], proposer: int, avoid: Avoid = frozenset()
    ) -> Proposal:
        """Return the model's step, or the rule's with the reason."""
        request = {
            "model": self._model,
            "messages": [{"role": "user", "content": prompt(board, axes, avoid)}],
            "temperature": 0,
        }
        try:
            reply = _post(self._address, self._key, request, self._seconds)
            return parse(reply, axes, avoid)
        except (OSError, http.client.HTTPException) as error:
            reason = f"no reply: {type(error).__name__}: {error}"
        except ValueError as error:
            reason = f"reply refused: {error}"
        return replace(self._rule.propose(board, axes, proposer, avoid), fallback=reason)


def prompt(board: Board, axes: Sequence[str], avoid: Avoid) -> str:
    """Return the question for a model: champion, latest outcomes, and what is given up."""
    champion = board.champion
    log = [
        f"{o.proposal.axis} {o.proposal.direction}0.5: "
        f"{o.delta:+.4g}, {'kept' if o.improved else 'dropped'}"
        for o in board.outcomes[-_SHOWN:]
    ]
    places = {axis: champion.point[axis_index(axis)] for axis in axes}
    return _TASK.format(
        axes=", ".join(axes),
        champion=", ".join(f"{axis} = {place:g}" for axis, place in places.items()),
        metric=champion.metric,
        log="\n".join(log) or "none",
        avoid=", ".join(f"{axis} {way}0.5" for axis, way in sorted(avoid)) or "nothing",
    )


def parse(reply: bytes, axes: Sequence[str], avoid: Avoid = frozenset()) -> Proposal:
    """Return the proposal in a chat completion.

    Raises:
        ValueError: It is no chat completion, holds no JSON object with `axis` and `step`, names
            an axis that was not offered, a step that is not a finite number other than 0, or a
            direction that is given up.
    """
    answer = _content(_json(reply.decode("utf-8")))
    start, end = answer.find("{"), answer.rfind("}")
    if start < 0 or end < start:
        raise ValueError("no JSON object")
    fields = _json(answer[start : end + 1])
    axis, step = fields.get("axis"), fields.get("step")
    if not isinstance(axis, str) or axis not in axes:
        raise ValueError(f"axis {str(axis)[:40]!r} was not offered")
    if isinstance(step, bool) or not isinstance(step, int | float):
        raise ValueError("step is not a number")
    if not math.isfinite(step) or step == 0:
        raise ValueError("step is not a finite number other than 0")
    direction = "+" if step > 0 else "-"
    if (axis, direction) in avoid:
        raise ValueError(f"{axis} {direction} is given up")
    rationale = str(fields.get("rationale", ""))[:_LONGEST_RATIONALE]
    return Proposal(axis=axis, direction=direction, rationale=rationale)


def _json(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except RecursionError as error:
        raise ValueError("JSON nested too deeply") from error
    if not isinstance(found, dict):
        raise ValueError("JSON, but not an object")
    return found


def _content(completion: dict[str, Any]) -> str:
    try:
        content = completion["choices"][0]["message"]["content"]
    except (KeyError, IndexError, TypeError) as error:
        raise ValueError("not a chat completion") from error
    if not isinstance(content, str):
        raise ValueError("not a chat completion with text")
    return content


def _post(address: str, key: str, request: dict[str, Any], seconds: float) -> bytes:
    """Return the whole reply, within a number of seconds and of bytes; follows no redirection."""
    url = urlsplit(address)
    connect = http.client.HTTPSConnection if url.scheme == "https" else http.client.HTTPConnection
    connection = connect(url.netloc, timeout=seconds)
    headers = {"Content-Type": "application/json"}
    if key:
        headers["Authorization"] = f"Bearer {key}"
    with closing(connection):
        connection.connect()
        # A timeout of the socket starts anew with every byte, so a clock of our own hangs up.
        clock = Timer(seconds, connection.sock.shutdown, [socket.SHUT_RDWR])
        clock.start()
        try:
            connection.request("POST", url.path, json.dumps(request).encode(), headers)
            reply = connection.getresponse()
            body = reply.read(_LARGEST_REPLY + 1)
        finally:
            late = not clock.is_alive()
            clock.cancel()
    if late:
        raise TimeoutError(f"not complete after {seconds:g} s")
    if reply.status != http.client.OK:
        raise http.client.HTTPException(f"status {reply.status}")
    if len(body) > _LARGEST_REPLY:
        raise http.client.HTTPException(f"more than {_LARGEST_REPLY} bytes")
    return body
