"""Which runs make way so that a host can be repaired."""

from collections.abc import Iterable, Mapping

from slurm_budget.core import live
from slurm_budget.core.exempt import NOT_OBSERVED, exempt
from slurm_budget.state.jobs import Job, Node
from slurm_budget.state.slurm import Preemption
from slurm_budget.state.sweep import SweepPolicy


def repairs(
    jobs: Iterable[Job],
    nodes: Iterable[Node],
    touched: Mapping[int, int],
    policy: SweepPolicy,
    now: int,
    preemption: Preemption = NOT_OBSERVED,
) -> list[tuple[Job, str]]:
    """Runs past their protection on nodes that drain, so that the hosts can be repaired.

    `scontrol reboot ASAP` drains too, for Slurm to reboot the node when its last run has ended; a
    reboot without ASAP does not, and takes jobs until the node happens to be idle.
    """
    draining = {node.name: _why(node) for node in nodes if "DRAIN" in node.flags}
    out = []
    for job in jobs:
        name = next((n for n in job.nodes if n in draining), None)
        if (
            name is not None
            and job.running
            and job.requeue
            and job.batch
            and job.gpu_total
            and not live.is_part(job)
            and (live.class_of(job) == "funded" or job.qos == policy.preemptible_qos)
            and now >= holds_until(job, policy, preemption)
            and now - touched.get(job.id, -policy.cooldown) >= policy.cooldown
        ):
            out.append((job, draining[name]))
    return out


def _why(node: Node) -> str:
    reboots = " for its reboot" if "REBOOT_REQUESTED" in node.flags else ""
    return f"node {node.name} is draining{reboots}"


def holds_until(job: Job, policy: SweepPolicy, preemption: Preemption = NOT_OBSERVED) -> int:
    """Until when nobody takes a run's GPUs: its protection, or PreemptExemptTime if preemptible."""
    if live.class_of(job) == "funded":
        return live.protected_until(job, policy)
    return (job.start or 0) + exempt(job, policy, preemption)
