"""Runs out of the ledger. How they get in is in recording.py."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, bindparam, text

from slurm_budget.core.tally import Counted
from slurm_budget.core.window import FOREVER
from slurm_budget.ledger.counted import CountedReader, columns
from slurm_budget.ledger.names import Names
from slurm_budget.state.jobs import GpuCounts, Run
from slurm_budget.text import tres

BATCH = 5000

NOT_REPLACED = (
    "NOT EXISTS (SELECT 1 FROM runs n WHERE n.cluster_id = r.cluster_id AND n.job_id = r.job_id"
    " AND n.start_at = r.start_at AND n.revision = r.revision + 1)"
)
"""The rows `r` that count: no later revision is there."""

FIRST = "SELECT MIN(id) FROM runs WHERE +cluster_id = :cluster AND counts_until > :edge"
"""The oldest row that may count after an epoch second."""
KEPT = "r.id NOT IN (SELECT replaces_id FROM runs WHERE id >= :first AND replaces_id IS NOT NULL)"
"""The rows `r` from `first` on that count: for many rows, one set of replaced ones is quicker than
a look for each."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """How many runs were new, how many corrected what was there, how many said the same."""

    new: int = 0
    corrected: int = 0
    same: int = 0

    def __add__(self, other: "Recorded") -> "Recorded":
        return Recorded(
            self.new + other.new, self.corrected + other.corrected, self.same + other.same
        )

    def __str__(self) -> str:
        return f"{self.new} new, {self.corrected} corrected, {self.same} as before"


def gpus_text(gpus: GpuCounts) -> str:
    """GPUs by type in Slurm's own spelling, one for equal counts; empty for none."""
    if not gpus:
        return ""
    typed = [f"gres/gpu:{kind}={count}" for kind, count in sorted(gpus.items()) if kind]
    return ",".join([*typed, f"gres/gpu={sum(gpus.values())}"])


def to_run(connection: Connection, names: Names, row: Row[Any]) -> Run:
    """A row of `runs` as the run that it records."""

    def word(number: int) -> str:
        return names.text(connection, number)

    return Run(
        cluster=word(row.cluster_id),
        job_id=row.job_id,
        start=row.start_at,
        end=row.end_at,
        submit=row.submit_at,
        user=word(row.user_id),
        account=word(row.account_id),
        qos=word(row.qos_id),
        partition=word(row.partition_id),
        state=word(row.state_id),
        gpus=tres.gpus(word(row.gpus_id)),
        num_nodes=row.num_nodes,
        suspended=row.suspended,
        class_="funded" if row.funded else "preemptible",
        min_runtime=row.min_runtime,
        eligible=row.eligible_at,
        time_limit=row.time_limit,
    )


def between(
    connection: Connection, names: Names, cluster: int, start: int, end: int
) -> Iterator[Run]:
    """Runs that overlap [start, end), in order of their start; one row at a time."""
    query = text(
        "SELECT r.* FROM runs r WHERE +r.cluster_id = :cluster AND r.start_at < :end"
        # the first of these two has an index, the second is meant
        " AND r.counts_until > :start AND (r.end_at IS NULL OR r.end_at > :start)"
        f" AND {NOT_REPLACED}"
        " ORDER BY r.start_at, r.job_id"
    ).execution_options(yield_per=BATCH)
    names.learn(connection)  # no other query may come between streamed rows
    for row in connection.execute(query, {"cluster": cluster, "start": start, "end": end}):
        yield to_run(connection, names, row)


def charged_between(
    connection: Connection,
    names: Names,
    cluster: int,
    accounts: Iterable[str],
    start: int,
    end: int,
) -> Iterator[Counted]:
    """What counts of the runs of some accounts of which something is charged in [start, end); one
    row at a time, in no order."""
    numbers = [names.find(connection, account) for account in accounts]
    query = (
        text(
            f"SELECT {columns('r')} FROM runs r"
            " WHERE +r.cluster_id = :cluster AND r.start_at < :end"
            # as the index has it: SQLite takes that of funded rows only for this very condition
            " AND r.charged_until > :start AND r.funded = 1 AND r.account_id IN :accounts"
            f" AND {NOT_REPLACED}"
        )
        .bindparams(bindparam("accounts", [n for n in numbers if n is not None], expanding=True))
        .execution_options(yield_per=BATCH)
    )
    names.learn(connection)  # no other query may come between streamed rows

    rows = CountedReader(connection, names)
    bounds = {"cluster": cluster, "start": start, "end": end}
    for row in connection.execute(query, bounds):
        yield rows.read(row)


def unfinished(connection: Connection, names: Names, cluster: int) -> list[Run]:
    """Runs without an end; Slurm's queue decides which of them are alive."""
    query = text(
        "SELECT r.* FROM runs r WHERE +r.cluster_id = :cluster AND r.end_at IS NULL"
        f" AND r.counts_until >= {FOREVER}"  # of these two, this one has an index
        f" AND {NOT_REPLACED} ORDER BY r.start_at, r.job_id"
    )
    rows = connection.execute(query, {"cluster": cluster})
    return [to_run(connection, names, row) for row in rows]
