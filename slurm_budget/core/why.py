"""Why a job is where it is: data in, sentences out. Pure.

The queue comes first (what runs or waits now), then the accounting (what has ended). What could not
be read is None in `Known`, and is never taken for "nothing": the sentence is left out, and the
caller says what was not read.

`clock` shows a moment to the reader.
"""

from collections.abc import Sequence
from dataclasses import replace

from slurm_budget.core import live, why_past, why_runs, why_waits
from slurm_budget.core.holders import Clock
from slurm_budget.core.marker import parse
from slurm_budget.state.answers import Answer, Known, Past
from slurm_budget.state.jobs import Job
from slurm_budget.text import jobids

_STATES = {
    "COMPLETING": "it has ended, and its nodes are being cleaned up; it still holds its GPUs",
    "CONFIGURING": "its nodes are being made ready",
    "SUSPENDED": "it is suspended, and holds its GPUs meanwhile",
    "STOPPED": "it is stopped by a signal and holds its GPUs",
    "SIGNALING": "it is being signalled",
    "STAGE_OUT": "its data are being staged out",
    "RESIZING": "it is changing its size",
    "REQUEUED": "it is being requeued",
    "REQUEUE_HOLD": "it was requeued and is held; `scontrol release JOBID` lets it run again",
    "SPECIAL_EXIT": "it was requeued in a special state and is held",
    "REQUEUE_FED": "another cluster of the federation has it",
}


def answer(asked: str, known: Known, clock: Clock) -> Answer:
    """The answer for a job id as it was typed: 123, 123_4, 123+1. BadInput where it is no id."""
    wanted = jobids.parse(asked)
    found = [job for job in known.jobs or () if _is(job, wanted)]
    if found:
        return _live(wanted, found, known, clock)
    rows = [row for row in known.past or () if _was(row, wanted)]
    if rows:
        return why_past.answer(rows, known, clock)
    return _unknown(asked, known)


def _is(job: Job, wanted: jobids.JobId) -> bool:
    if wanted.het is not None:
        return job.id == wanted.base + wanted.het
    if wanted.array is None:
        return wanted.base in (job.id, job.array)
    has = jobids.parse(job.label)
    return has.base == wanted.base and has.array is not None and jobids.holds(has.array, wanted)


def _was(row: Past, wanted: jobids.JobId) -> bool:
    if wanted.het is not None:
        return row.id == wanted.base + wanted.het
    has = jobids.parse(row.label)
    if wanted.array is None:
        return wanted.base in (row.id, has.base)
    return has.base == wanted.base and has.array is not None and jobids.holds(has.array, wanted)


def _live(wanted: jobids.JobId, found: Sequence[Job], known: Known, clock: Clock) -> Answer:
    """Of a task that has split off, that one; of an array, the first that still waits."""
    job = min(found, key=lambda job: ("[" in job.label, job.id) if wanted.array else _waits(job))
    if wanted.het is not None:
        job = replace(job, label=f"{wanted.base}+{wanted.het}")
    if job.pending:
        sentences = why_waits.sentences(job, known, clock)
    elif job.running:
        sentences = why_runs.sentences(job, known, clock)
    else:
        plain = _STATES.get(job.state, "Slurm has it in a state that says nothing about budgets")
        sentences = [f"Job {job.label} of {job.user} in {job.account} is {job.state}: {plain}."]
    rows = [row for row in known.past or () if row.id == job.id]
    sentences += why_past.earlier(rows, job.start, known, clock)
    if len(found) > 1 and wanted.array is None:
        sentences.insert(0, _array(wanted, found, job))
    mark = parse(job.admin_comment)
    ours = bool(job.gpu_total)
    return Answer(
        job=job.label,
        state=job.state,
        sentences=tuple(sentences),
        class_=live.class_of(job) if ours else "",
        why=mark.why if mark is not None and ours else "",
        reason=job.reason if job.pending else "",
        protected_until=_protected(job, known),
    )


def _waits(job: Job) -> tuple[bool, int]:
    return not job.pending, job.id


def _protected(job: Job, known: Known) -> int | None:
    if not job.running or not job.gpu_total or live.class_of(job) != "funded":
        return None
    return live.protected_until(job, known.policy)


def _array(wanted: jobids.JobId, found: Sequence[Job], shown: Job) -> str:
    runs = sum(not job.pending for job in found)
    waits = sum(job.tasks for job in found if job.pending)
    word = "task runs" if runs == 1 else "tasks run"
    return (
        f"Of array {wanted.base}, {runs} {word} and {waits} wait; below is {shown.label}"
        f" (ask for one task as {wanted.base}_N)."
    )


def _unknown(asked: str, known: Known) -> Answer:
    where = "The queue does not show it"
    if known.jobs is None:
        where = "The queue could not be read"
    if known.past is not None:
        where += f", and the accounting of the last {known.past_days} days does not have it"
    hint = "Jobs of others may be hidden from you, and ids are given anew after a while."
    return Answer(asked, "UNKNOWN", (f"Job {asked} is unknown. {where}.", hint))
