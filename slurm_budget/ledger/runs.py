"""Runs into the ledger and out of it. Append-only: a correction is a row with the next revision.

The key of a run is (cluster, job id, start). The same run again changes nothing, in any order and
however often; where what is told differs from what is there, `merged` decides, and the ledger gets
a new row that names the old one.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from sqlalchemy import Connection, Row, insert, select, text

from slurm_budget.core.window import FOREVER, active, protected
from slurm_budget.ledger.names import Names
from slurm_budget.ledger.schema import recordings
from slurm_budget.ledger.schema import runs as table
from slurm_budget.state.jobs import GpuCounts, Run
from slurm_budget.text import tres

BATCH = 5000
_LOOKUP = 500

FIELDS = tuple(column.name for column in table.c if column.name != "id")
"""The order in which `Recorder` writes a row."""

NOT_REPLACED = (
    "NOT EXISTS (SELECT 1 FROM runs n WHERE n.cluster_id = r.cluster_id AND n.job_id = r.job_id"
    " AND n.start_at = r.start_at AND n.revision = r.revision + 1)"
)
"""The rows `r` that count: no later revision is there."""


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


def merged(old: Run, told: Run) -> Run:
    """What is right when a run is told again.

    A run that has ended stays ended: word that it runs is older, or comes from an accounting that
    missed its end. A minimum runtime that is known stays known while the class is the same, since
    Slurm shows an empty AdminComment for a requeued job until it ends. Otherwise the later word
    counts.
    """
    if old.end is not None and told.end is None:
        return old
    keep = told.min_runtime is None and told.class_ == old.class_
    return replace(told, min_runtime=old.min_runtime) if keep else told


def gpus_text(gpus: GpuCounts) -> str:
    """GPUs by type in Slurm's own spelling, one for equal counts; empty for none."""
    if not gpus:
        return ""
    typed = [f"gres/gpu:{kind}={count}" for kind, count in sorted(gpus.items()) if kind]
    return ",".join([*typed, f"gres/gpu={sum(gpus.values())}"])


class Recorder:
    """Writes batches of runs in one transaction."""

    def __init__(self, connection: Connection, names: Names, source: str, now: int) -> None:
        self.connection = connection
        self.names = names
        self.new = self.corrected = self.same = 0
        self._source, self._now = source, now
        self._recording: int | None = None
        marks = ("?" if connection.dialect.paramstyle == "qmark" else "%s",) * len(FIELDS)
        # the driver's own executemany: ten times the rate of going through an expression
        self._insert = f"INSERT INTO runs ({', '.join(FIELDS)}) VALUES ({', '.join(marks)})"

    def record(self, runs: Iterable[Run]) -> Recorded:
        source = iter(runs)
        while batch := list(islice(source, BATCH)):
            self._batch(batch)
        return Recorded(self.new, self.corrected, self.same)

    def _batch(self, batch: list[Run]) -> None:
        heads = self._heads(batch)
        rows: dict[tuple[str, int, int], tuple[Run, int, int | None]] = {}
        for run in batch:
            key = (run.cluster, run.job_id, run.start)
            head = rows.get(key) or heads.get(key)
            if head is None:
                rows[key] = (run, 0, None)
                self.new += 1
                continue
            old, revision, number = head
            right = merged(old, run)
            if right == old:
                self.same += 1
            elif key in rows:
                rows[key] = (right, revision, number)
                self.corrected += 1
            else:
                rows[key] = (right, revision + 1, number)
                self.corrected += 1
        if rows:
            self._write(rows.values())

    def _write(self, rows: Iterable[tuple[Run, int, int | None]]) -> None:
        if self._recording is None:
            done = self.connection.execute(
                insert(recordings).values(source=self._source, recorded_at=self._now)
            )
            key = done.inserted_primary_key
            assert key is not None
            self._recording = key[0]
        self._number({word for run, _, _ in rows for word in _words(run)})
        self.connection.exec_driver_sql(self._insert, [self._row(*row) for row in rows])

    def _number(self, words: set[str]) -> None:
        self._ids = self.names.add(self.connection, words)

    def _row(self, run: Run, revision: int, replaces: int | None) -> tuple[Any, ...]:
        since, until = active(run)
        ids = self._ids
        return (
            ids[run.cluster],
            run.job_id,
            run.start,
            revision,
            replaces,
            self._recording,
            run.end,
            run.submit,
            ids[run.account],
            ids[run.user],
            ids[run.qos],
            ids[run.partition],
            ids[run.state],
            ids[gpus_text(run.gpus)],
            run.num_nodes,
            run.suspended,
            int(run.class_ == "funded"),
            run.min_runtime,
            since,
            until,
            protected(run)[1],
        )

    def _heads(self, batch: list[Run]) -> dict[tuple[str, int, int], tuple[Run, int, int]]:
        """What the ledger has of these jobs now: (run, revision, row id) by key."""
        by_cluster: dict[str, set[int]] = {}
        for run in batch:
            by_cluster.setdefault(run.cluster, set()).add(run.job_id)
        out: dict[tuple[str, int, int], tuple[Run, int, int]] = {}
        for cluster, jobs in by_cluster.items():
            number = self.names.find(self.connection, cluster)
            if number is None:
                continue
            ids = sorted(jobs)
            for at in range(0, len(ids), _LOOKUP):
                some = ids[at : at + _LOOKUP]
                if not self._any(number, some[0], some[-1]):
                    continue
                query = select(table).where(table.c.cluster_id == number, table.c.job_id.in_(some))
                for row in self.connection.execute(query.order_by(table.c.revision)):
                    run = to_run(self.connection, self.names, row)
                    out[cluster, run.job_id, run.start] = (run, row.revision, row.id)
        return out

    def _any(self, cluster: int, low: int, high: int) -> bool:
        """Whether any job of a stretch of ids is there; spares a first load its look-ups."""
        query = select(table.c.id).where(
            table.c.cluster_id == cluster, table.c.job_id.between(low, high)
        )
        return self.connection.execute(query.limit(1)).first() is not None


def _words(run: Run) -> tuple[str, ...]:
    return (
        run.cluster,
        run.account,
        run.user,
        run.qos,
        run.partition,
        run.state,
        gpus_text(run.gpus),
    )


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
    )


def between(
    connection: Connection, names: Names, cluster: int, start: int, end: int
) -> Iterator[Run]:
    """Runs that overlap [start, end), in order of their start; one row at a time."""
    query = text(
        "SELECT r.* FROM runs r WHERE r.cluster_id = :cluster AND r.start_at < :end"
        # the first of these two has an index, the second is meant
        " AND r.counts_until > :start AND (r.end_at IS NULL OR r.end_at > :start)"
        f" AND {NOT_REPLACED}"
        " ORDER BY r.start_at, r.job_id"
    ).execution_options(yield_per=BATCH)
    for row in connection.execute(query, {"cluster": cluster, "start": start, "end": end}):
        yield to_run(connection, names, row)


def unfinished(connection: Connection, names: Names, cluster: int) -> list[Run]:
    """Runs without an end; Slurm's queue decides which of them are alive."""
    query = text(
        "SELECT r.* FROM runs r WHERE r.cluster_id = :cluster AND r.end_at IS NULL"
        f" AND r.counts_until >= {FOREVER}"  # of these two, this one has an index
        f" AND {NOT_REPLACED} ORDER BY r.start_at, r.job_id"
    )
    rows = connection.execute(query, {"cluster": cluster})
    return [to_run(connection, names, row) for row in rows]
