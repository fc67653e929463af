"""What sweeps write down for reports: what waits to run, and what there is to run it on.

Both are levels: a number that holds until another one is seen. Only what changed is written.
"""

from collections.abc import Iterable, Mapping

from slurm_budget.core import live
from slurm_budget.state.budget import BudgetTree
from slurm_budget.state.jobs import Job, Node

Levels = Mapping[tuple[str | None, str], int]
"""GPUs by (account, GPU type); the account None is the cluster: GPUs on nodes that jobs can use."""

_READY = live.WAITS_FOR_GPUS | {""}
"""A job that has no reason yet is new. One that is held, depends, or hit a limit is not ready."""


def levels(
    jobs: Iterable[Job], nodes: Iterable[Node], tree: BudgetTree
) -> dict[tuple[str | None, str], int]:
    """GPUs that funded jobs wait for, and GPUs that can be used, at this moment."""
    out: dict[tuple[str | None, str], int] = {}
    for node in nodes:
        for kind, count in (node.gpus if node.usable else {}).items():
            out[None, kind] = out.get((None, kind), 0) + count
    for job in jobs:
        account = tree.resolve(job.account)
        if not job.pending or account is None or live.class_of(job) != "funded":
            continue
        if job.reason in _READY:
            for kind, count in job.gpus.items():
                key = (account, kind)
                out[key] = out.get(key, 0) + count * min(job.tasks, job.at_once)
    return out


def changed(before: Levels, now: Levels) -> dict[tuple[str | None, str], int]:
    """The levels that are not what they were; one that is gone is 0."""
    gone = {key: 0 for key, gpus in before.items() if gpus and key not in now}
    return gone | {key: gpus for key, gpus in now.items() if gpus != before.get(key, 0)}
