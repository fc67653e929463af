"""All teams at a glance: budget, standing, what runs, what waits, who is owed. Pure.

Whatever is None could not be read; it is never a zero.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, fields
from fractions import Fraction

from slurm_budget.core import live, owed
from slurm_budget.core.standing import Standing
from slurm_budget.state.jobs import Job, Node
from slurm_budget.state.sweep import SweepPolicy

OTHER = "other"
"""The row of jobs in accounts that no budget names; there is one, however many accounts."""


@dataclass(slots=True)
class Load:
    """Jobs and whole GPUs of one account."""

    funded_jobs: int = 0
    funded_gpus: int = 0
    preemptible_jobs: int = 0
    preemptible_gpus: int = 0
    waiting_funded_jobs: int = 0
    waiting_funded_gpus: int = 0
    waiting_preemptible_jobs: int = 0
    waiting_preemptible_gpus: int = 0
    owed_gpus: int = 0

    def add(self, more: "Load") -> None:
        for each in fields(self):
            setattr(self, each.name, getattr(self, each.name) + getattr(more, each.name))


@dataclass(frozen=True, slots=True)
class Team:
    """One account with all below it. GPU-milliseconds; `left` is what new jobs may promise."""

    account: str
    depth: int
    budget: int | None = None
    left: int | None = None
    charge: int | None = None
    use: int | None = None
    standing: Fraction | float | None = None
    load: Load | None = None


@dataclass(frozen=True, slots=True)
class Gpus:
    """Whole GPUs of the cluster: on nodes that are down or drained, and held by jobs."""

    total: int
    unusable: int
    held: int


def loads(
    jobs: Iterable[Job],
    nodes: Iterable[Node],
    names: Mapping[str, str],
    policy: SweepPolicy,
    now: int,
    owing: Collection[int] | None = None,
) -> dict[str, Load]:
    """By account, without what is below it; `names` maps accounts and aliases to accounts. `owing`
    are the jobs that a sweep would find owed; None: not known, then all that wait for GPUs and have
    patience behind them."""
    out = {name: Load() for name in names.values()}
    queue = list(jobs)
    for job in queue:
        load = out.setdefault(names.get(job.account, OTHER), Load())
        funded = live.class_of(job) == "funded"
        if not job.gpu_total:
            continue
        if job.state in live.HOLDING:
            prefix, gpus, count = "", job.gpu_total, 1
        elif job.pending:
            prefix, gpus, count = "waiting_", job.gpu_total * job.at_once, job.tasks
        else:
            continue
        kind = prefix + ("funded" if funded else "preemptible")
        setattr(load, kind + "_jobs", getattr(load, kind + "_jobs") + count)
        setattr(load, kind + "_gpus", getattr(load, kind + "_gpus") + gpus)
    for demand in owed.owed(queue, nodes, {}, policy, now).demands:
        if owing is not None and demand.job_id not in owing:
            continue
        out[names.get(demand.account, OTHER)].owed_gpus += demand.total
    return out


def rolled_up(direct: Mapping[str, Load], parents: Mapping[str, str | None]) -> dict[str, Load]:
    """The same with all below."""
    out: dict[str, Load] = {}
    for name, load in direct.items():
        at: str | None = name
        for _ in range(len(parents) + 1):
            if at is None:
                break
            out.setdefault(at, Load()).add(load)
            at = parents.get(at)
    return out


def teams(
    parents: Mapping[str, str | None],
    standings: Mapping[str, Standing] | None,
    left: Mapping[str, tuple[int, int]],
    loads_: Mapping[str, Load] | None,
) -> list[Team]:
    """Every account below its parent. `left`: (budget, what is left) of those that have one."""
    all_loads = None if loads_ is None else rolled_up(loads_, parents)
    out: list[Team] = []

    def walk(above: str | None, depth: int) -> None:
        for name in (n for n, parent in parents.items() if parent == above):
            standing = standings.get(name) if standings is not None else None
            budget, rest = left.get(name, (standing.budget if standing else None, None))
            out.append(
                Team(
                    account=name,
                    depth=depth,
                    budget=budget,
                    left=rest,
                    charge=standing.charge if standing else None,
                    use=standing.use if standing else None,
                    standing=standing.standing if standing else None,
                    load=None if all_loads is None else all_loads.get(name, Load()),
                )
            )
            walk(name, depth + 1)

    walk(None, 0)
    if all_loads is not None and OTHER in all_loads and OTHER not in parents:
        out.append(Team(OTHER, 0, load=all_loads[OTHER]))
    return out


def gpus(jobs: Iterable[Job], nodes: Iterable[Node]) -> Gpus:
    """Of the whole cluster."""
    all_nodes = list(nodes)
    return Gpus(
        total=sum(node.gpu_total for node in all_nodes),
        unusable=sum(node.gpu_total for node in all_nodes if not node.usable),
        held=sum(job.gpu_total for job in jobs if job.state in live.HOLDING),
    )
