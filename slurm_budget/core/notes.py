"""What a sweep notices of single jobs and cannot mend: each a job with a reason to be said.

A job for which GPUs were freed should start at once. If it waits still when a whole sweep has
passed since, that sweep says so, with Slurm's reason, and only that one; nobody makes way for the
job again before its cooldown has passed (core.owed), so a job that cannot start costs others one
requeue per cooldown at most.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

from slurm_budget.state.choose import Leave
from slurm_budget.state.intent import Intent
from slurm_budget.state.jobs import Job
from slurm_budget.state.sweep import SweepPolicy

STALE = 600
"""Seconds beyond the QOS's GraceTime after which a preemption by Slurm should have ended the run:
its KillWait, and an epilog that takes its time."""


def touched(recent: Iterable[Intent], going: Iterable[Intent], now: int) -> dict[int, int]:
    """When each run was last requeued or at least warned, by its job's id; epoch seconds; now for
    those of open intents. One whose requeue Slurm refused is not warned again and again."""
    out: dict[int, int] = {}
    for intent in recent:
        if intent.step in ("requeued", "done") or intent.grace_until is not None:
            out[intent.job_id] = max(intent.updated, out.get(intent.job_id, 0))
    return out | {intent.job_id: now for intent in going}


def freed(intents: Iterable[Intent]) -> dict[int, int]:
    """When GPUs were last freed for each owed job, by its id; epoch seconds."""
    out: dict[int, int] = {}
    for intent in intents:
        if intent.for_job is not None and intent.step in ("requeued", "done"):
            out[intent.for_job] = max(intent.updated, out.get(intent.for_job, 0))
    return out


def not_started(
    jobs: Sequence[Job],
    served: Mapping[int, int],
    going: Collection[int | None],
    earlier: Sequence[int],
    policy: SweepPolicy,
    now: int,
) -> list[Leave]:
    """Jobs that still wait though GPUs were freed for them, in the one sweep that says so.

    `served` from `freed`; `going` are jobs for which more runs are being requeued now; `earlier`
    the times of the last two sweeps, newest first.
    """
    began = {job.array: job.start for job in jobs if job.array is not None and job.start}
    out = []
    for job in jobs:
        since = served.get(job.id)
        if since is None or not job.pending or job.id in going or began.get(job.id, 0) >= since:
            continue
        if [at > since for at in (*earlier, since)[:2]] == [True, False]:
            again = max(policy.cooldown - (now - since), 0)
            said = job.reason or "nothing"
            out.append(
                Leave(
                    job.id,
                    f"has not started, though GPUs were freed for it {now - since} s ago; Slurm "
                    f"says {said}; nobody makes way for it again for {again} s",
                )
            )
    return out


def stale_preemptions(jobs: Iterable[Job], policy: SweepPolicy, now: int) -> list[Leave]:
    """Runs that Slurm set out to preempt long ago, and that run on. They are treated as any other
    run; an admin should know, for Slurm counts on their GPUs."""
    out = []
    for job in jobs:
        at = job.preempt_time
        if job.running and at is not None and at >= (job.start or 0):
            ago = now - at
            if ago > policy.preempt_grace + STALE:
                out.append(
                    Leave(
                        job.id, f"runs on, though Slurm preempted it {ago} s ago: stale PreemptTime"
                    )
                )
    return out
