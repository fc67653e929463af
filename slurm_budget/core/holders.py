"""Who holds the GPUs that a job waits for, and until when. Pure.

of 32 GPUs in partition gpu: 4 free; 16 protected (vision 16), the first until 16:04; 4 in runs
past their protection (language 4); 8 preemptible, which Slurm frees by itself
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from slurm_budget.core import live
from slurm_budget.state.jobs import Job, Node
from slurm_budget.state.sweep import SweepPolicy

Clock = Callable[[int], str]
"""How a moment is shown to the reader."""
MOST_NAMED = 4


@dataclass(slots=True)
class Holders:
    """Whole GPUs on nodes of some partitions. `until`: the first end of a protection; `frees`: when
    the first preemptible run may be preempted; epoch seconds, None where there is none."""

    total: int = 0
    broken: int = 0
    free: int = 0
    protected: dict[str, int] = field(default_factory=dict)
    past: dict[str, int] = field(default_factory=dict)
    preemptible: int = 0
    other: int = 0
    until: int | None = None
    frees: int | None = None


def holders(
    jobs: Iterable[Job],
    nodes: Iterable[Node],
    partitions: Iterable[str],
    policy: SweepPolicy,
    now: int,
) -> Holders:
    """Of the nodes on which a job of `partitions` could run. All of a node on which nothing can
    start counts as `broken`."""
    wanted = set(partitions)
    mine = {node.name: node for node in nodes if wanted & set(node.partitions) and node.gpu_total}
    out = Holders(total=sum(node.gpu_total for node in mine.values()))
    usable = {name for name, node in mine.items() if node.usable}
    out.broken = sum(node.gpu_total for name, node in mine.items() if name not in usable)
    held = 0
    for job in jobs:
        gpus = sum(count for name, count in job.gpus_on.items() if name in usable)
        if job.state not in live.HOLDING or not gpus:
            continue
        held += gpus
        if live.class_of(job) == "funded":
            until = live.protected_until(job, policy)
            side = out.protected if until > now else out.past
            side[job.account] = side.get(job.account, 0) + gpus
            if until > now:
                out.until = min(until, out.until or until)
        elif job.qos == policy.preemptible_qos:
            out.preemptible += gpus
            frees = (job.start or now) + policy.exempt
            out.frees = min(frees, out.frees or frees)
        else:
            out.other += gpus
    out.free = max(out.total - out.broken - held, 0)
    return out


def sentence(found: Holders, partitions: Sequence[str], now: int, clock: Clock) -> str:
    """All of it in one sentence with its numbers; kinds that hold nothing are left out."""
    parts = [f"{found.free} free"]
    if found.protected:
        until = f", the first until {clock(found.until)}" if found.until is not None else ""
        parts.append(f"{_sum(found.protected)} protected ({_names(found.protected)}{until})")
    if found.past:
        parts.append(f"{_sum(found.past)} in runs past their protection ({_names(found.past)})")
    if found.preemptible:
        when = f" from {clock(found.frees)} on" if found.frees and found.frees > now else ""
        parts.append(
            f"{found.preemptible} preemptible, which Slurm frees by itself for funded jobs{when}"
        )
    if found.other:
        parts.append(f"{found.other} in a QOS that is not ours")
    if found.broken:
        parts.append(f"{found.broken} on nodes that are drained or down")
    where = "partition " + " or ".join(partitions)
    return f"Of {found.total} GPUs in {where}: {'; '.join(parts)}."


def _sum(by_account: Mapping[str, int]) -> int:
    return sum(by_account.values())


def _names(by_account: Mapping[str, int]) -> str:
    order = sorted(by_account.items(), key=lambda item: (-item[1], item[0]))
    named = ", ".join(f"{name} {gpus}" for name, gpus in order[:MOST_NAMED])
    more = len(order) - MOST_NAMED
    return named if more <= 0 else f"{named} and {more} more accounts"
