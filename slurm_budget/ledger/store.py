"""The ledger: budgets with their history, runs, sums, and what sweeps keep. One door to all of it.

Every method is one transaction: what it writes is there when it returns, whole or not at all.
Failures of the database are LedgerUnreachable. `now` is always handed in.
"""

from pathlib import Path

from sqlalchemy import Engine

from slurm_budget.core.window import Window
from slurm_budget.errors import LedgerClosed
from slurm_budget.ledger import backup, check, connect, migrate
from slurm_budget.ledger.budget_door import BudgetDoor
from slurm_budget.ledger.budgets import Changeset
from slurm_budget.ledger.report_door import ReportDoor
from slurm_budget.ledger.run_door import RunDoor
from slurm_budget.ledger.runs import Recorded
from slurm_budget.ledger.sweep_door import SweepDoor
from slurm_budget.ledger.sweeping import Brake, Sweep

__all__ = ["Brake", "Changeset", "Ledger", "Recorded", "Sweep", "engine_of"]


def engine_of(url: str, password_file: Path | None = None) -> Engine:
    """The database of a ledger that is there, of whatever schema; raises LedgerClosed."""
    engine = connect.connect(url, password_file)
    missing = connect.missing_file(engine.url)
    if missing is not None:
        raise LedgerClosed(
            "there is no ledger", where=str(missing), mend="run `sbudget ledger init`"
        )
    return engine


class Ledger(BudgetDoor, ReportDoor, RunDoor, SweepDoor):
    """Open it with `Ledger.open`; close it, or use it as a context manager."""

    @classmethod
    def open(cls, url: str, *, password_file: Path | None = None, create: bool = False) -> "Ledger":
        """The ledger at a database URL; `create` makes it where the database is empty.

        Raises LedgerUnreachable when it is not there, is no ledger, or has another schema.
        """
        if create:
            engine = connect.connect(url, password_file)
            connect.prepare_folder(engine.url)
            migrate.initialise(engine)
        else:
            engine = engine_of(url, password_file)
        migrate.demand(engine)
        return cls(engine)

    def demand_writable(self) -> None:
        """Raise LedgerUnreachable where nothing can be written; nothing is."""
        with self._write():
            pass

    def backup(self, target: Path) -> dict[str, int]:
        """Copy everything to a new SQLite ledger; the rows by table. Refuses an existing file."""
        return backup.backup(self.engine, target)

    def faults(self, window: Window, now: int) -> list[str]:
        """What is wrong with what the ledger holds; empty for a sound one. Reads all of it."""
        with self._read() as connection:
            return list(check.faults(connection, self._names, window, now))

    def close(self) -> None:
        """Let go of the database's connections."""
        self.engine.dispose()

    def __enter__(self) -> "Ledger":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
