"""Who is owed, who may yield, and what space there is: the policy around core.choose.

A job is *owed* when it is funded, waits for GPUs (Slurm says Resources or Priority) and has waited
longer than `patience`. A run may *yield* when it is funded, past its protection, a batch job that
can be requeued, was neither warned nor requeued within `cooldown`, and its account has had more of
its share than the owed one, compared below their common ancestor by `margin`. Preemptible runs past
their PreemptExemptTime are not asked: Slurm frees them by itself, so what they hold counts as free.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from slurm_budget.core import live
from slurm_budget.core.exempt import NOT_OBSERVED, exempt
from slurm_budget.core.standing import Standing, worse
from slurm_budget.state.budget import BudgetTree
from slurm_budget.state.choose import Candidate, Demand, Leave, NodeSpace
from slurm_budget.state.jobs import Job, Node
from slurm_budget.state.slurm import Preemption
from slurm_budget.state.sweep import SweepPolicy

MOST_TASKS = 16
"""Tasks of one array that one sweep looks at."""


@dataclass(frozen=True, slots=True)
class Owed:
    """`demands` in the order in which they are served; `left` jobs that wait for something else."""

    demands: list[Demand]
    left: list[Leave]


def owed(
    jobs: Sequence[Job],
    nodes: Iterable[Node],
    served: Mapping[int, int],
    policy: SweepPolicy,
    now: int,
    preemption: Preemption = NOT_OBSERVED,
) -> Owed:
    """Jobs that are owed GPUs. `served`: when GPUs were last freed for a job, by its id."""
    out = Owed([], [])
    largest = max((node.gpu_total for node in nodes), default=0)
    waiting = [
        job for job in jobs if job.pending and job.gpu_total and live.class_of(job) == "funded"
    ]
    at_work = Counter(job.array or job.id for job in jobs if job.running)
    for job in sorted(waiting, key=lambda job: (-job.priority, job.submit, job.id)):
        since = max(job.eligible or job.submit, job.submit)
        if job.reason not in live.WAITS_FOR_GPUS:
            reason = job.reason or "not looked at yet"
            out.left.append(Leave(job.id, f"waits for something else ({reason})"))
        elif now - since < policy.patience:
            out.left.append(
                Leave(job.id, f"has waited {now - since} s of {policy.patience} s patience")
            )
        elif now - served.get(job.id, -policy.cooldown) < policy.cooldown:
            ago = now - served[job.id]
            out.left.append(
                Leave(
                    job.id,
                    f"GPUs were freed for it {ago} s ago; it has not started yet ({job.reason})",
                )
            )
        elif live.is_part(job):
            out.left.append(Leave(job.id, "part of a het job, which starts as a whole"))
        elif job.names_nodes:
            out.left.append(Leave(job.id, "asks for nodes by name"))
        elif len([kind for kind in job.gpus if kind]) > 1:
            out.left.append(Leave(job.id, "asks for GPUs of several types"))
        elif _features(job.features) is None:
            out.left.append(Leave(job.id, f"its constraint {job.features!r} is beyond us"))
        else:
            tasks = min(job.tasks, job.at_once, MOST_TASKS)
            if "%" in job.label:  # those that run count too
                tasks = min(tasks, job.at_once - at_work[job.array or job.id])
            out.demands.extend([_demand(job, largest, preemption)] * max(tasks, 0))
    return out


def _demand(job: Job, largest: int, preemption: Preemption) -> Demand:
    partitions = live.open_partitions(job, job.qos, preemption.partitions)
    least = min((_least(name, preemption) for name in partitions), default=1)
    total, nodes = job.gpu_total, max(job.num_nodes, least)
    per_node = job.per_node
    if per_node is None and nodes == 1 and total <= largest:
        per_node = total
    kinds = [kind for kind in job.gpus if kind]
    return Demand(
        job_id=job.id,
        account=job.account,
        user=job.user,
        partitions=frozenset(partitions),
        gpu_type=kinds[0] if len(kinds) == 1 else "",
        total=total,
        nodes=nodes,
        per_node=per_node,
        cpus_per_node=-(-job.cpus // nodes),
        exclusive=job.exclusive,
        features=_features(job.features) or (),
        most_nodes=None if per_node is not None else job.max_nodes,
        step=_step(job) if per_node is None else 1,
        excluded=frozenset(job.excluded),
    )


def _least(partition: str, preemption: Preemption) -> int:
    """Nodes on which a partition starts a job at least."""
    found = preemption.partitions.get(partition)
    return max(found.min_nodes, 1) if found else 1


def _step(job: Job) -> int:
    return job.per_task if job.per_task and job.gpu_total % job.per_task == 0 else 1


def _features(text: str) -> tuple[frozenset[str], ...] | None:
    """`a&b|c` as alternatives of sets; None where it says more than that ([..], counts)."""
    if not text:
        return ()
    if not re.fullmatch(r"[\w.:-]+([&|,][\w.:-]+)*", text):
        return None
    return tuple(frozenset(re.split(r"[&,]", alternative)) for alternative in text.split("|"))


def candidates(
    jobs: Iterable[Job], touched: Mapping[int, int], policy: SweepPolicy, now: int
) -> tuple[list[Candidate], list[Leave]]:
    """Runs that may be requeued for somebody, and why the other funded runs are left.

    `touched`: when we last acted on a job (an open intent counts as now), by its id.
    """
    found: list[Candidate] = []
    left: list[Leave] = []
    for job in jobs:
        if not job.running or not job.gpu_total or live.class_of(job) != "funded":
            continue
        until = live.protected_until(job, policy)
        if now < until:
            left.append(Leave(job.id, f"protected for {until - now} s more"))
        elif live.is_part(job):
            left.append(Leave(job.id, "part of a het job, which is requeued as a whole"))
        elif not job.batch:
            left.append(Leave(job.id, "interactive: it cannot be requeued"))
        elif not job.requeue:
            left.append(Leave(job.id, "not requeueable (--no-requeue)"))
        elif now - touched.get(job.id, -policy.cooldown) < policy.cooldown:
            ago = now - touched[job.id]
            left.append(Leave(job.id, f"warned or requeued {ago} s ago: it cools down"))
        elif not job.gpus_on:
            left.append(Leave(job.id, "Slurm does not say yet which GPUs it holds on which node"))
        else:
            found.append(_candidate(job, now))
    return found, left


def _candidate(job: Job, now: int) -> Candidate:
    """Lost work in whole GPU-minutes, so that among equals the nearer nodes and the younger go."""
    kinds = [kind for kind in job.gpus if kind]
    start = now if job.start is None else job.start
    cpus = {name: -(-job.cpus // len(job.nodes)) for name in job.nodes} if job.nodes else {}
    return Candidate(
        job_id=job.id,
        account=job.account,
        user=job.user,
        gpus_on=dict(job.gpus_on),
        gpu_type=kinds[0] if len(kinds) == 1 else "",
        started=start,
        lost=job.gpu_total * max(now - start, 0) // 60 * 60_000,
        cpus_on=cpus,
    )


def space(
    nodes: Iterable[Node],
    jobs: Sequence[Job],
    leaving: Iterable[int],
    policy: SweepPolicy,
    now: int,
    preemption: Preemption = NOT_OBSERVED,
) -> dict[str, NodeSpace]:
    """What is free on each node on which jobs can start, counting as free what Slurm preempts by
    itself. A job in COMPLETING still holds its GPUs. `leaving`: jobs that we are requeueing.

    A run of which it is not known what it holds where counts as holding all it may, everywhere.
    """
    going = set(leaving)
    held: dict[str, dict[str, int]] = {}
    cpus: dict[str, int] = {}
    for job in jobs:
        if job.state not in live.HOLDING or job.id in going:
            continue
        if _slurm_frees(job, policy, preemption, now):
            continue
        kinds = [kind for kind in job.gpus if kind]
        on = job.gpus_on or dict.fromkeys(job.nodes, job.gpu_total)
        for name, count in on.items():
            by_type = held.setdefault(name, {})
            kind = kinds[0] if len(kinds) == 1 else ""
            by_type[kind] = by_type.get(kind, 0) + count
        for name in job.nodes:
            cpus[name] = cpus.get(name, 0) + -(-job.cpus // len(job.nodes))
    return {
        node.name: NodeSpace(
            name=node.name,
            total=node.gpus,
            free=_free(node, held.get(node.name, {})),
            partitions=frozenset(node.partitions),
            cpus_free=max(node.cpus - cpus.get(node.name, 0), 0) if node.cpus else None,
            cpus_total=node.cpus or None,
            features=node.features,
            switches=node.place.switches,
            island=node.place.island,
        )
        for node in nodes
        if node.usable and node.gpu_total
    }


def _slurm_frees(job: Job, policy: SweepPolicy, preemption: Preemption, now: int) -> bool:
    return (
        job.running
        and job.qos == policy.preemptible_qos
        and job.start is not None
        and now - job.start >= exempt(job, policy, preemption)
    )


def _free(node: Node, held: Mapping[str, int]) -> dict[str, int]:
    """By type. What an untyped job holds is taken from the type that has most left."""
    free = {kind: count - held.get(kind, 0) for kind, count in node.gpus.items()}
    for kind, count in held.items():
        if kind not in free:
            for _ in range(count):
                most = max(free, key=lambda name: free[name])
                free[most] -= 1
    return {kind: max(count, 0) for kind, count in free.items()}


def may_yield(
    tree: BudgetTree,
    accounts: Mapping[str, Standing],
    user_use: Mapping[tuple[str, str], int],
    policy: SweepPolicy,
) -> Callable[[Candidate, Demand], bool]:
    """Whether a run must make way for a job: by account, and inside one account by user."""
    known: dict[tuple[str, str], bool] = {}

    def answer(run: Candidate, job: Demand) -> bool:
        theirs, ours = tree.resolve(run.account), tree.resolve(job.account)
        if ours is None:
            return False
        if theirs is None:
            return True
        if theirs == ours:
            return _user_worse(ours, run.user, job.user)
        if (theirs, ours) not in known:
            known[theirs, ours] = worse(theirs, ours, tree, accounts, policy.margin)
        return known[theirs, ours]

    def _user_worse(account: str, run_user: str, job_user: str) -> bool:
        if run_user == job_user:
            return False
        one, other = user_use.get((account, run_user), 0), user_use.get((account, job_user), 0)
        budget = accounts[account].budget or 0
        return one - other > budget * Fraction(policy.margin).limit_denominator(10**6)

    return answer
