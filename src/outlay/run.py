"""A run as Python sees it: what it came to, and everything behind that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from outlay.state import State
from outlay.summary import Summary, summarise

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from outlay.allocation.tree import Tree
    from outlay.budget import Ledger
    from outlay.events import Entry
    from outlay.summary import Estimate, Standing


class Run:
    """A run, read from its log; later events are not in it.

    Args:
        name: Its name.
        entries: Its whole log.
        folder: Its folder; `None` for a run in memory.
    """

    def __init__(self, name: str, entries: Sequence[Entry], folder: Path | None = None) -> None:
        self.name = name
        self.folder = folder
        self._entries = list(entries)
        self.state = State.of(self._entries)

    def __repr__(self) -> str:
        found = self.summary()
        return f"<Run {self.name!r}: {found.status}, {found.attempts} attempts>"

    def summary(self) -> Summary:
        """Return what the run came to, as `outlay search --json` prints it."""
        report = self.folder / "report.html" if self.folder else None
        shown = str(report) if report is not None and report.exists() else ""
        return summarise(self.state, self.name, shown)

    @property
    def status(self) -> str:
        """`budget`, `exhausted`, `stopped`, `failed`, or `interrupted` if it can go on."""
        return self.summary().status

    @property
    def champion(self) -> Standing | None:
        """The best confirmed node; the baseline if nothing was confirmed."""
        return self.summary().champion

    @property
    def baseline(self) -> Standing | None:
        """The program as it stands."""
        return self.summary().baseline

    @property
    def difference(self) -> Estimate | None:
        """Champion minus baseline on fresh seeds, paired; positive is better."""
        return self.summary().difference

    @property
    def tree(self) -> Tree:
        """The plan tree."""
        return self.state.tree

    @property
    def ledger(self) -> Ledger:
        """Charges and reservations."""
        return self.state.ledger

    def events(self) -> Iterator[Entry]:
        """Yield everything that happened, in order."""
        yield from self._entries

    def to_records(self) -> list[dict[str, Any]]:
        """Return one flat record for each node, the root first.

        Levers are columns `config_NAME`; a failed node has no score and no reward.
        """
        return [self._record(number) for number in range(len(self.tree.nodes))]

    def to_json(self) -> str:
        """Return the summary as JSON."""
        return msgspec.json.encode(self.summary()).decode()

    def to_pandas(self) -> Any:
        """Return `to_records` as a pandas data frame, indexed by node; needs `outlay[pandas]`."""
        import pandas as pd

        return pd.DataFrame.from_records(self.to_records()).set_index("node")

    def plot(self, path: str | Path | None = None) -> Any:
        """Return a matplotlib figure of scores and champion over attempts; needs `outlay[plot]`.

        Args:
            path: Also written there, in the format of its ending.
        """
        from outlay.report.figure import champion_figure

        figure = champion_figure(self.state, self._entries)
        if path is not None:
            figure.savefig(path)
        return figure

    def _record(self, number: int) -> dict[str, Any]:
        node = self.tree.nodes[number]
        configuration = self.state.configuration(node) if self.state.with_levers else {}
        return {
            "node": node.id,
            "parent": node.parent.id if node.parent is not None else None,
            "attempt": node.attempt or None,
            "status": node.status,
            "score": node.score,
            "reward": node.reward,
            "branch_value": node.value if node.count else None,
            "prior": node.prior,
            "pruned": node.pruned,
            "exhausted": node.exhausted,
            "depth": node.depth,
            "champion": number == self.state.contest.champion,
            **{f"config_{lever}": option for lever, option in configuration.items()},
        }
