"""What reports read: sums of a period, and rows of runs, in as few queries as there are figures."""

from collections.abc import Iterator
from typing import Any

from sqlalchemy import Connection, func, select, text

from slurm_budget.ledger.names import Names
from slurm_budget.ledger.runs import FIRST, KEPT, to_run
from slurm_budget.ledger.schema import sweeps
from slurm_budget.state.jobs import GpuCounts, Run
from slurm_budget.state.report import Span, Start, Used
from slurm_budget.text import tres

AT_ONCE = 10_000
INTERRUPTED = ("PREEMPTED", "REQUEUED", "NODE_FAIL")
"""States of a run that was stopped from outside and, as a rule, starts again."""


def _cut(column: str) -> str:
    """Where a moment of a run lies in the period, or at its nearer end."""
    return (
        f"(CASE WHEN r.{column} < :edge THEN :edge WHEN r.{column} > :end THEN :end"
        f" ELSE r.{column} END)"
    )


_IN_PERIOD = f"""
  FROM runs r WHERE r.id >= :first AND +r.cluster_id = :cluster
    AND +r.counts_until > :edge AND +r.counts_from < :end AND {KEPT}
"""
_USED = f"""
SELECT r.account_id, r.user_id, r.gpus_id, r.funded, COUNT(*),
       SUM({_cut("counts_until")} - {_cut("counts_from")}),
       SUM({_cut("charged_until")} - {_cut("counts_from")}) {_IN_PERIOD}
GROUP BY r.account_id, r.user_id, r.gpus_id, r.funded
"""
_SPANS = f"""
SELECT r.account_id, r.gpus_id, r.funded, {_cut("counts_from")}, {_cut("counts_until")} {_IN_PERIOD}
"""
_STARTS = f"""
SELECT r.account_id, r.gpus_id, r.funded, r.start_at - COALESCE(r.eligible_at, r.submit_at),
       r.time_limit
  FROM runs r WHERE r.id >= :first AND +r.cluster_id = :cluster
    AND +r.start_at >= :edge AND +r.start_at < :end AND {KEPT}
"""
_ENDED = f"""
SELECT r.* FROM runs r JOIN names s ON s.id = r.state_id
 WHERE r.id >= :first AND +r.cluster_id = :cluster
   AND s.text IN ({", ".join(f"'{state}'" for state in INTERRUPTED)})
   AND r.end_at >= :edge AND r.end_at < :end AND {KEPT}
 ORDER BY r.end_at, r.job_id
"""


class PeriodReader:
    """Reads runs of [start, end) of one cluster, in one transaction."""

    def __init__(
        self, connection: Connection, names: Names, cluster: int, start: int, end: int
    ) -> None:
        self.connection, self.names = connection, names
        # `edge` may be where a run ends that has no length, so that no start is missed
        first = connection.scalar(text(FIRST), {"cluster": cluster, "edge": start - 1})
        self.bounds = {"cluster": cluster, "edge": start, "end": end, "first": first or 1 << 62}
        self._gpu_sets: dict[int, GpuCounts] = {}
        names.learn(connection)  # no other query may come between streamed rows

    def used(self) -> list[Used]:
        """Sums by account, user, GPUs and class."""
        return [
            Used(
                self._word(row[0]),
                self._word(row[1]),
                self._gpus(row[2]),
                bool(row[3]),
                *map(int, row[4:]),
            )
            for row in self._rows(_USED)
            if self._gpus(row[2])
        ]

    def spans(self) -> Iterator[Span]:
        """When runs with GPUs held them, cut at the ends of the period."""
        for account, gpus, funded, since, until in self._rows(_SPANS):
            counts = self._gpus(gpus)
            if counts and until > since:
                yield Span(self._word(account), counts, bool(funded), since, until)

    def starts(self) -> Iterator[Start]:
        """Runs with GPUs that started in the period."""
        for account, gpus, funded, waited, limit in self._rows(_STARTS):
            counts = self._gpus(gpus)
            if counts:
                yield Start(self._word(account), counts, bool(funded), max(waited, 0), limit)

    def interrupted(self) -> list[Run]:
        """Runs that were stopped from outside in the period."""
        found = [to_run(self.connection, self.names, row) for row in self._rows(_ENDED)]
        return [run for run in found if run.gpus]

    def _rows(self, query: str) -> Any:
        return self.connection.execute(
            text(query).execution_options(yield_per=AT_ONCE), self.bounds
        )

    def _word(self, number: int) -> str:
        return self.names.text(self.connection, number)

    def _gpus(self, number: int) -> GpuCounts:
        found = self._gpu_sets.get(number)
        if found is None:
            found = self._gpu_sets[number] = tres.gpus(self._word(number))
        return found


def sweep_times(connection: Connection, cluster: int, start: int, end: int) -> list[int]:
    """When sweeps looked, in order: the last one before the period, and those in it."""
    mine = sweeps.c.cluster_id == cluster
    before = connection.scalar(select(func.max(sweeps.c.at)).where(mine, sweeps.c.at <= start))
    query = (
        select(sweeps.c.at)
        .where(mine, sweeps.c.at > start, sweeps.c.at < end)
        .order_by(sweeps.c.at)
    )
    found = list(connection.scalars(query))
    return found if before is None else [before, *found]
