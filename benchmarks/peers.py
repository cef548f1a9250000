"""What the bookkeeping of one attempt is compared with: Optuna, and SQLite with nothing around."""

from __future__ import annotations

import json
import sqlite3
from typing import TYPE_CHECKING

import optuna
from noop import KEEP_THE_LOG
from optuna.samplers import RandomSampler
from optuna.storages import BaseStorage, JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

optuna.logging.set_verbosity(optuna.logging.ERROR)

FLOATS = 5
STUDY = "noop"


class Ledger:
    """Two rows and two commits an attempt, WAL, `synchronous=FULL`, and nothing else."""

    def __init__(self, folder: Path, history: int) -> None:
        folder.mkdir(parents=True)
        self.path = folder / "ledger.db"
        self._connection = sqlite3.connect(self.path, isolation_level=None)
        self._connection.execute("PRAGMA journal_mode=WAL")
        self._connection.execute("PRAGMA synchronous=FULL")
        self._connection.execute(
            "CREATE TABLE ledger (number INTEGER PRIMARY KEY, body TEXT NOT NULL) STRICT"
        )
        self._rows = 0
        self._connection.execute("PRAGMA synchronous=OFF")
        self.go(history)
        self._connection.execute("PRAGMA synchronous=FULL")
        self._connection.execute(KEEP_THE_LOG)

    def go(self, attempts: int) -> None:
        for _ in range(2 * attempts):
            self._connection.execute("BEGIN IMMEDIATE")
            self._insert()
            self._connection.execute("COMMIT")

    def _insert(self) -> None:
        self._rows += 1
        body = json.dumps({"attempt": self._rows, "values": [self._rows / 7] * FLOATS})
        self._connection.execute("INSERT INTO ledger VALUES (?, ?)", (self._rows, body))


class Study:
    """Optuna's ask, five floats and tell, with random sampling."""

    def __init__(self, storage: BaseStorage, history: int) -> None:
        self._study = optuna.create_study(
            storage=storage, study_name=STUDY, sampler=RandomSampler(seed=1)
        )
        self._study.add_trials([_trial(number) for number in range(history)])

    def go(self, attempts: int) -> None:
        for _ in range(attempts):
            trial = self._study.ask()
            for k in range(FLOATS):
                trial.suggest_float(f"x{k}", 0.0, 1.0)
            self._study.tell(trial, 0.5)


def rdb(path: Path, *, durable: bool = True) -> RDBStorage:
    """Return Optuna's SQLite storage; not durable is only for building a history quickly."""
    from sqlalchemy import event

    path.parent.mkdir(parents=True, exist_ok=True)
    storage = RDBStorage(f"sqlite:///{path}")
    if not durable:

        @event.listens_for(storage.engine, "connect")
        def _switch_sync_off(connection: Any, record: Any) -> None:
            connection.execute("PRAGMA synchronous=OFF")

        storage.engine.dispose()
    return storage


def journal(path: Path) -> JournalStorage:
    path.parent.mkdir(parents=True, exist_ok=True)
    return JournalStorage(JournalFileBackend(str(path)))


def build_rdb(path: Path, trials: int) -> None:
    """Write an Optuna SQLite file of finished trials through Optuna's own `add_trials`."""
    storage = rdb(path, durable=False)
    Study(storage, trials)
    storage.engine.dispose()


def load_rdb(path: Path) -> int:
    """Load a study and all of its trials, as `optuna` does on resume; return their number."""
    study = optuna.load_study(study_name=STUDY, storage=f"sqlite:///{path}")
    return len(study.trials)


def _trial(number: int) -> optuna.trial.FrozenTrial:
    names = [f"x{k}" for k in range(FLOATS)]
    return optuna.trial.create_trial(
        params=dict.fromkeys(names, number % 97 / 97),
        distributions={name: optuna.distributions.FloatDistribution(0.0, 1.0) for name in names},
        value=0.5,
    )
