"""Would a job be funded now, and where would it start? Nothing is submitted. Pure.

A job is written GPUSxTIME or NODESxGPUSxTIME, where GPUS are those of each node:

    >>> parse("8x4h")
    Shape(nodes=None, gpus=8, seconds=14400)
    >>> parse("2x8x90min")
    Shape(nodes=2, gpus=8, seconds=5400)

TIME is the protection that it asks for (`--time-min`), in the spellings of the submit hook: 4h,
90min, 1h30m, 4:00:00; a plain number is minutes. The verdict is the hook's own (`core.admission`),
the place is found as the sweep finds it (`core.choose`).
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from slurm_budget.core import live, owed
from slurm_budget.core.admission_job import Verdict
from slurm_budget.core.admission_text import PREFIX
from slurm_budget.core.choose import choose
from slurm_budget.core.request import duration
from slurm_budget.errors import BadInput
from slurm_budget.state.choose import Candidate, Choice, Demand, Leave
from slurm_budget.state.jobs import Job, Node
from slurm_budget.state.sweep import SweepPolicy
from slurm_budget.text.spoken import spoken

_SHAPE = re.compile(r"(?:([0-9]{1,6})x)?([0-9]{1,6})x(.+)", re.ASCII)
_NEVER = 1 << 40
"""Seconds that nothing is preempted for: what a preemptible job must reckon with."""

MayYield = Callable[[Candidate, Demand], bool]


class Shape(NamedTuple):
    """`gpus` of each node; of the whole job where `nodes` is None."""

    nodes: int | None
    gpus: int
    seconds: int

    @property
    def total(self) -> int:
        return self.gpus * (self.nodes or 1)


@dataclass(frozen=True, slots=True)
class Fit:
    """`nodes` on which it would start, None where it would wait; `requeues` the runs that would
    make way; `as_of` when the sweep looked by which the verdict is."""

    verdict: str
    why: str
    sentences: tuple[str, ...]
    nodes: tuple[str, ...] | None = None
    requeues: tuple[int, ...] = ()
    as_of: int = 0


def parse(text: str) -> Shape:
    """Raises BadInput for what is no job."""
    found = _SHAPE.fullmatch(text.strip().lower())
    seconds = duration(found[3]) if found else None
    if found is None or not seconds or not int(found[2]) or found[1] == "0":
        none = found and seconds and (not int(found[2]) or found[1] == "0")
        raise BadInput(
            f"{text!r} asks for no GPU" if none else f"{text!r} is no job",
            mend="write GPUSxTIME such as 8x4h, or NODESxGPUSxTIME such as 2x8x4h",
        )
    return Shape(int(found[1]) if found[1] else None, int(found[2]), seconds)


def job_desc(
    shape: Shape, user: str, account: str, partition: str, gpu_type: str, limit: int, qos: str
) -> dict[str, object]:
    """What sbatch would send of such a job, for core.request; `limit` in seconds."""
    name = f"gres/gpu:{gpu_type}" if gpu_type else "gres/gpu"
    asked: dict[str, object] = {
        "user_name": user,
        "account": account,
        "qos": qos,
        "partition": partition,
        "time_limit": -(-limit // 60),
        "comment": f"min-runtime={shape.seconds}s",
        "script": "#!",
    }
    if shape.nodes is None:
        return {**asked, "tres_per_job": f"{name}:{shape.gpus}"}
    nodes = {"min_nodes": shape.nodes, "max_nodes": shape.nodes}
    return {**asked, **nodes, "tres_per_node": f"{name}:{shape.gpus}"}


def demand(
    shape: Shape, user: str, account: str, partitions: frozenset[str], gpu_type: str, largest: int
) -> Demand:
    """The same for core.choose. `largest`: GPUs of the largest node; a job that one node can hold
    is kept on one, as the hook does."""
    per_node: int | None = shape.gpus
    if shape.nodes is None and shape.gpus > largest:
        per_node = None
    return Demand(0, account, user, partitions, gpu_type, shape.total, shape.nodes or 1, per_node)


def place(
    wanted: Demand,
    jobs: Sequence[Job],
    nodes: Sequence[Node],
    policy: SweepPolicy,
    now: int,
    *,
    funded: bool,
    yielding: MayYield | None,
) -> Choice | Leave:
    """Where it would start. `yielding` None: whom the sweeper would requeue is not known."""
    if not funded:
        policy = replace(policy, exempt=_NEVER)
    free = owed.space(nodes, jobs, (), policy, now)
    runs, _ = owed.candidates(jobs, {}, policy, now) if funded and yielding else ([], [])
    most = policy.max_gpus if policy.requeue != "never" and runs else 0
    (answer,) = choose([wanted], free, runs, yielding or _nobody, max_gpus=most)
    return answer


def _nobody(run: Candidate, job: Demand) -> bool:
    return False


def said(messages: Sequence[str]) -> list[str]:
    """The hook's own lines, without its name in front."""
    lines = [line.removeprefix(PREFIX) for line in messages]
    return [line[:1].upper() + line[1:] for line in lines]


def cut(shape: Shape, verdict: Verdict) -> str:
    """That the protection is less than was asked for, where the hook's lines do not say it."""
    if verdict.asked != "funded" or verdict.why == "fits":
        return ""
    if not 0 < verdict.min_runtime < shape.seconds:
        return ""
    return (
        f"Its protection would be {spoken(verdict.min_runtime)}, the longest there is"
        f" ({spoken(shape.seconds)} asked)."
    )


def where(
    answer: Choice | Leave, funded: bool, yielding: MayYield | None, policy: SweepPolicy
) -> str:
    """Where it would start, or what it would wait for."""
    if isinstance(answer, Leave):
        reason = answer.reason.partition("; max_gpus")[0].removesuffix(" and does not fit")
        more = ""
        if funded and yielding is None:
            more = "; whether the sweeper would make room stands in the ledger"
        return f"It would wait: it {reason}, and so much is not free{more}."
    names = ", ".join(answer.nodes)
    if not answer.victims:
        how = ", where GPUs are free or Slurm frees them from preemptible runs" if funded else ""
        return f"It would start now on {names}{how}."
    count = len(answer.victims)
    ids = ", ".join(str(run.job_id) for run in answer.victims)
    runs = f"1 run past its protection (job {ids})"
    if count > 1:
        runs = f"{count} runs past their protection (jobs {ids})"
    return (
        f"It would start on {names} after the sweeper has requeued {runs}:"
        f" about {spoken(policy.patience + policy.grace)} from now."
    )


def ahead(jobs: Sequence[Job], partitions: frozenset[str]) -> str:
    """Who waits for the same GPUs; empty where nobody does."""
    waiting: Mapping[int, Job] = {
        job.id: job
        for job in jobs
        if job.pending
        and job.gpu_total
        and job.reason in live.WAITS_FOR_GPUS
        and partitions & set(job.partitions)
    }
    if not waiting:
        return ""
    gpus = sum(job.gpu_total * job.at_once for job in waiting.values())
    word = "job waits" if len(waiting) == 1 else "jobs wait"
    return f"{len(waiting)} {word} for {gpus} GPUs there already; priority says who comes first."
