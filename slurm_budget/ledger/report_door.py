"""What reports read from the ledger, and the levels that sweeps write for them."""

from collections.abc import Iterator
from contextlib import contextmanager

from slurm_budget.core.demand import Levels
from slurm_budget.ledger import known, levels, reporting
from slurm_budget.ledger.door import Door
from slurm_budget.ledger.reporting import PeriodReader
from slurm_budget.state.report import Level


class ReportDoor(Door):
    """The part of the ledger that reports use."""

    @contextmanager
    def period(self, cluster: str, start: int, end: int) -> Iterator[PeriodReader]:
        """Runs of [start, end), epoch seconds; `end` is not after now."""
        with self._read() as connection:
            number = self._names.find(connection, cluster)
            yield PeriodReader(
                connection, self._names, -1 if number is None else number, start, end
            )

    def record_levels(self, cluster: str, now: int, seen: Levels) -> None:
        """What a sweep saw waiting, and what can be used."""
        with self._write(queue=False) as connection:
            number = self._names.number(connection, cluster)
            levels.write(connection, self._names, number, now, seen)

    def levels(self, cluster: str, start: int, end: int) -> list[Level]:
        """What held at `start`, and what changed until `end`, in order."""
        with self._read() as connection:
            number = self._names.find(connection, cluster)
            if number is None:
                return []
            return list(levels.between(connection, self._names, number, start, end))

    def sweep_times(self, cluster: str, start: int, end: int) -> list[int]:
        """When sweeps looked: the last before the period, and those in it."""
        with self._read() as connection:
            number = self._names.find(connection, cluster)
            if number is None:
                return []
            return reporting.sweep_times(connection, number, start, end)

    def known_clusters(self) -> set[str]:
        """Every cluster of which the ledger has ever seen anything."""
        with self._read() as connection:
            return known.clusters(connection)

    def known_accounts(self, cluster: str) -> set[str]:
        """Every account with budgets or runs there, now or ever, and former names."""
        with self._read() as connection:
            number = self._names.find(connection, cluster)
            return set() if number is None else known.accounts(connection, number)

    def known_users(self, cluster: str) -> set[str]:
        """Every user in budgets or with runs there, now or ever."""
        with self._read() as connection:
            number = self._names.find(connection, cluster)
            return set() if number is None else known.users(connection, number)
