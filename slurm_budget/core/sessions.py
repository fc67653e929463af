"""Which sessions hear now that their time is nearly over, and what they read.

A session is a run that nothing can bring back: interactive (salloc, srun) or `--no-requeue`. A
funded one has its whole time limit protected, so that there is no other end than the limit's. A
preemptible one may be ended by Slurm for a funded job from the end of its exempt time on, and has
no second start: that it hears too.

It is said in the last `warning` seconds before the moment, at most in the last half of the time up
to it, so that a five-minute session does not open with it. Whatever is due and was not said yet is
said, however late: a sweep that was skipped loses nothing.
"""

from collections.abc import Iterable, Iterator

from slurm_budget.core import live
from slurm_budget.state.jobs import Job
from slurm_budget.state.session import Notice
from slurm_budget.state.sweep import SweepPolicy
from slurm_budget.text.spoken import spoken


def due(jobs: Iterable[Job], policy: SweepPolicy, now: int) -> list[Notice]:
    """All notices that should have been said by `now`, the soonest moment first."""
    if policy.session_warning == 0:
        return []
    found = [
        notice
        for job in jobs
        if _is_session(job, policy)
        for notice in _notices(job, policy, now)
        if now >= notice.at - min(policy.session_warning, (notice.at - (job.start or 0)) // 2)
    ]
    return sorted(found, key=lambda notice: (notice.at, notice.job_id))


def _is_session(job: Job, policy: SweepPolicy) -> bool:
    ours = live.class_of(job) == "funded" or job.qos == policy.preemptible_qos
    return ours and job.running and job.gpu_total > 0 and not (job.batch and job.requeue)


def _notices(job: Job, policy: SweepPolicy, now: int) -> Iterator[Notice]:
    if job.start is None:
        return
    end = None if job.time_limit is None else job.end
    if end is not None and end > now:
        yield Notice(job.id, "end", end, _end(job, end - now))
    free = job.start + policy.exempt
    if live.class_of(job) == "preemptible" and (end is None or end > max(free, now)):
        yield Notice(job.id, "preempt", free, _preempt(job, free - now))


def _end(job: Job, left: int) -> str:
    return (
        f"sbudget: {_name(job)} ends in {_rough(left)}, when its time limit is over."
        " Save your work now."
    )


def _preempt(job: Job, left: int) -> str:
    when = f"in {_rough(left)}" if left > 0 else "from now on"
    return (
        f"sbudget: {when}, {_name(job)} may be ended at any moment for a funded job: it is"
        " preemptible and cannot be requeued. Save your work now and often."
        " To be left alone, start it with --qos=funded, and --time-min as long as --time."
    )


def _name(job: Job) -> str:
    return f"this {'job' if job.batch else 'session'} ({job.label})"


def _rough(seconds: int) -> str:
    """Whole minutes, rounded down, for a warning is rather early than late; seconds below one."""
    return spoken(seconds - seconds % 60 if seconds >= 60 else seconds)
