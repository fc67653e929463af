"""Of the runs that make way for one job together: which of them would go in vain.

Eight runs shall go for a gang, and one turns out to stay: it got protected, or Slurm will not
requeue it. The other seven would lose their work for a job that cannot start all the same.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from slurm_budget.core import owed
from slurm_budget.core.choose import choose
from slurm_budget.state.choose import Choice
from slurm_budget.state.intent import Intent
from slurm_budget.state.jobs import Job, Node
from slurm_budget.state.slurm import Preemption
from slurm_budget.state.sweep import SweepPolicy


def incomplete(going: Iterable[Intent], touched: Iterable[Intent]) -> set[int]:
    """Owed jobs for which a run was to go together with some of `going`, and was left."""
    together = {(intent.for_job, intent.created) for intent in going}
    return {
        intent.for_job
        for intent in touched
        if intent.for_job is not None
        and intent.step == "left"
        and (intent.for_job, intent.created) in together
    }


def in_vain(
    for_job: int,
    going: Sequence[Intent],
    ending: Collection[int],
    jobs: Sequence[Job],
    nodes: Sequence[Node],
    policy: SweepPolicy,
    now: int,
    preemption: Preemption,
) -> list[Intent]:
    """Those of `going` that free nothing by which a task of `for_job` starts.

    `going` are all runs that are to go, for whomever; `ending` ids of jobs that hold GPUs still,
    but not for long. Jobs that others make way for take what they need first where their priority
    is higher; what else is free is the job's, and what Slurm frees by itself.
    """
    waiting = {intent.for_job for intent in going} | {for_job}
    asked = owed.owed(jobs, nodes, {}, replace(policy, patience=0), now, preemption).demands
    demands = [demand for demand in asked if demand.job_id in waiting]

    def starts(leaving: Sequence[Intent]) -> int:
        gone = {intent.job_id for intent in leaving} | set(ending)
        free = owed.space(nodes, jobs, gone, policy, now, preemption)
        answers = choose(demands, free, [], lambda run, job: False, max_gpus=0, by_owner=True)
        return sum(isinstance(one, Choice) and one.job_id == for_job for one in answers)

    stay, tasks, vain = list(going), starts(going), list[Intent]()
    for intent in [intent for intent in going if intent.for_job == for_job]:
        rest = [other for other in stay if other.id != intent.id]
        if starts(rest) == tasks:
            stay = rest
            vain.append(intent)
    return vain
