"""The settings, in the words of the pure core."""

from collections.abc import Iterable, Mapping

from slurm_budget.settings import Settings
from slurm_budget.state.jobs import Node
from slurm_budget.state.slurm import Partition
from slurm_budget.state.snapshot import Policy
from slurm_budget.state.sweep import SweepPolicy
from slurm_budget.usecases.accounting import weights_of


def sweep_policy(settings: Settings) -> SweepPolicy:
    """What a sweep works by."""
    sweep, jobs = settings.sweep, settings.jobs
    return SweepPolicy(
        patience=sweep.patience,
        grace=sweep.grace,
        margin=sweep.margin,
        cooldown=sweep.cooldown,
        max_gpus=sweep.max_gpus,
        max_updates=sweep.max_updates,
        requeue=sweep.requeue,
        fast_lane=sweep.fast_lane,
        fast_lane_gpu_time=sweep.fast_lane_gpu_time,
        min_runtime=jobs.min_runtime,
        min_runtime_cap=jobs.min_runtime_cap,
        exempt=settings.qos.preempt_exempt_time,
        preempt_grace=settings.qos.grace_time,
        signal=sweep.signal,
        session_warning=sweep.session_warning,
        weights=weights_of(settings),
    )


def has_topology(config: Mapping[str, str]) -> bool:
    """Whether slurmctld's configuration names a topology that jobs are placed by."""
    return config.get("TopologyPlugin", "").lower().endswith(("tree", "block"))


def hook_policy(
    settings: Settings,
    nodes: Iterable[Node],
    config: Mapping[str, str],
    operators: Iterable[int],
    partitions: Mapping[str, Partition],
) -> Policy:
    """What the submit hook decides by; what it must know of the cluster comes along."""
    by_partition: dict[str, int] = {}
    for node in nodes:
        for partition in node.partitions:
            if node.gpu_total:
                fewest = by_partition.get(partition, node.gpu_total)
                by_partition[partition] = min(fewest, node.gpu_total)
    alike = set(by_partition.values())
    jobs = settings.jobs
    return Policy(
        default_class=jobs.default_class,
        min_runtime=jobs.min_runtime,
        min_runtime_cap=jobs.min_runtime_cap,
        on_exhausted=jobs.on_exhausted,
        messages=jobs.messages,
        max_age=settings.snapshot.max_age,
        fast_lane_gpu_time=settings.sweep.fast_lane_gpu_time,
        weights=weights_of(settings),
        node_gpus=alike.pop() if len(alike) == 1 else 0,
        topology=has_topology(config),
        partition_gpus=by_partition,
        job_requeue=config.get("JobRequeue", "1").strip() != "0",
        operators=tuple(operators),
        several_nodes=tuple(sorted(name for name, one in partitions.items() if one.min_nodes > 1)),
    )
