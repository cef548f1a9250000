"""A client of a model at work in a workspace: metered, watched and read. Standard library only."""

from __future__ import annotations

import os
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from outlay.agents.clients.contract import Ending, Request, Usage
from outlay.agents.clients.registry import by_name
from outlay.execution import fault
from outlay.execution.agent_log import LOG, Lines
from outlay.execution.folder import USAGE, agent_usage, write_metered
from outlay.execution.job import AgentTold
from outlay.execution.metering.record import forms, new_secret, redacted
from outlay.tokens import Prices, cost, is_spent

if TYPE_CHECKING:
    from outlay.agents.clients.contract import Happened, Invocation
    from outlay.execution.job import AgentWork
    from outlay.execution.metering.proxy import Proxy
    from outlay.execution.runner import Runner
    from outlay.execution.workspace import Workspace

EXCHANGES = "exchanges.jsonl.gz"
"""File in the job's folder with every exchange with the provider."""

_SOCKET, _PORT = "model.sock", 8971
"""Where a client without a network reaches our proxy: outside, and on its own loopback."""

_GRACE = 2.0
"""Seconds that a client has to end by itself once nothing more can come of its requests."""

_BYTES_A_TOKEN = 4
"""For the estimate of what a client used that tells nothing."""

_FAULTS = {
    "budget": "the limit of the attempt was reached",
    "key": "the provider refuses the key",
    "provider": "the provider is overloaded or out of reach",
    "cut": "the provider's answer broke off or never came",
}

_NO_KEY = "the provider asks for a key, and agent.key names no variable"


class Session:
    """One client at work in one workspace.

    `usage` is known whatever comes of it, also where a limit of the job ended it.
    """

    def __init__(self, task: AgentWork, runner: Runner, space: Workspace) -> None:
        self._task = task
        self._runner = runner
        self._space = space
        self._client = by_name(task.client)
        self._reader = self._client.reader()
        self._home = runner.exchange / "home"
        self._apart = runner.kind == "bwrap" and not runner.network
        self._proxy: Proxy | None = None
        self._secret = new_secret()
        self._key = os.environ.get(task.key, "") if task.key else ""
        self._forms = forms((self._secret, self._key))
        self._printed = 0
        self._hopeless_since: float | None = None
        self._spent = False
        self._answer = ""
        self.usage = Usage()

    def work(self) -> Ending:
        """Let it work to its end and return how it ended; raises `Fault` as any command does."""
        self._home.mkdir(exist_ok=True)
        with ExitStack() as stack, open(self._runner.folder / LOG, "ab", 0) as log:
            self._proxy = self._open_proxy(stack)
            invocation = self._invocation()
            lines = Lines(self._read, log, self._hide)
            watch = self._runner.watch
            watch.give_up, watch.idle = self._hopeless, self._waited
            try:
                ended = self._runner.run(
                    "agent",
                    self._bridged(invocation.command),
                    self._space,
                    self._environment(invocation),
                    network=by_itself(self._task.client, self._task.url),
                    stdin=self._stdin(invocation),
                    tap=lines.feed,
                )
                lines.end()
                ending = self._judged(self._reader.ending(ended.code, ended.err.last_line()))
                if self._spent and ended.stop:
                    ending = ending._replace(reason="budget", detail=_FAULTS["budget"])
                ending = ending._replace(
                    answer=self._hide(ending.answer), detail=self._hide(ending.detail)
                )
                self._answer = ending.answer
            except fault.Fault as found:
                raise self._excused(found) from None
            finally:
                watch.rest()
                stack.close()  # the proxy counts what was in flight when it hangs up
                self._printed = lines.kept
                self.usage = self._counted()
        return ending

    def told(self) -> AgentTold:
        """Return what is known of the work beside tokens and money."""
        usage = self.usage
        return AgentTold(
            client=self._task.client,
            version=self._task.version,
            model=self._task.model,
            requests=usage.requests,
            reasoning=usage.reasoning,
            cache_write=usage.cache_write,
            source=usage.source,
            complete=usage.complete,
            answer=self._answer,
        )

    def used(self) -> dict[str, Any]:
        """Return tokens and money as fields of `Result`."""
        return charged(self.usage, self._task.prices)

    def _open_proxy(self, stack: ExitStack) -> Proxy | None:
        """Start metering, where the task says which provider the client's requests are for."""
        task = self._task
        if not task.url:
            return None
        if task.key and not os.environ.get(task.key):
            raise fault.machine("key", f"the variable {task.key} holds no key")
        from outlay.execution.metering.provider import Upstream
        from outlay.execution.metering.proxy import Proxy

        proxy = Proxy(
            Upstream(task.url, self._key),
            secret=self._secret,
            tokens=task.tokens,
            usd=task.usd,
            prices=Prices(*task.prices) if task.prices else None,
            patience=task.patience,
            record=self._runner.folder / EXCHANGES,
            socket=self._runner.exchange / _SOCKET if self._apart else None,
            told=lambda usage: write_metered(self._runner.folder, charged(usage, task.prices)),
        )
        return stack.enter_context(proxy)

    def _invocation(self) -> Invocation:
        task, proxy = self._task, self._proxy
        invocation = self._client.invoke(
            Request(
                prompt=task.text,
                folder=self._space.job.container or str(self._space.root),
                home=str(self._home),
                command=task.command,
                model=task.model,
                url=f"http://127.0.0.1:{proxy.port or _PORT}" if proxy is not None else "",
                key=self._secret if proxy is not None else "",
                confined=self._runner.kind == "bwrap",
                schema=task.schema,
            )
        )
        if not task.url:
            self._bring_account()
        for name, text in invocation.files.items():
            place = self._home / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text, encoding="utf-8")
        return invocation

    def _bring_account(self) -> None:
        """Copy the user's own files of the client, which must not change what the user has."""
        user = os.environ.get("HOME", "")
        for name in self._client.own:
            with suppress(FileNotFoundError):
                content = Path(user, name).read_bytes()
                place = self._home / name
                place.parent.mkdir(parents=True, exist_ok=True)
                place.touch(0o600)
                place.write_bytes(content)

    def _stdin(self, invocation: Invocation) -> str:
        """Return the file that it reads as its standard input."""
        if not invocation.stdin:
            return os.devnull
        place = self._runner.exchange / "stdin"
        place.write_text(invocation.stdin, encoding="utf-8")
        return str(place)

    def _bridged(self, command: tuple[str, ...]) -> tuple[str, ...]:
        """Return the command behind a bridge to the proxy, where its network is its own."""
        if self._proxy is None or not self._apart:
            return command
        from outlay.execution.metering.bridge import bridged

        return bridged(command, _PORT, str(self._runner.exchange / _SOCKET))

    def _environment(self, invocation: Invocation) -> dict[str, str]:
        usage = str(self._runner.exchange / USAGE)
        home = {"HOME": str(self._home)} if self._client.own else {}
        return {**home, **invocation.environment, "OUTLAY_USAGE": usage}

    def _read(self, line: str) -> list[Happened]:
        """Return what a line tells; without a proxy, limits are held by what the client tells."""
        told = self._reader.line(line)
        if self._proxy is None and any(happened.kind == "usage" for happened in told):
            used = self._reader.ending(-1, "").usage
            used = used._replace(usd=charged(used, self._task.prices)["usd"])
            self._spent = is_spent(used, self._task.tokens, self._task.usd)
        return told

    def _hide(self, text: str) -> str:
        """Return the text without the provider's key and the secret of this attempt."""
        return redacted(text, self._forms)

    def _hopeless(self) -> bool:
        """Return whether nothing more can come of its requests and it had time to end itself."""
        proxy = self._proxy
        hopeless = self._reader.hopeless or self._spent
        if not hopeless and (proxy is None or not proxy.hopeless):
            if proxy is None or not proxy.fault:
                self._hopeless_since = None
            return False
        now = time.monotonic()
        if self._hopeless_since is None:
            self._hopeless_since = now
        return now - self._hopeless_since >= _GRACE

    def _judged(self, ending: Ending) -> Ending:
        """Return how it ended; our own proxy knows better than the client's words.

        A client may get over an answer that broke off, by asking again or without it.
        """
        if self._proxy is None:
            return ending
        found = self._proxy.fault
        if not found:
            return ending._replace(reason="agent") if ending.reason in _FAULTS else ending
        if found == "cut" and ending.ok:
            return ending
        return ending._replace(ok=False, reason=found, detail=self._said(found))

    def _excused(self, found: fault.Fault) -> fault.Fault:
        """Return why it was ended; the clock blames no work that its provider was failing."""
        failing = self._proxy.fault if self._proxy is not None else ""
        if found.reason == "timeout" and failing in ("key", "provider", "cut"):
            return fault.machine(failing, self._said(failing))
        return found

    def _said(self, found: str) -> str:
        key = self._task.key
        if found == "key":
            return f"the provider refuses the key in {key}" if key else _NO_KEY
        return _FAULTS[found]

    def _waited(self) -> float:
        return self._proxy.waited if self._proxy is not None else 0.0

    def _counted(self) -> Usage:
        """Return what it used, from whoever knows best."""
        if self._proxy is not None:
            return self._proxy.usage
        told = agent_usage(self._runner.folder)
        if told:
            return Usage(
                input=told.get("tokens_in", 0) + told.get("tokens_cached", 0),
                cached=told.get("tokens_cached", 0),
                output=told.get("tokens_out", 0),
                usd=told.get("usd"),
                source="told",
            )
        for found in (self._reader.ending(-1, "").usage, self._client.recover(str(self._home))):
            if found.input or found.output:
                # It may have asked for more than it tells, in its side requests or at its end.
                return found._replace(complete=False)
        return Usage(
            input=len(self._task.text.encode()) // _BYTES_A_TOKEN,
            output=self._printed // _BYTES_A_TOKEN,
            source="estimate",
            complete=False,
        )


def by_itself(client: str, url: str) -> bool:
    """Return whether a client reaches its provider by itself, and so needs the network.

    That is one with an account of its own, such as Codex, where no address is named.
    """
    return not url and bool(by_name(client).own)


def charged(usage: Usage, prices: tuple[float, ...] | None) -> dict[str, Any]:
    """Return tokens and money as fields of `Result`; by the prices where no money was told."""
    usd = usage.usd
    if usd is None:
        usd = cost(usage, Prices(*prices)) if prices is not None else 0.0
    return {
        "tokens_in": usage.input - usage.cached,
        "tokens_cached": usage.cached,
        "tokens_out": usage.output,
        "usd": usd,
    }
