"""What to research: a question, a program, its metric, a budget and the levers to try.

A task is plain data. It is read from a TOML file by `outlay.taskfile`, or built here in Python.
"""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

import msgspec

from outlay import _taskcheck
from outlay.errors import InputError

Direction = Literal["maximize", "minimize"]
Noise = Literal["seed", "machine"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Limits of a run; `None` means unlimited. At least one must be set.

    Attributes:
        attempts: Complete executor invocations with their evaluation, at least 1.
        tokens: Input plus output tokens, cached input at its own rate.
        usd: Money in US dollars.
        seconds: Wall clock while a driver is alive, summed over sittings.
    """

    attempts: int | None = None
    tokens: int | None = None
    usd: float | None = None
    seconds: float | None = None

    def with_limits(self, given: Budget | None) -> Budget:
        """Return the budget with the limits that are given in place of its own, one by one."""
        named = asdict(given) if given is not None else {}
        return replace(self, **{name: limit for name, limit in named.items() if limit is not None})


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    """The folder under research and what may happen to its files; globs are relative to it.

    Attributes:
        path: Folder of the program, absolute. A git repository or a plain folder.
        editable: Files that an agent may change.
        protected: Read-only files whose hash is checked before a score counts.
        hidden: Files that are absent while an agent works and added for the evaluation.
        data: Files or folders that are linked read-only instead of being copied.
    """

    path: str
    editable: tuple[str, ...] = ("**",)
    protected: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    data: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """The number that is researched, and how it is read from one evaluation.

    Attributes:
        name: Key in the JSON object, or the name on a `name: value` line.
        direction: Which way is better.
        low: Lowest plausible value; anything below is a fault, not a score.
        high: Highest plausible value.
        source: `"stdout"` (a JSON object on the last line, or a `name: value` line), or the path
            of a JSON file relative to the workspace. The file named in the environment variable
            `OUTLAY_RESULT` always wins when the evaluator wrote it.
        line: `"only"` refuses several differing metric lines; `"last"` takes the last of them.
        secondary: Further metrics that are recorded and steer nothing.
        reward: `"identity"` for metrics already in [0, 1], else `"logistic"`.
        reward_scale: Scale `s` of the logistic reward in metric units; `None` lets the run fix it.
    """

    name: str
    direction: Direction
    low: float | None = None
    high: float | None = None
    source: str = "stdout"
    line: Literal["only", "last"] = "only"
    secondary: tuple[str, ...] = ()
    reward: Literal["logistic", "identity"] = "logistic"
    reward_scale: float | None = None

    @property
    def sign(self) -> float:
        """+1 where larger is better, -1 where smaller is better."""
        return 1.0 if self.direction == "maximize" else -1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluator:
    """What scores a workspace; without command and function it is the Python caller.

    Attributes:
        command: Program and arguments, run without a shell; `{seed}` in an argument becomes the
            seed. Empty if `function` is set.
        function: `"module:name"` of a Python callable that is imported in the attempt's own
            process and called with `(config, seed)`.
        check: Command that must exit 0 before a score counts; empty for none.
        noise: `"seed"`: the seed decides the noise, pairs share seeds and results are cached;
            `"machine"`: the machine does, so evaluations run one at a time and alternate.
        container: Where a Harbor task's `environment` folder is seen, such as `/app`; then the
            command is its verifier, and the metric is in its reward file. Empty otherwise.
    """

    command: tuple[str, ...] = ()
    function: str | None = None
    check: tuple[str, ...] = ()
    noise: Noise = "seed"
    container: str = ""

    @property
    def seeded(self) -> bool:
        """Whether the evaluation takes a seed (else repeats stand in for seeds)."""
        return not self.command or any("{seed}" in part for part in self.command)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of one attempt; `None` means unlimited.

    Attributes:
        seconds: Wall clock.
        memory: Resident bytes of its whole process tree.
        output: Bytes of output that are kept.
        tokens: Tokens of its agent, as the budget counts them.
        usd: Money of its agent in US dollars.
    """

    seconds: float | None = None
    memory: int | None = None
    output: int = 10_000_000
    tokens: int | None = None
    usd: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Seeds:
    """Three disjoint seed streams.

    Attributes:
        selection: Seeds of every attempt; its score is their mean.
        confirmation: First seed of an unbounded stream; challenger `k` (from 0) uses
            `confirmation + 12 k` to `confirmation + 12 k + 11`.
        final: Seeds of the final paired estimate, used for nothing else; none in an ablation.
    """

    selection: tuple[int, ...] = (1,)
    confirmation: int = 1_000_000
    final: tuple[int, ...] = tuple(range(1001, 1011))


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One setting of a lever. All parts are optional; an option without any is the plain program.

    Attributes:
        name: Name within the lever.
        args: Arguments appended to the evaluator's command.
        env: Environment variables set for the evaluator.
        files: Target path in the workspace to source path in the workspace, copied over.
        patch: Path in the workspace of a unified diff to apply.
    """

    name: str
    args: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    patch: str | None = None

    @property
    def is_plain(self) -> bool:
        """Whether the option leaves the program as it stands."""
        return not (self.args or self.env or self.files or self.patch)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lever:
    """A named component of the program with at least two options; the first is its default."""

    name: str
    options: tuple[Option, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sandbox:
    """What an attempt may reach beyond its own workspace."""

    read: tuple[str, ...] = ()
    network: bool = False
    gpu: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Coordination:
    """Which coordination mechanisms are on, and their constants.

    Attributes:
        confirmation: `"sequential"` (fresh seeds, stated error rate), `"band"` (the testbed's
            fixed three seeds and band) or `"none"` (a better selection score is enough).
        error_rate: Probability of any false promotion in a run, in (0, 1).
        dead_ends: Retire a direction after three outcomes in a row that did not improve.
        ranking: Order axes by effect size instead of by index.
        teams: Number of teams that axes are dealt to; 1 switches teams off.
        stagnation: Outcomes without improvement after which teams are dealt again; 0 is never.
    """

    confirmation: Literal["sequential", "band", "none"] = "sequential"
    error_rate: float = 0.05
    dead_ends: bool = True
    ranking: bool = True
    teams: int = 1
    stagnation: int = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """How the plan tree is searched.

    Attributes:
        policy: Name of an allocation policy: `adaptive`, `fixed:A`, `random`, `greedy`, `uct`,
            `linear`, `single`, `best-of-n`, or one from an entry point.
        children: Visible children that a node is widened to (`m` of the paper).
        prune_below: A child this much below its parent's branch value is pruned (`delta`).
    """

    policy: str = "adaptive"
    children: int = 3
    prune_below: float = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """A client of a model, who carries plans out or drafts them.

    Attributes:
        client: `codex`, `claude`, `opencode`, `model`, `command:…` or `acp:…`, one from an entry
            point, or `auto` for the first that can work; a known client may name its program as
            well, as in `codex:/opt/codex`. Empty leaves it to the command line, or to the
            executor's.
        model: Name of the model; empty leaves it to the client.
        url: Address of the provider, or of a local server.
        key: Name of the environment variable that holds the provider's key.
        partial: Whether what an agent left is evaluated, too, when it reached its limit or failed.
        patience: Seconds that a provider is waited for that is overloaded or out of reach.
        terse: Whether questions and answers are short, for a small local model that drafts plans.
    """

    client: str = ""
    model: str = ""
    url: str = ""
    key: str = ""
    partial: bool = False
    patience: float = 900.0
    terse: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """What a model costs, in US dollars for a million tokens.

    Attributes:
        input: Input tokens.
        output: Output tokens, reasoning included.
        cached: Input tokens that were read from a cache; `None` costs as much as `input`.
        cache_write: Input tokens that were written to a cache; `None` likewise.
    """

    input: float
    output: float
    cached: float | None = None
    cache_write: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One research task, complete.

    `hypotheses` is a research state as `outlay.designs.statefile.state_to_json` gives it, empty
    if there is nothing to tell apart.
    """

    name: str
    question: str
    workspace: Workspace
    evaluator: Evaluator = Evaluator()
    metric: Metric
    budget: Budget
    levers: tuple[Lever, ...] = ()
    limits: Limits = Limits()
    seeds: Seeds = Seeds()
    sandbox: Sandbox = Sandbox()
    coordination: Coordination = Coordination()
    search: Search = Search()
    agent: Agent = Agent()
    reflector: Agent = Agent()
    prices: dict[str, Price] = field(default_factory=dict)
    hypotheses: dict[str, Any] = field(default_factory=dict)


def check(task: Task, where: str = "task", *, called: bool = False) -> None:
    """Raise `InputError` if anything in the task is wrong; files are looked at elsewhere.

    Args:
        task: The task, read from a file or built in Python.
        where: What the message calls the task, such as the path of its file.
        called: Whether the caller evaluates, so that the task may name no evaluator.
    """
    _taskcheck.check_choices(task, where)
    try:
        msgspec.convert(msgspec.to_builtins(task), Task)
    except (msgspec.ValidationError, TypeError) as error:
        message, _, path = str(error).partition(" - at `$")
        key = path.strip(".`") or "task"
        raise InputError(f"{where}: {key}: found a wrong type: {message}") from None
    _taskcheck.check_all(task, where, called=called)


def to_json(task: Task) -> str:
    """Return the task as canonical JSON: equal tasks give equal text, options keep their order."""
    return msgspec.json.encode(task, order="sorted").decode()


def from_json(text: str) -> Task:
    """Return the task that `to_json` wrote; raises `InputError` for any other text."""
    try:
        return msgspec.json.decode(text, type=Task)
    except msgspec.MsgspecError as error:
        raise InputError(f"stored task: found {error}, allowed: a task of this version") from None


def task_hash(task: Task) -> str:
    """Return what identifies the task: 64 hexadecimal digits.

    The budget is left out, so that it may be raised, and so are the folder and the addresses of
    models, so that they may move.
    """
    core = replace(
        task,
        budget=Budget(),
        workspace=replace(task.workspace, path=""),
        agent=replace(task.agent, url="", key=""),
        reflector=replace(task.reflector, url="", key=""),
    )
    return hashlib.sha256(to_json(core).encode()).hexdigest()
