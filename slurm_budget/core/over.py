"""Runs that the ledger has without an end, and that are over by what the queue says.

The accounting may tell an end late (slurmdbd was away), or never (a runaway). Until then such a run
would count on in every figure, so the queue is asked first: slurmctld keeps an ended job for
MinJobAge, and gives a requeued one a new time of submission. What the accounting says later stands.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from slurm_budget.state.jobs import Ended, Job, Queue, Run

LOST_AFTER = 600
"""Seconds from its start on in which a run that no queue knows is left alone: the two commands that
were asked do not answer at the same moment."""


class Over(NamedTuple):
    """Runs that are over, with their ends."""

    told: list[Run]
    """The queue tells when."""
    lost: list[Run]
    """The accounting believes them to run for ever; they end where they were last seen."""


def over(waiting: Sequence[Run], queue: Queue, now: int, seen_until: int | None) -> Over:
    """Those of `waiting`, runs without an end, that are over by what `queue` says at `now`.

    A lost run gets the end `seen_until`, when it was last seen (None: never, and then it counts
    nothing, as in `sacctmgr show runawayjobs`).
    """
    known: dict[int, Job | Ended] = {job.id: job for job in queue.ended}
    known.update((job.id, job) for job in queue.jobs)
    newest: dict[int, int] = {}
    for run in waiting:
        newest[run.job_id] = max(run.start, newest.get(run.job_id, run.start))
    out = Over([], [])
    for run in waiting:
        job = known.get(run.job_id)
        told = _told(run, job)
        if told is not None:
            out.told.append(told)
            continue
        until = _lost_until(run, job, newest[run.job_id], now)
        if until is not None:
            end = max(run.start, min(seen_until or 0, until))
            out.lost.append(replace(run, end=end, state="LOST"))
    return out


def _told(run: Run, job: Job | Ended | None) -> Run | None:
    """The run with the end that its job tells; None where it tells none."""
    if job is not None and run.start < job.submit:
        return replace(run, end=job.submit, state="REQUEUED")
    if isinstance(job, Ended) and job.start == run.start and job.end is not None:
        return replace(run, end=max(job.end, run.start), state=job.state)
    return None


def _lost_until(run: Run, job: Job | Ended | None, newest: int, now: int) -> int | None:
    """When a run had ended at the latest whose job slurmctld does not know, or that a later run of
    its job follows; None: it may live. Of a job that slurmctld started twice for one submission,
    having lost its state in between, the first run ends where the second begins."""
    if job is not None and job.start is not None and run.start < job.start:
        return min(now, job.start)
    old = run.start < now - LOST_AFTER
    return now if old and (job is None or run.start < newest) else None
