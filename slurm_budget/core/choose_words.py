"""Why nothing is done for a job, in one sentence with its numbers."""

from collections import Counter
from collections.abc import Sequence

from slurm_budget.core.choose_ground import Reach
from slurm_budget.state.choose import Demand

SIZES = 3
"""How many sizes of nodes a sentence lists."""


def needs(demand: Demand) -> str:
    """`needs 2 nodes x 8 h100 GPUs`."""
    kind = f"{demand.gpu_type} GPU" if demand.gpu_type else "GPU"
    nodes = max(1, demand.nodes)
    if demand.per_node is None:
        text = f"needs {_count(demand.total, kind)} on {_where(nodes, demand.most_nodes)}"
        if demand.step > 1:
            text += f", {demand.step} by {demand.step}"
    else:
        whole = "whole node" if demand.exclusive else "node"
        text = f"needs {_count(nodes, whole)} x {_count(demand.per_node, kind)}"
    if demand.cpus_per_node:
        text += f" with {_count(demand.cpus_per_node, 'CPU')} each"
    return text


def out_of_reach(demand: Demand, reaches: Sequence[Reach]) -> str:
    """For a job that could not start if all went that may. `reaches`: each place it could run."""
    where = "partition " + " or ".join(sorted(demand.partitions))
    best = max(reaches, key=lambda reach: (reach.places, reach.units), default=None)
    if best is None or not best.ground.members:
        return f"{needs(demand)}; no usable node of {where} has them"
    places = max(1, demand.nodes)
    owning = max(len(reach.ground.members) for reach in reaches)
    if demand.per_node is not None and owning < places:
        return f"{needs(demand)}; only {_count(owning, 'usable node')} of {where} can have them"
    text = f"{needs(demand)}; free or yielding: {_offers(demand, best)}"
    if len(demand.partitions) > 1:
        text += f" in partition {best.ground.name}"
    if short := best.sizes()[1]:
        text += (
            f" ({_count(short, 'node')} with enough GPUs {'lacks' if short == 1 else 'lack'} CPUs)"
        )
    return text


def over_cap(demand: Demand, more: int, freed: int, max_gpus: int) -> str:
    """For the job whose runs would exceed what one sweep may free."""
    return (
        f"{needs(demand)}, for which runs with {_count(more, 'GPU')} would go; "
        f"{freed} of at most {max_gpus} are freed in this sweep already"
    )


def behind(demand: Demand, ahead: Demand, max_gpus: int) -> str:
    """For a job that must not pass the one that the cap stopped."""
    return (
        f"{needs(demand)}; no more is freed in this sweep, since job {ahead.job_id} ahead of it "
        f"would exceed max_gpus {max_gpus}"
    )


def nothing_may_go(demand: Demand, max_gpus: int) -> str:
    return f"{needs(demand)} and does not fit; max_gpus {max_gpus} lets nothing be freed"


def _offers(demand: Demand, reach: Reach) -> str:
    """`1 node x 8 and 3 x 4`, `9 GPUs on 3 nodes`, `none`."""
    if demand.per_node is None or demand.exclusive:
        if not reach.places:
            return "none"
        if demand.per_node is not None:
            return _count(reach.places, "whole node")
        return f"{_count(reach.units, 'GPU')} on {_count(reach.places, 'node')}"
    sizes: Counter[int] = Counter()
    for gpus, count in reach.sizes()[0].items():
        if gpus > 0:
            sizes[min(gpus, demand.per_node)] += count
    listed = [(sizes[size], size) for size in sorted(sizes, reverse=True)][:SIZES]
    if not listed:
        return "none"
    first, *more = [f"{count} x {size}" for count, size in listed]
    first = f"{_count(listed[0][0], 'node')} x {listed[0][1]}"
    return first if not more else ", ".join([first, *more[:-1]]) + f" and {more[-1]}"


def _where(least: int, most: int | None) -> str:
    if most is None:
        return f"{_count(least, 'node')} or more"
    return _count(least, "node") if most <= least else f"{least} to {most} nodes"


def _count(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
