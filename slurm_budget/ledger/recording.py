"""Runs into the ledger. Append-only: a correction is a row with the next revision.

The key of a run is (cluster, job id, start). The same run again changes nothing, in any order and
however often; where what is told differs from what is there, `settled` decides, and the ledger gets
a new row that names the old one.

A million rows pass here at a first load, so rows are plain tuples in the order of FACTS, compared
with what the database has as it comes from the driver.
"""

from collections.abc import Iterable
from itertools import islice
from typing import Any

from sqlalchemy import Connection, insert

from slurm_budget.core.window import marks
from slurm_budget.ledger.names import Names
from slurm_budget.ledger.runs import BATCH, Recorded, gpus_text
from slurm_budget.ledger.schema import recordings
from slurm_budget.state.jobs import GpuCounts, Run

KEY = ("cluster_id", "job_id", "start_at")
FACTS = (
    *("end_at", "submit_at", "account_id", "user_id", "qos_id", "partition_id", "state_id"),
    *("gpus_id", "num_nodes", "suspended", "funded", "min_runtime", "eligible_at", "time_limit"),
)
_DERIVED = ("counts_from", "counts_until", "charged_until")
_END, _SUSPENDED, _FUNDED, _MIN_RUNTIME, _ELIGIBLE, _LIMIT = (
    FACTS.index(name)
    for name in ("end_at", "suspended", "funded", "min_runtime", "eligible_at", "time_limit")
)
_LOOKUP = 500
_GPU_SETS = 10_000

Key = tuple[int, int, int]
Facts = tuple[Any, ...]


def settled(old: Facts, told: Facts) -> Facts:
    """What is right when a run is told again.

    A run that has ended stays ended: word that it runs is older, or comes from an accounting that
    missed its end. A minimum runtime that is known stays known while the class is the same, since
    Slurm shows an empty AdminComment for a requeued job until it ends; so do an eligible time and a
    time limit, which a dump may lack. Otherwise the later word counts.
    """
    if old[_END] is not None and told[_END] is None:
        return old
    kept = [place for place in (_ELIGIBLE, _LIMIT) if told[place] is None]
    if told[_MIN_RUNTIME] is None and told[_FUNDED] == old[_FUNDED]:
        kept.append(_MIN_RUNTIME)
    if not kept:
        return told
    right = list(told)
    for place in kept:
        right[place] = old[place]
    return tuple(right)


class _Numbers(dict[str, int]):
    """Names to numbers; one that is not there yet is given when it is first asked for."""

    def __init__(self, connection: Connection, names: Names) -> None:
        self.connection, self.names = connection, names

    def __missing__(self, word: str) -> int:
        return self.learn([word])[word]

    def learn(self, words: Iterable[str]) -> "_Numbers":
        missing = [word for word in words if word not in self]
        if missing:
            self.update(self.names.add(self.connection, missing))
        return self


class Recorder:
    """Writes runs in batches, within one transaction."""

    def __init__(self, connection: Connection, names: Names, source: str, now: int) -> None:
        self.connection = connection
        self.new = self.corrected = self.same = 0
        self._source, self._now = source, now
        self._recording: int | None = None
        self._numbers = _Numbers(connection, names)
        self._gpus: dict[int, tuple[GpuCounts, int]] = {}
        mark = "?" if connection.dialect.paramstyle == "qmark" else "%s"
        columns = (*KEY, "revision", "replaces_id", "recording_id", *FACTS, *_DERIVED)
        # the driver's own executemany: many times the rate of going through an expression
        self._insert = (
            f"INSERT INTO runs ({', '.join(columns)}) VALUES ({', '.join([mark] * len(columns))})"
        )
        self._mark = mark

    def record(self, runs: Iterable[Run]) -> Recorded:
        """All of them; what the iterable raises is for the caller's transaction to undo."""
        source = iter(runs)
        while batch := list(islice(source, BATCH)):
            self._batch(batch)
        return Recorded(self.new, self.corrected, self.same)

    def _batch(self, batch: list[Run]) -> None:
        numbers = self._numbers
        numbers.learn({run.user for run in batch} | {run.account for run in batch})
        heads = self._heads(batch)
        fresh: dict[Key, tuple[int, int | None, Facts]] = {}
        for run in batch:
            key = (numbers[run.cluster], run.job_id, run.start)
            facts = (
                run.end,
                run.submit,
                numbers[run.account],
                numbers[run.user],
                numbers[run.qos],
                numbers[run.partition],
                numbers[run.state],
                self._gpus_number(run.gpus),
                run.num_nodes,
                run.suspended,
                1 if run.class_ == "funded" else 0,
                run.min_runtime,
                run.eligible,
                run.time_limit,
            )
            head = fresh.get(key) or heads.get(key)
            if head is None:
                fresh[key] = (0, None, facts)
                self.new += 1
                continue
            revision, number, old = head
            right = settled(old, facts)
            if right == old:
                self.same += 1
                continue
            self.corrected += 1
            fresh[key] = (revision if key in fresh else revision + 1, number, right)
        if fresh:
            self._write(fresh)

    def _write(self, fresh: dict[Key, tuple[int, int | None, Facts]]) -> None:
        recording = self._recording
        if recording is None:
            values = {"source": self._source, "recorded_at": self._now}
            key = self.connection.execute(insert(recordings).values(values)).inserted_primary_key
            assert key is not None
            recording = self._recording = int(key[0])
        rows = [
            (
                *key,
                revision,
                replaces,
                recording,
                *facts,
                *marks(key[2], facts[_END], facts[_SUSPENDED], facts[_FUNDED], facts[_MIN_RUNTIME]),
            )
            for key, (revision, replaces, facts) in fresh.items()
        ]
        self.connection.exec_driver_sql(self._insert, rows)

    def _gpus_number(self, gpus: GpuCounts) -> int:
        """Readers hand out the same mapping for the same text, so its identity is a quick key. The
        mapping is kept beside it: an identity means nothing once its object is gone."""
        known = self._gpus.get(id(gpus))
        if known is None:
            if len(self._gpus) > _GPU_SETS:
                self._gpus.clear()
            known = self._gpus[id(gpus)] = (gpus, self._numbers[gpus_text(gpus)])
        return known[1]

    def _heads(self, batch: list[Run]) -> dict[Key, tuple[int, int, Facts]]:
        """What the ledger has of these jobs now: (revision, row id, facts) by key."""
        by_cluster: dict[str, set[int]] = {}
        for run in batch:
            by_cluster.setdefault(run.cluster, set()).add(run.job_id)
        out: dict[Key, tuple[int, int, Facts]] = {}
        for cluster, jobs in by_cluster.items():
            number, ids = self._numbers[cluster], sorted(jobs)
            for at in range(0, len(ids), _LOOKUP):
                some = ids[at : at + _LOOKUP]
                if self._any(number, some[0], some[-1]):
                    out |= self._rows(number, some)
        return out

    def _any(self, cluster: int, low: int, high: int) -> bool:
        """Whether any job of a stretch of ids is there; spares a first load its look-ups."""
        m = self._mark
        query = f"SELECT 1 FROM runs WHERE cluster_id = {m} AND job_id BETWEEN {m} AND {m} LIMIT 1"
        return self.connection.exec_driver_sql(query, (cluster, low, high)).first() is not None

    def _rows(self, cluster: int, jobs: list[int]) -> dict[Key, tuple[int, int, Facts]]:
        marks_ = ", ".join([self._mark] * len(jobs))
        query = (
            f"SELECT {', '.join((*KEY, 'revision', 'id', *FACTS))} FROM runs"
            f" WHERE cluster_id = {self._mark} AND job_id IN ({marks_})"
            " ORDER BY job_id, start_at, revision"
        )
        found = self.connection.exec_driver_sql(query, (cluster, *jobs))
        return {(row[0], row[1], row[2]): (row[3], row[4], tuple(row[5:])) for row in found.all()}
