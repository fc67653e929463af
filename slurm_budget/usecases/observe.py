"""The first half of a sweep: see everything afresh, or say what could not be seen.

Nothing is decided on half a view: the first read that fails ends the sweep (SlurmUnreachable).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from slurm_budget.core import across, live
from slurm_budget.core.budget import account_budgets, user_budgets
from slurm_budget.core.over import over
from slurm_budget.core.standing import Standing, Sums, standings, user_standings
from slurm_budget.errors import SbudgetError, SlurmUnreachable
from slurm_budget.ledger.store import Ledger
from slurm_budget.ports import JobPort
from slurm_budget.settings import Settings
from slurm_budget.slurm.rows import BadRow
from slurm_budget.state.budget import BudgetTree
from slurm_budget.state.jobs import Job, Node, Place, Queue, Run
from slurm_budget.state.slurm import Preemption
from slurm_budget.state.sweep import SweepPolicy
from slurm_budget.usecases.accounting import Source, catch_up, sums_now, window_of
from slurm_budget.usecases.across import elsewhere
from slurm_budget.usecases.policy import has_topology


@dataclass(frozen=True, slots=True)
class World:
    """Everything that a sweep decides by, as of `now`."""

    cluster: str
    now: int
    config: Mapping[str, str]
    jobs: list[Job]
    nodes: list[Node]
    tree: BudgetTree
    sums: Sums
    accounts: Mapping[str, Standing]
    users: Mapping[tuple[str, str], Standing]
    user_use: Mapping[tuple[str, str], int]
    bad_rows: int
    lost: list[int] = field(default_factory=list)
    preemption: Preemption = field(default_factory=Preemption)
    operators: tuple[int, ...] = ()
    behind: list[str] = field(default_factory=list)
    """Other clusters of a shared budget of which the newest runs may be missing."""


def observe(
    slurm: JobPort,
    ledger: Ledger,
    source: Source | None,
    settings: Settings,
    policy: SweepPolicy,
    now: int,
) -> World:
    """Jobs, nodes, associations and new accounting rows; then the standing of every account.

    Without a `source` nothing is written: the ledger is taken as the last sweep left it.
    """
    config = slurm.config()
    cluster = settings.slurm.cluster or config.get("ClusterName", "")
    if "gres/gpu" not in config.get("AccountingStorageTRES", ""):
        raise SlurmUnreachable(
            "slurmctld does not account GPUs, so every job would seem to cost nothing",
            where="slurm.conf",
            mend="set AccountingStorageTRES=gres/gpu and restart slurmctld",
        )
    queue = slurm.queue()
    jobs = [live.with_suspension(job, now) for job in queue.jobs]
    nodes = _placed(slurm, config)
    preemption = slurm.preemption(config)
    known = slurm.accounts(cluster)
    operators = slurm.operators()
    tree = ledger.budget_tree(cluster)
    if not tree.nodes:
        raise SbudgetError(
            f"the ledger has no budgets for cluster {cluster}",
            where="ledger",
            mend="run `sbudget budget load FILE`, then `sbudget sync`",
        )
    if len(known) < 2:
        raise SlurmUnreachable(
            f"slurmdbd shows no account of cluster {cluster} but root",
            where="sacctmgr show assoc",
            mend="run `sbudget sync`; if there are accounts, check this user's permission",
        )
    window = window_of(settings)
    bad_rows, lost = 0, list[Run]()
    if source is not None:
        read = source
        taken = catch_up(
            ledger,
            cluster,
            lambda since, until: _with_live(read(since, until), jobs, policy),
            settings.slurm.source,
            now,
            first=now - window.reach,
            overlap=settings.sweep.overlap,
        )
        bad_rows = len(taken.bad)
        # an empty queue may be a missing permission, and no reason to end everything
        if queue.jobs or queue.ended:
            lost = _end_what_is_over(ledger, cluster, queue, now)
    sums = sums_now(ledger, cluster, settings, now)
    budgets = account_budgets(tree, window.budget_seconds, now)
    own = user_budgets(tree, budgets, window.budget_seconds, now)
    reserved = live.reserved_by_runs(jobs, policy, now)
    others = elsewhere(ledger, cluster, settings, now)
    accounts = standings(tree, budgets, sums, reserved)
    return World(
        cluster=cluster,
        now=now,
        config=config,
        jobs=jobs,
        nodes=nodes,
        tree=tree,
        sums=sums,
        accounts=across.counted(accounts, tree, settings.ledger.across, others),
        users=user_standings(tree, own, sums, reserved),
        user_use=_user_use(tree, sums),
        bad_rows=bad_rows,
        lost=[run.job_id for run in lost],
        preemption=preemption,
        operators=operators,
        behind=across.behind(others, now - settings.snapshot.max_age),
    )


def _end_what_is_over(ledger: Ledger, cluster: str, queue: Queue, now: int) -> list[Run]:
    """End the runs in the ledger that are over by what the queue says; those that nobody knows."""
    seen = ledger.last_sweeps(1, cluster)
    waiting = ledger.unfinished_runs(cluster)
    told, lost = over(waiting, queue, now, seen[0].at if seen else None)
    for runs, source in ((told, "squeue"), (lost, "lost")):
        if runs:
            ledger.record_runs(runs, source=source, now=now)
    return lost


def _placed(slurm: JobPort, config: Mapping[str, str]) -> list[Node]:
    """All nodes, with their places where there is a topology. From 25.05 on it may come from a file
    that slurm.conf does not tell of; then the nodes do. A node that no switch reaches is alone."""
    nodes = slurm.nodes()
    if not has_topology(config) and not any(node.topology for node in nodes):
        return nodes
    places = slurm.places()
    tree = any(place.island for place in places.values())
    return [
        replace(node, place=places.get(node.name) or Place(island=node.name if tree else ""))
        for node in nodes
    ]


def _with_live(
    found: Iterator[Run | BadRow], jobs: list[Job], policy: SweepPolicy
) -> Iterator[Run | BadRow]:
    """Complete the rows of running jobs from the queue.

    The accounting forgets AdminComment at a requeue until the new run ends, slurmctld does not. A
    row that runs for ever but is in no queue (a runaway) is passed over: squeue decides what lives.
    """
    running = {(job.id, job.start): job for job in jobs if job.start is not None}
    for row in found:
        if isinstance(row, BadRow) or row.end is not None:
            yield row
            continue
        job = running.get((row.job_id, row.start))
        if job is not None:
            seconds = live.min_runtime(job, policy) if live.class_of(job) == "funded" else None
            yield replace(row, class_=live.class_of(job), min_runtime=seconds)


def _user_use(tree: BudgetTree, sums: Sums) -> dict[tuple[str, str], int]:
    out: dict[tuple[str, str], int] = {}
    for (account, user, _), amount in sums.use.items():
        key = (tree.resolve(account) or account, user)
        out[key] = out.get(key, 0) + amount
    return out
