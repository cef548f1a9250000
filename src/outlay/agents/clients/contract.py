"""What every client of a model is asked, and what it answers. Standard library only.

A client is a program that talks to a model: a coding agent such as Codex, or a plain structured
call. Its adapter turns a `Request` into a command line, reads the events that the program prints,
and says how it ended. Adapters start nothing themselves; the process of an attempt does.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, Protocol

Source = Literal["", "proxy", "stream", "session", "told", "estimate"]
"""Who counted tokens: nobody, our proxy, the client's events, its session files, a file that the
command wrote, or nobody so that they are estimated from text."""

Kind = Literal["session", "message", "tool", "usage", "error"]

Reason = Literal["", "agent", "denied", "key", "provider", "cut", "budget"]
"""Why a client failed: by itself, a tool was denied to it, its key was refused, its provider was
out of reach or overloaded, an answer broke off, the limit of the attempt was reached."""

_NONE: dict[str, Any] = {}  # shared by all records, which are never changed in place


class Usage(NamedTuple):
    """Tokens of one or more responses of a model, in one meaning whoever counted them.

    Attributes:
        input: Input tokens, those from a cache included.
        cached: Input tokens that were read from a cache.
        cache_write: Input tokens that were written to a cache.
        output: Output tokens, reasoning included.
        reasoning: Output tokens that were reasoning.
        requests: Responses counted; 0 where the source does not tell.
        usd: Money, where the client told it; `None` where it did not.
        source: Who counted.
        complete: Whether nothing is missing.
    """

    input: int = 0
    cached: int = 0
    cache_write: int = 0
    output: int = 0
    reasoning: int = 0
    requests: int = 0
    usd: float | None = None
    source: Source = ""
    complete: bool = True

    def plus(self, other: Usage) -> Usage:
        """Return the sum; the source is this one's, and it is complete if both are."""
        money = [usd for usd in (self.usd, other.usd) if usd is not None]
        return Usage(
            input=self.input + other.input,
            cached=self.cached + other.cached,
            cache_write=self.cache_write + other.cache_write,
            output=self.output + other.output,
            reasoning=self.reasoning + other.reasoning,
            requests=self.requests + other.requests,
            usd=sum(money) if money else None,
            source=self.source or other.source,
            complete=self.complete and other.complete,
        )

    def minus(self, earlier: Usage) -> Usage:
        """Return what was used since an earlier count of the same kind; never below 0."""
        usd = None if self.usd is None else max(self.usd - (earlier.usd or 0.0), 0.0)
        return self._replace(
            input=max(self.input - earlier.input, 0),
            cached=max(self.cached - earlier.cached, 0),
            cache_write=max(self.cache_write - earlier.cache_write, 0),
            output=max(self.output - earlier.output, 0),
            reasoning=max(self.reasoning - earlier.reasoning, 0),
            requests=max(self.requests - earlier.requests, 0),
            usd=usd,
        )


class Request(NamedTuple):
    """What a client is asked to do.

    Attributes:
        prompt: The whole instruction.
        folder: Workspace, absolute; the client starts in it.
        home: Its own home folder, absolute and empty; `Invocation.files` go there.
        command: Program and fixed arguments that replace the client's own; empty for its own.
        model: Model name; empty leaves it to the client.
        url: Where it sends requests, the version part (`/v1`) not included; empty leaves
            address and key to the client's own configuration.
        key: What it sends as its key; with our proxy not the provider's.
        confined: Whether a sandbox of ours holds the client, so that it needs none of its own.
        schema: JSON schema of the answer that is asked for, as text; empty for free text.
        session: Session to go on with; empty for a new one.
    """

    prompt: str
    folder: str
    home: str
    command: tuple[str, ...] = ()
    model: str = ""
    url: str = ""
    key: str = ""
    confined: bool = True
    schema: str = ""
    session: str = ""


class Invocation(NamedTuple):
    """A command line and what it needs.

    Attributes:
        command: Program and arguments.
        environment: Variables of its own.
        files: Path in its home to text.
        stdin: What it reads on its standard input, which is never left open.
    """

    command: tuple[str, ...]
    environment: dict[str, str] = _NONE
    files: dict[str, str] = _NONE
    stdin: str = ""


class Happened(NamedTuple):
    """One thing that a client told while it worked; `text` is one line for people."""

    kind: Kind
    text: str = ""


class Ending(NamedTuple):
    """How a client ended, from all that it printed and not from its exit code alone.

    Attributes:
        ok: Whether it did its work to the end.
        reason: Why not.
        detail: One line for people.
        answer: Its last message, or the structured answer as JSON text.
        session: Id to resume with; empty if it has none.
        usage: What its events say that it used.
        denied: Tools or commands that were refused to it.
    """

    ok: bool
    reason: Reason = ""
    detail: str = ""
    answer: str = ""
    session: str = ""
    usage: Usage = Usage()
    denied: tuple[str, ...] = ()


class Reader(Protocol):
    """Reads the standard output of one run of a client, line by line.

    Nothing that a program prints makes a reader raise: lines that are no JSON, of unknown types
    or without end are kept out of the way.
    """

    hopeless: bool
    """Whether the client goes on without end, and should be ended."""

    def line(self, text: str) -> list[Happened]:
        """Return what this line tells."""

    def ending(self, code: int, errors: str) -> Ending:
        """Return how the client ended.

        Args:
            code: Exit code, negative for a signal, also where we ended it.
            errors: The last lines of its standard error.
        """


class Client(Protocol):
    """One kind of client."""

    name: str
    """As in `--agent NAME`."""

    def invoke(self, request: Request) -> Invocation:
        """Return the command line; raises `ValueError` for what this client cannot do."""

    def reader(self, before: Usage = Usage()) -> Reader:  # noqa: B008 - never changed
        """Return a reader for one run.

        Args:
            before: What `recover` said before the client went on with a session, since some
                clients tell the sum of the whole session.
        """

    def recover(self, home: str, session: str = "") -> Usage:
        """Return what its session files say was used, for a client that was ended early.

        Args:
            home: Home folder that it ran with.
            session: Only this session, for a home that others use too; empty for all. What was
                used before the session was resumed is in it.
        """
