"""Runs that the ledger has without an end, and that are over by what the queue says.

The accounting may tell an end late (slurmdbd was away), or never (a runaway). Until then such a run
would count on in every figure, so the queue is asked first: slurmctld keeps an ended job for
MinJobAge, and gives a requeued one a new time of submission. What the accounting says later stands.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from slurm_budget.state.jobs import Ended, Job, Queue, Run

LOST_AFTER = 600
"""Seconds from its start on in which a run that no queue knows is left alone: the two commands that
were asked do not answer at the same moment."""


def by_the_queue(waiting: Sequence[Run], queue: Queue) -> list[Run]:
    """Those of `waiting`, runs without an end, of which `queue` tells the end; ended."""
    known = _by_id(queue)
    out = []
    for run in waiting:
        job = known.get(run.job_id)
        if job is not None and run.start < job.submit:
            out.append(replace(run, end=job.submit, state="REQUEUED"))
        elif isinstance(job, Ended) and job.start == run.start and job.end is not None:
            out.append(replace(run, end=max(job.end, run.start), state=job.state))
    return out


def _by_id(queue: Queue) -> Mapping[int, Job | Ended]:
    known: dict[int, Job | Ended] = {job.id: job for job in queue.ended}
    known.update((job.id, job) for job in queue.jobs)
    return known


def lost(waiting: Sequence[Run], queue: Queue, now: int, seen_until: int | None) -> list[Run]:
    """Those of `waiting` that the accounting believes to run for ever; ended.

    A run whose job slurmctld did not know at `now`, or that a later run of its job follows, gets
    the end `seen_until`, when it was last seen (None: never, and then it counts nothing, as in
    `sacctmgr show runawayjobs`). Of a job that slurmctld started twice for one submission, having
    lost its state in between, the first run ends where the second begins, at the latest.
    """
    known = _by_id(queue)
    newest: dict[int, int] = {}
    for run in waiting:
        newest[run.job_id] = max(run.start, newest.get(run.job_id, run.start))
    out = []
    for run in waiting:
        job = known.get(run.job_id)
        started = job.start if job is not None and job.start is not None else run.start
        old = run.start < now - LOST_AFTER
        if run.start < started:
            until = min(now, started)
        elif old and (job is None or run.start < newest[run.job_id]):
            until = now
        else:
            continue
        out.append(replace(run, end=max(run.start, min(seen_until or 0, until)), state="LOST"))
    return out
