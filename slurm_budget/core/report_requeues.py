"""Runs that were stopped from outside: by the sweeper, by Slurm, by a failed node, by hand.

`lost` is the whole run, GPUs x seconds: as if nothing had been written since it started. What a
job's checkpoints saved is in no accounting, so it is the most that can have been lost.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from slurm_budget.core.weights import rate
from slurm_budget.core.window import active
from slurm_budget.state.intent import GONE, Intent
from slurm_budget.state.jobs import Run

_BY_STATE = {"PREEMPTED": "preempted", "NODE_FAIL": "node-failed", "REQUEUED": "by-hand"}
_DONE = ("requeued", "done")


@dataclass(frozen=True, slots=True)
class RequeueRow:
    """`cause`: owed (the sweeper, for a job of `for_account`), repair (the sweeper, for another
    reason), preempted (Slurm), node-failed, by-hand. `ran` in seconds, `lost` GPU-milliseconds."""

    at: int
    job: int
    account: str
    user: str
    class_: str
    gpus: int
    ran: int
    lost: int
    cause: str
    for_account: str
    for_job: int | None
    why: str


def requeue_rows(
    runs: Iterable[Run], intents: Iterable[Intent], weights: Mapping[str, int]
) -> list[RequeueRow]:
    """Oldest first; `runs` have ended."""
    by_run = {(one.job_id, one.run_start): one for one in intents}
    found = ((run, by_run.get((run.job_id, run.start))) for run in runs)
    return [_row(run, one if one and _ours(one, run) else None, weights) for run, one in found]


def _ours(intent: Intent, run: Run) -> bool:
    """Whether the sweeper ended the run. A job that was cancelled while it waited for its next run
    was in no queue when the next sweep looked how it went; accounting knows how the run ended."""
    gone = intent.grace_until is not None and intent.detail == GONE
    return intent.step in _DONE or (gone and run.state == "REQUEUED")


def _row(run: Run, intent: Intent | None, weights: Mapping[str, int]) -> RequeueRow:
    since, until = active(run)
    cause = _BY_STATE.get(run.state, "by-hand")
    if intent is not None:
        cause = "repair" if intent.for_job is None else "owed"
    return RequeueRow(
        at=run.end or until,
        job=run.job_id,
        account=run.account,
        user=run.user,
        class_=run.class_,
        gpus=sum(run.gpus.values()),
        ran=until - since,
        lost=rate(run.gpus, weights) * (until - since),
        cause=cause,
        for_account="" if intent is None else intent.for_account,
        for_job=None if intent is None else intent.for_job,
        why="" if intent is None else intent.reason,
    )
