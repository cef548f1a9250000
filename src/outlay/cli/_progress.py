"""Live progress of a run on stderr: a picture on a terminal, else one line a step."""

from __future__ import annotations

import sys
import time
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from outlay import events
from outlay.cli._events import budget_line, champion_line, sentence, task_of
from outlay.jobs import job_id
from outlay.report.outline import outline
from outlay.report.tree_cards import SIGNS, value
from outlay.report.words import change, cut, duration, printable, standing_word
from outlay.report.working import working

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import TextIO

    from outlay.events import Entry
    from outlay.state import State
    from outlay.task import Task

_RECENT = 6
"""Events, and settled attempts, that are kept in view."""
_STYLES = {"champion": "green", "failed": "red", "lost": "red", "running": "yellow"}
_STYLES |= {"pruned": "dim", "open": "dim"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Screen:
    """What is drawn; made anew at each step, so that the drawing thread sees one moment."""

    champion: str = "the baseline is not measured yet"
    budget: str = ""
    running: tuple[tuple[str, str, float], ...] = ()
    tree: tuple[tuple[str, str], ...] = ()
    recent: tuple[str, ...] = field(default=())


class Progress:
    """Shows a run while it goes on; use it as a context manager around the driver.

    Args:
        task: What is researched.
        run: Name of the run.
        folder: The run's folder, where its jobs say what they are doing; `None` for none.
        stream: Where to write; stderr by default. It is drawn on if it is a terminal.
        monotonic: Clock for the seconds that work has been running.
    """

    def __init__(
        self,
        task: Task,
        run: str,
        stream: TextIO | None = None,
        *,
        folder: Path | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._title = f"{run}: {cut(task.question, 200)}"
        self._stream = sys.stderr if stream is None else stream
        self._folder = folder
        self._monotonic = monotonic
        self._console = Console(file=self._stream, highlight=False)
        self._screen = _Screen()
        self._running: dict[str, tuple[str, float]] = {}
        self._recent: deque[str] = deque(maxlen=_RECENT)
        self._nodes: deque[int] = deque(maxlen=_RECENT)
        self._live: Live | None = None
        self._unsaid: deque[str] = deque()

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._live = Live(
                console=self._console,
                get_renderable=self.draw,
                refresh_per_second=4,
                redirect_stdout=False,
                vertical_overflow="crop",
            )
            self._live.start()
        else:
            self._unsaid.append(self._title)
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def step(self, entries: list[Entry], state: State) -> None:
        """Take in a recorded step; give this to the driver as `on_step`."""
        found = [text for entry in entries if (text := sentence(entry.event, state))]
        if found:
            line = f"{entries[0].elapsed:8.1f} s  {printable('; '.join(found))}"
            self._recent.append(line)
            self._unsaid.append(line)
        # A program that fails at once leaves one line, the error; after a tick nobody waits.
        if self._live is None and (state.reward or isinstance(entries[0].event, events.Ticked)):
            while self._unsaid:
                self._say(self._unsaid.popleft())
        for entry in entries:
            if isinstance(entry.event, events.AttemptSettled):
                self._nodes.append(state.nodes[entry.event.attempt])
        self._follow(state)
        if self._live is not None:
            self._screen = _Screen(
                champion=printable(champion_line(state)),
                budget=budget_line(state, state.elapsed),
                running=tuple((job, *known) for job, known in self._running.items()),
                tree=tuple(self._tree(state)),
                recent=tuple(self._recent),
            )

    def draw(self) -> Group:
        """Return the picture of this moment."""
        screen = self._screen
        running = [line for found in screen.running for line in self._work(*found)]
        room = max(3, self._room() + len(screen.running) - len(running))
        lines = [
            Text(printable(self._title), style="bold"),
            Text.assemble(("champion  ", "green"), screen.champion),
            Text.assemble(("left      ", "cyan"), screen.budget),
            *running,
            Text(),
            *(Text(line, style=style) for line, style in screen.tree[:room]),
            Text(),
            *(Text(line, style="dim") for line in screen.recent),
        ]
        for line in lines:
            line.no_wrap, line.overflow = True, "ellipsis"
        return Group(*lines)

    def _work(self, job: str, what: str, began: float) -> list[Text]:
        """Return what a job is for, and under it what its agent is doing, if it has one."""
        lasts = duration(self._monotonic() - began)
        lines = [Text.assemble(("now       ", "yellow"), f"{what}, {lasts}")]
        if self._folder is not None and (does := working(self._folder, job)):
            lines.append(Text(f"          {printable(does)}", style="dim"))
        return lines

    def _room(self) -> int:
        """Return the lines that are left for the tree."""
        return max(3, self._console.height - 7 - len(self._running) - len(self._recent))

    def _follow(self, state: State) -> None:
        """Note what is in flight now, and since when as far as this process knows."""
        now = self._monotonic()
        flying = [work.launch for work in state.works.values() if work.in_flight]
        self._running = {
            job_id(launch): self._running.get(
                job_id(launch), (printable(task_of(launch, state)), now)
            )
            for launch in flying
        }

    def _tree(self, state: State) -> list[tuple[str, str]]:
        """Return the rows around the champion and what is going on, as far as they fit."""
        running = [
            work.launch.node
            for work in state.works.values()
            if isinstance(work.launch, events.AttemptLaunched)
        ]
        room, tree = self._room(), state.tree
        wanted = dict.fromkeys([max(state.contest.champion, 0), *running, *reversed(self._nodes)])
        keep = set(list(wanted)[:room])
        for number in wanted:
            for node in tree.nodes[number].path():
                if len(keep) >= room:
                    break
                keep.add(node.id)
        rows = outline(tree, keep)
        return [self._row(state, row.node.id, row.indent, row.hidden) for row in rows]

    def _row(self, state: State, number: int, indent: int, hidden: int) -> tuple[str, str]:
        node = state.tree.nodes[number]
        word = standing_word(state, node)
        more = f"  (+{hidden} more)" if hidden else ""
        text = f"{SIGNS[word]} #{number} {value(node)} {cut(change(state, node), 60)}{more}"
        return printable("  " * min(indent, 20) + text), _STYLES.get(word, "")

    def _say(self, text: str) -> None:
        self._stream.write(printable(text) + "\n")
        self._stream.flush()
