"""The cluster now: what holds its GPUs, and what keeps hosts from repair. Slurm is asked, live."""

from dataclasses import dataclass

from slurm_budget.core import cluster as rules
from slurm_budget.core import live, notes
from slurm_budget.core.cluster import Repair, Totals
from slurm_budget.ledger.store import Ledger
from slurm_budget.ports import JobPort
from slurm_budget.settings import Settings
from slurm_budget.usecases.policy import sweep_policy


@dataclass(frozen=True, slots=True)
class ClusterNow:
    """What `report cluster` shows, as of `now`."""

    cluster: str
    now: int
    totals: Totals
    repairs: list[Repair]


def cluster_now(slurm: JobPort, ledger: Ledger, settings: Settings, now: int) -> ClusterNow:
    """Look at jobs and nodes. Raises SlurmUnreachable: nothing is said by half a view."""
    policy = sweep_policy(settings)
    config = slurm.config()
    cluster = settings.slurm.cluster or config.get("ClusterName", "")
    nodes = slurm.nodes()
    drains = any("DRAIN" in node.flags for node in nodes)
    jobs = [live.with_suspension(job, now) for job in slurm.jobs(shares=drains)]
    going = ledger.open_intents(cluster)
    recent = ledger.intents_touched_since(cluster, now - policy.cooldown)
    brake = ledger.brake(cluster)
    found = rules.repairs(
        nodes,
        jobs,
        policy,
        slurm.preemption(config),
        notes.touched(recent, going, now),
        going,
        now,
        brake.reason if brake is not None and brake.paused else "",
    )
    return ClusterNow(cluster, now, rules.totals(nodes, jobs), found)
