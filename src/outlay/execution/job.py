"""What one child process is asked to do, and what it answers. Standard library only.

The driver writes `job.json` into the job's folder and starts `outlay attempt RUN ID`; that process
claims the job, carries it out and leaves `result.json`, written beside and renamed.
An attempt's job has one subject. A measurement's job may have two (challenger and incumbent, or
champion and baseline) and evaluates them in the order given.

The records are named tuples, built by keyword: data classes would make every attempt's process
start about a fifth later.
"""

from __future__ import annotations

import json
from typing import Any, Literal, NamedTuple

FORMAT = 1

Sandbox = Literal["", "bwrap", "unshare", "subreaper"]
Status = Literal["done", "failed", "infrastructure"]

_NONE: dict[str, Any] = {}  # shared by all records, which are never changed in place


class Subject(NamedTuple):
    """A workspace to lay out, and what is run in it.

    Attributes:
        label: Short name for people, such as `n12`.
        files: Hash of the manifest of the starting files in the object store.
        swaps: Target path in the workspace to path in the workspace that is copied over it.
        patches: Paths in the workspace of unified diffs, applied in order.
        args: Appended to the evaluator's command.
        env: Set for the evaluator.
        config: Lever to option, passed to a Python callable.
    """

    label: str
    files: str
    swaps: dict[str, str] = _NONE
    patches: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    env: dict[str, str] = _NONE
    config: dict[str, str] = _NONE


class AgentWork(NamedTuple):
    """What a client of a model is to do in subject 0.

    Attributes:
        client: Name of its adapter in `outlay.agents.clients`.
        command: Program and arguments in place of its own; empty for its own.
        model: Name of the model; empty leaves it to the client.
        url: Address of the provider; empty leaves it to the client's own configuration, and
            nothing is metered.
        key: Name of the variable in this process's environment with the provider's key.
        text: Plan or question, given to it as its prompt and as `PLAN.md` outside the workspace.
        schema: JSON schema of the answer that is wanted in place of work on the files.
        tokens: Limit, counted as `outlay.budget.Charge.tokens`.
        usd: Limit in US dollars.
        prices: As `outlay.tokens.Prices`, or `None`.
        partial: Whether what it left is evaluated where it failed or reached its limit.
        patience: Seconds that an overloaded provider is waited for.
        version: The client's own version, as the driver found it.
    """

    client: str
    command: tuple[str, ...] = ()
    model: str = ""
    url: str = ""
    key: str = ""
    text: str = ""
    schema: str = ""
    tokens: float | None = None
    usd: float | None = None
    prices: tuple[float, ...] | None = None
    partial: bool = False
    patience: float = 900.0
    version: str = ""


class AgentTold(NamedTuple):
    """What is known of a client's work; the numbers are as in `clients.contract.Usage`."""

    client: str
    version: str = ""
    model: str = ""
    requests: int = 0
    reasoning: int = 0
    cache_write: int = 0
    source: str = ""
    complete: bool = True
    answer: str = ""


class Job(NamedTuple):
    """One child process's work.

    Attributes:
        id: `a12.1` is the first try of attempt 12, `m3.2` the second of measurement 3.
        token: Random text that marks every process of this job in its environment.
        folder: The job's own folder, absolute.
        objects: The run's object store, absolute.
        subjects: Workspaces.
        agent: Who works in subject 0 before it is evaluated; `None` for levers.
        command: Evaluator; `{seed}` is replaced.
        function: `module:name` in place of a command.
        check: Correctness command; empty for none.
        runs: Pairs (subject, seed) in the order to evaluate; seed `None` where there is none.
        metric: Name of the metric.
        source, line, secondary, low, high: As in `outlay.task.Metric`.
        seconds: Limit of the whole job.
        memory: Limit of the resident bytes of its process tree.
        output: Bytes of output kept.
        environment: Environment of the child, complete (already by allow-list).
        editable, protected, hidden: Globs relative to the workspace.
        data: Absolute path to path in the workspace, linked or mounted read-only.
        read, network, gpu: Widening of the sandbox.
        mask: Absolute folders that no command of the job may see, such as the user's workspace and
            the store; the run folder is always masked. Only `bwrap` can keep this promise.
        sandbox: `bwrap`, `unshare` or `subreaper`; empty lets the process find the best one.
        container: Folder that `environment` of the workspace is seen as, for a Harbor task; then
            `command` is its verifier, and its reward file holds the metric. Only `bwrap` can.
        keep_going: Whether a run without a value is no reason to leave the others out.
        exclusive: Lock file held around each evaluation, or `None`.
        keep: Whether the laid-out workspace stays after the result was written.
    """

    id: str
    token: str
    folder: str
    objects: str
    subjects: tuple[Subject, ...]
    runs: tuple[tuple[int, int | None], ...]
    metric: str
    command: tuple[str, ...] = ()
    function: str | None = None
    check: tuple[str, ...] = ()
    agent: AgentWork | None = None
    source: str = "stdout"
    line: str = "only"
    secondary: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None
    seconds: float | None = None
    memory: int | None = None
    output: int = 10_000_000
    environment: dict[str, str] = _NONE
    editable: tuple[str, ...] = ("**",)
    protected: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    data: dict[str, str] = _NONE
    read: tuple[str, ...] = ()
    network: bool = False
    gpu: bool = False
    mask: tuple[str, ...] = ()
    sandbox: Sandbox = ""
    container: str = ""
    keep_going: bool = False
    exclusive: str | None = None
    keep: bool = False


class Evaluated(NamedTuple):
    """One evaluation: a value, or the fault that kept it from being one."""

    subject: int
    seed: int | None
    value: float | None
    seconds: float
    metrics: dict[str, float] = _NONE
    fault: str = ""


class Result(NamedTuple):
    """What a job answers.

    Attributes:
        id: The job.
        status: `done` if every run has a value; `failed` for a fault of the work; and
            `infrastructure` for one of the machine (out of memory of the host, full disk).
        reason: One word: `timeout`, `memory`, `crash`, `metric`, `check`, `protected`, `patch`,
            `agent`, `unchanged`, `budget`, `key`, `provider`, `disk`, `host`, `ended`; empty when
            done.
        detail: One line for people.
        runs: Evaluations that took place.
        seconds: Wall clock of the work, charged.
        files: Manifest hash of subject 0 when its work was done; empty if unknown.
        sandbox: How the process tree was held: `bwrap`, `unshare`, `subreaper`.
        peak_memory: Largest resident bytes seen.
        tokens_in, tokens_cached, tokens_out, usd: What an agent used.
        agent: What else is known of its work; `None` without one.
    """

    id: str
    status: Status
    reason: str = ""
    detail: str = ""
    runs: tuple[Evaluated, ...] = ()
    seconds: float = 0.0
    files: str = ""
    sandbox: str = ""
    peak_memory: int = 0
    tokens_in: int = 0
    tokens_cached: int = 0
    tokens_out: int = 0
    usd: float = 0.0
    agent: AgentTold | None = None


def to_json(record: Job | Result) -> str:
    """Return the record as one JSON text."""
    fields = {"format": FORMAT, **record._asdict()}
    if record.agent is not None:
        fields["agent"] = record.agent._asdict()
    for name in fields.keys() & {"subjects", "runs"}:
        parts = fields[name]  # records, or the plain pairs of a job's runs
        fields[name] = [part._asdict() if hasattr(part, "_asdict") else part for part in parts]
    return json.dumps(fields, allow_nan=False)


def job_from_json(text: str) -> Job:
    """Return the job written by `to_json`; raises `ValueError` for another format."""
    fields = _checked(text)
    fields["subjects"] = tuple(
        Subject(**{**s, "patches": tuple(s["patches"]), "args": tuple(s["args"])})
        for s in fields["subjects"]
    )
    fields["runs"] = tuple((subject, seed) for subject, seed in fields["runs"])
    fields["agent"] = _agent_work(fields["agent"])
    arguments: Any = {k: tuple(v) if isinstance(v, list) else v for k, v in fields.items()}
    return Job(**arguments)


def result_from_json(text: str) -> Result:
    """Return the result written by `to_json`; raises `ValueError` for another format."""
    fields = _checked(text)
    fields["runs"] = tuple(Evaluated(**run) for run in fields["runs"])
    if fields.get("agent") is not None:
        fields["agent"] = AgentTold(**fields["agent"])
    return Result(**fields)


def _agent_work(fields: Any) -> AgentWork | None:
    if fields is None:
        return None
    plain: Any = {k: tuple(v) if isinstance(v, list) else v for k, v in fields.items()}
    return AgentWork(**plain)


def _checked(text: str) -> Any:
    fields: Any = json.loads(text)
    found = fields.pop("format", None) if isinstance(fields, dict) else None
    if found != FORMAT:
        raise ValueError(f"record of format {found!r}, this Outlay reads {FORMAT}")
    return fields
