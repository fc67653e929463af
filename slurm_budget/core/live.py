"""Reading a live job: its class, its minimum runtime, until when it is protected, what it costs."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from slurm_budget.core.admission_job import is_small
from slurm_budget.core.marker import parse
from slurm_budget.core.weights import rate, rates
from slurm_budget.state.jobs import Class, Job
from slurm_budget.state.slurm import Partition
from slurm_budget.state.sweep import SweepPolicy

HOLDING = frozenset({"RUNNING", "COMPLETING", "SUSPENDED", "CONFIGURING", "STOPPED", "SIGNALING",
                     "STAGE_OUT", "RESIZING"})  # fmt: skip
"""States in which a job holds its GPUs."""

WAITS_FOR_GPUS = frozenset({"Resources", "Priority"})
"""Reasons of a pending job that free GPUs would end."""

FUNDED_PREFIX = "funded-"

OBSERVING = 5
"""Seconds between reading the clock and reading the queue, at most, that are no suspension."""


def funded_qos(account: str) -> str:
    """The QOS of an account's funded jobs."""
    return FUNDED_PREFIX + account


def class_of_qos(qos: str) -> Class:
    """A run's class is the class of the QOS that it ran in."""
    return "funded" if qos.startswith(FUNDED_PREFIX) else "preemptible"


def class_of(job: Job) -> Class:
    return class_of_qos(job.qos)


def address(job: Job) -> str:
    """How Slurm's commands must name the job to hit it and nothing else.

    The raw id, mostly. Tasks of an array that wait together are named by their expression. The last
    task to start keeps the array's own id, and that id alone means every task of the array: such a
    run goes by its label (57_4). `squeue` may have cut an expression short (`...`); then the id.
    """
    label = job.label.partition("%")[0]
    if "[" in label and "..." not in label:
        return label if label.endswith("]") else label + "]"
    return label if re.fullmatch(rf"{job.id}_\d+", label) else str(job.id)


def asked(job: Job) -> Class | None:
    """What the job asks for: by its marker, or by the QOS its user chose since; None: not ours."""
    mark = parse(job.admin_comment)
    if mark is not None:
        return mark.asked if mark.class_ == class_of(job) else class_of(job)
    return "funded" if class_of(job) == "funded" else None


def min_runtime(job: Job, policy: SweepPolicy) -> int:
    """Seconds that its run is protected for when funded: the marker's, else the site's default."""
    mark = parse(job.admin_comment)
    declared = policy.min_runtime if mark is None else mark.min_runtime
    if job.time_limit is not None:
        declared = min(declared, job.time_limit)
    return min(declared, policy.min_runtime_cap)


def at_cap(job: Job, policy: SweepPolicy) -> bool:
    """Whether its protection is the longest there is, to which a longer one that was asked for is
    cut."""
    return min_runtime(job, policy) == policy.min_runtime_cap


def with_suspension(job: Job, now: int) -> Job:
    """The job with the time in which its run was suspended, which is none of its protection."""
    if job.start is None or job.used is None:
        return job
    away = now - job.start - job.used
    return replace(job, suspended=away) if away > OBSERVING else job


def open_partitions(job: Job, qos: str, partitions: Mapping[str, Partition]) -> list[str]:
    """Those of the job's partitions that allow a QOS; one that was not observed does."""
    return [n for n in job.partitions if n not in partitions or partitions[n].allows(qos)]


def is_part(job: Job) -> bool:
    """Whether it is a component of a heterogeneous job, which Slurm starts and requeues as one."""
    return "+" in job.label


def protected_until(job: Job, policy: SweepPolicy) -> int:
    """When the run's protection ends; its start for a preemptible run. Epoch seconds."""
    start = (job.start or 0) + job.suspended
    return start + min_runtime(job, policy) if class_of(job) == "funded" else start


def cost(job: Job, policy: SweepPolicy, gres: str = "gres/gpu") -> int:
    """GPU-milliseconds that protecting all its tasks that may run at once costs a budget."""
    return rate(job.gpus, policy.weights, gres) * min_runtime(job, policy) * job.at_once


def small(job: Job, policy: SweepPolicy) -> bool:
    """Whether it may use the fast lane, by the rule that the hook keeps to."""
    return job.time_limit is not None and is_small(
        rate(job.gpus, policy.weights), job.time_limit, job.at_once, policy.fast_lane_gpu_time
    )


def reserved_by_runs(
    jobs: Iterable[Job], policy: SweepPolicy, now: int
) -> dict[tuple[str, str, str], int]:
    """What protected runs have still to come, by (account, user, GPU type); GPU-milliseconds.

    A run in COMPLETING still holds its GPUs, but it has ended: nothing of its protection is left.
    """
    out: dict[tuple[str, str, str], int] = {}
    for job in jobs:
        if job.state not in HOLDING or job.state == "COMPLETING" or job.start is None:
            continue
        if class_of(job) != "funded":
            continue
        left = protected_until(job, policy) - max(now, job.start)
        for kind, amount in rates(job.gpus, policy.weights).items():
            if left > 0:
                key = (job.account, job.user, kind)
                out[key] = out.get(key, 0) + amount * left
    return out


def by_id(jobs: Iterable[Job]) -> Mapping[int, Job]:
    return {job.id: job for job in jobs}
