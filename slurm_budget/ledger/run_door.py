"""Runs in the ledger: recording them, reading them, and their sums in a window."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress

from sqlalchemy import Engine, delete, insert, select, update

from slurm_budget.core.standing import Sums
from slurm_budget.core.tally import Counted
from slurm_budget.core.window import USAGE_FACTOR, Window
from slurm_budget.errors import LedgerUnreachable
from slurm_budget.ledger import runs
from slurm_budget.ledger import sums as sums_of
from slurm_budget.ledger.door import Door
from slurm_budget.ledger.recording import Recorder
from slurm_budget.ledger.runs import Recorded
from slurm_budget.ledger.schema import cursors, sums_states
from slurm_budget.state.jobs import Run


class RunDoor(Door):
    """The part of the ledger that accounting fills and balances are read from."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self._states: dict[tuple[str, str], sums_of.Running] = {}

    def record_runs(self, found: Iterable[Run], *, source: str, now: int) -> Recorded:
        """Runs into the ledger, in one transaction and in bounded memory.

        An error that the iterable raises leaves nothing written: a reader of sacct raises at its
        end when sacct failed.
        """
        with self._write() as connection:
            return Recorder(connection, self._names, source, now).record(found)

    def runs_between(self, cluster: str, start: int, end: int) -> Iterator[Run]:
        """Runs that overlap [start, end), in order of their start, one at a time."""
        with self._read() as connection:
            number = self._names.find(connection, cluster)
            if number is not None:
                yield from runs.between(connection, self._names, number, start, end)

    def charged_between(
        self, cluster: str, accounts: Iterable[str], start: int, end: int
    ) -> Iterator[Counted]:
        """What counts of the runs of some accounts of which something is charged in [start, end),
        one at a time, in no order."""
        with self._read() as connection:
            number = self._names.find(connection, cluster)
            if number is not None:
                yield from runs.charged_between(
                    connection, self._names, number, accounts, start, end
                )

    def unfinished_runs(self, cluster: str) -> list[Run]:
        """Runs without an end. Which of them live, Slurm's queue knows."""
        with self._read() as connection:
            number = self._names.find(connection, cluster)
            return [] if number is None else runs.unfinished(connection, self._names, number)

    def cursor(self, cluster: str) -> int | None:
        """Up to when the accounting has been read; None: never."""
        with self._read() as connection:
            number = self._names.find(connection, cluster)
            if number is None:
                return None
            return connection.scalar(
                select(cursors.c.position).where(cursors.c.cluster_id == number)
            )

    def set_cursor(self, cluster: str, position: int) -> None:
        with self._write() as connection:
            number = self._names.number(connection, cluster)
            mine = cursors.c.cluster_id == number
            if connection.execute(select(cursors).where(mine)).first() is None:
                connection.execute(insert(cursors).values(cluster_id=number, position=position))
            else:
                connection.execute(update(cursors).where(mine).values(position=position))

    def sums(
        self,
        cluster: str,
        window: Window,
        now: int,
        weights: Mapping[str, int],
        usage_factor: int = USAGE_FACTOR,
        *,
        whole_run: bool = False,
    ) -> Sums:
        """Charge and use of every account and user in the window that ends at `now`, exactly.

        `weights` and `usage_factor` in thousandths; `whole_run` charges all of a funded run.
        """
        key = (cluster, sums_of.digest(window, weights))
        with self._read() as connection:
            number = self._names.find(connection, cluster)
            if number is None:
                return Sums()
            reader = sums_of.SumsReader(connection, self._names, number)
            # taken out while it is changed: half a change must not stay behind an error
            state = reader.bring_up(self._states.pop(key, None), window, weights, now)
        self._states[key] = state
        if state.unsaved >= sums_of.SAVE_AFTER:
            # a reader who may not write has the figures all the same
            with suppress(LedgerUnreachable), self._write() as connection:
                sums_of.save(connection, number, state)
            state.unsaved = 0
        return state.tally.sums(usage_factor, whole_run=whole_run)

    def forget_sums(self) -> None:
        """Empty the cache of sums; the next question counts afresh."""
        self._states.clear()
        with self._write() as connection:
            connection.execute(delete(sums_states))
