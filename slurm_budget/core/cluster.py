"""What a cluster is doing now, and which runs keep hosts from being repaired. Pure.

A node that drains takes no new job; it can be repaired when its last run has gone. The sweep
requeues there what is past its protection (core.repairs); for each run that is left this says
whose protection it is, until when, and what the next sweep will do.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from slurm_budget.core import live
from slurm_budget.core.repairs import holds_until
from slurm_budget.core.repairs import repairs as runs_to_go
from slurm_budget.state.intent import Intent
from slurm_budget.state.jobs import Class, Job, Node
from slurm_budget.state.slurm import Preemption
from slurm_budget.state.sweep import SweepPolicy

_STAMP = re.compile(r"^(.*?)\s*\[([^\[\]@]+)@([^\[\]]+)\]")


@dataclass(frozen=True, slots=True)
class Totals:
    """Nodes and GPUs now. `draining` nodes still hold runs, `drained` ones do not; `down` are all
    others that take no job. `idle` GPUs are those on usable nodes that nobody holds."""

    nodes: int
    usable: int
    draining: int
    drained: int
    down: int
    gpus: int
    usable_gpus: int
    funded: int
    preemptible: int
    idle: int


@dataclass(frozen=True, slots=True)
class Holder:
    """A run that holds GPUs (None: not known how many) on a node under repair. `until`: epoch
    second at which its protection ends; `waits_for`: what the node waits for, such as whose
    protection; `next`: what the next sweep does."""

    job: str
    user: str
    account: str
    class_: Class
    gpus: int | None
    until: int
    waits_for: str
    next: str


@dataclass(frozen=True, slots=True)
class Repair:
    """A node that drains. `since` None: slurmctld does not say."""

    node: str
    state: str
    since: int | None
    by: str
    reason: str
    gpus: int
    holders: tuple[Holder, ...]


def totals(nodes: Sequence[Node], jobs: Iterable[Job]) -> Totals:
    """Counts of everything. GPUs of a run are of its class wherever its nodes stand."""
    holding = [job for job in jobs if job.state in live.HOLDING]
    busy = {name for job in holding for name in job.nodes}
    usable = [node for node in nodes if node.usable]
    drains = [node for node in nodes if "DRAIN" in node.flags]
    draining = sum(node.name in busy for node in drains)
    funded = sum(job.gpu_total for job in holding if live.class_of(job) == "funded")
    return Totals(
        nodes=len(nodes),
        usable=len(usable),
        draining=draining,
        drained=len(drains) - draining,
        down=len(nodes) - len(usable) - len(drains),
        gpus=sum(node.gpu_total for node in nodes),
        usable_gpus=sum(node.gpu_total for node in usable),
        funded=funded,
        preemptible=sum(job.gpu_total for job in holding) - funded,
        idle=sum(max(node.gpu_total - node.gpus_used, 0) for node in usable),
    )


def stamp(reason: str) -> tuple[str, str, int | None]:
    """(reason, who, since) of Slurm's `fan broken [root@1795989608]`.

    >>> stamp("fan broken [root@1795989608]")
    ('fan broken', 'root', 1795989608)
    """
    found = _STAMP.match(reason)
    if found is None:
        return reason.strip(), "", None
    at = found[3]
    return found[1], found[2], int(at) if at.isascii() and at.isdigit() else None


def repairs(
    nodes: Iterable[Node],
    jobs: Sequence[Job],
    policy: SweepPolicy,
    preemption: Preemption,
    touched: Mapping[int, int],
    going: Iterable[Intent],
    now: int,
    paused: str = "",
) -> list[Repair]:
    """Every draining node, the one that is free last at the end. `touched`: when we last acted on a
    job, by its id; `going`: open intents; `paused`: why the sweeper is, empty when it is not."""
    draining = [node for node in nodes if "DRAIN" in node.flags]
    names = {node.name for node in draining}
    holding = [job for job in jobs if job.state in live.HOLDING and not names.isdisjoint(job.nodes)]
    soon = {job.id for job, _ in runs_to_go(holding, draining, touched, policy, now, preemption)}
    steps = {intent.job_id: intent.step for intent in going}
    words = {
        job.id: _next(job, policy, preemption, soon, steps, touched, now, paused) for job in holding
    }
    out = []
    for node in draining:
        reason, by, since = stamp(node.reason)
        on = [job for job in holding if node.name in job.nodes]
        holders = tuple(_holder(job, node, policy, preemption, words[job.id]) for job in on)
        state = f"{node.state}+DRAIN"
        out.append(Repair(node.name, state, since, by, reason, node.gpu_total, holders))
    return sorted(out, key=lambda one: (max((h.until for h in one.holders), default=0), one.node))


def _holder(
    job: Job, node: Node, policy: SweepPolicy, preemption: Preemption, words: tuple[str, str]
) -> Holder:
    return Holder(
        job=job.label,
        user=job.user,
        account=job.account,
        class_=live.class_of(job),
        gpus=job.gpus_on.get(node.name, 0) if job.gpus_on or not job.gpu_total else None,
        until=holds_until(job, policy, preemption),
        waits_for=words[0],
        next=words[1],
    )


def _next(
    job: Job,
    policy: SweepPolicy,
    preemption: Preemption,
    soon: Collection[int],
    steps: Mapping[int, str],
    touched: Mapping[int, int],
    now: int,
    paused: str,
) -> tuple[str, str]:
    """(what the node waits for, what the next sweep will do)."""
    if not job.running:
        return f"its end ({job.state})", "nothing"
    if paused:
        return "the sweeper", f"nothing: it is paused ({paused})"
    if policy.requeue == "never":
        return "its end", 'nothing: sweep.requeue is "never"'
    if job.id in steps:
        done = "requeue it" if steps[job.id] == "signalled" else "go on with its requeue"
        return "its grace", f"{done} when its grace is over"
    if job.id in soon:
        warn = "warn it, and requeue it" if policy.grace else "requeue it"
        return "the next sweep", warn
    return _stays(job, policy, preemption, touched, now), "leave it"


def _stays(
    job: Job, policy: SweepPolicy, preemption: Preemption, touched: Mapping[int, int], now: int
) -> str:
    if not job.gpu_total:
        return "its end: it holds no GPU"
    if not job.batch:
        return "its end: interactive, it cannot be requeued"
    if not job.requeue:
        return "its end: --no-requeue"
    if now < holds_until(job, policy, preemption):
        if live.class_of(job) == "funded":
            return f"{job.account}'s protection"
        return "PreemptExemptTime"
    return f"its cool-down: requeued {now - touched.get(job.id, now)} s ago"
