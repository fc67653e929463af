"""Whether a cluster could ever start a job: its partition, GPU type and size against all nodes, up
or down, with whatever runs on them. Pure."""

from collections.abc import Sequence

from slurm_budget.core.fit import Shape
from slurm_budget.errors import BadInput
from slurm_budget.state.jobs import Node
from slurm_budget.text.nearest import listed, meant


def check(shape: Shape, nodes: Sequence[Node], partition: str, gpu_type: str) -> None:
    """Raises BadInput for what no node is in, no node has, or is more than there is. `partition`
    may name several; empty: any."""
    known = {name for node in nodes for name in node.partitions}
    names = partition.split(",") if partition else sorted(known)
    for name in names:
        if name not in known:
            raise BadInput(
                f"no node is in partition {name!r}",
                mend=meant(name, known, f"there are: {listed(known)}"),
            )
    here = [node for node in nodes if set(names) & set(node.partitions)]
    kinds = {kind for node in here for kind in node.gpus}
    if gpu_type and gpu_type not in kinds:
        raise BadInput(
            f"no node of partition {','.join(names)} has GPUs of type {gpu_type!r}",
            mend=f"types there: {listed(kinds - {''})}",
        )
    faults = [_too_large(shape, here, name, gpu_type) for name in names]
    if all(faults):
        raise BadInput(f"it can never start: {faults[0]}", mend="ask for fewer GPUs or nodes")


def _too_large(shape: Shape, nodes: Sequence[Node], partition: str, gpu_type: str) -> str:
    """Why the partition cannot hold it; empty where it can."""
    sizes = [
        node.gpus.get(gpu_type, 0) if gpu_type else node.gpu_total
        for node in nodes
        if partition in node.partitions
    ]
    if shape.nodes is None:
        whole = sum(sizes)
        return f"partition {partition} has {whole} GPUs in all" if whole < shape.gpus else ""
    fit = sum(size >= shape.gpus for size in sizes)
    if fit >= shape.nodes:
        return ""
    word = "node" if fit == 1 else "nodes"
    return f"partition {partition} has {fit} {word} with {shape.gpus} GPUs or more"
