"""Gathers what `sbudget top` and `sbudget metrics` show."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from slurm_budget.core import overview
from slurm_budget.core.overview import Gpus, Load, Team
from slurm_budget.errors import SbudgetError
from slurm_budget.ledger.sweeping import Sweep, Totals
from slurm_budget.settings import Settings
from slurm_budget.usecases.look import OpenLedger, Sight, look
from slurm_budget.usecases.policy import sweep_policy

if TYPE_CHECKING:
    from slurm_budget.core.standing import Standing
    from slurm_budget.ledger.store import Ledger
    from slurm_budget.slurm.port import CommandSlurm

SENTENCES = 8


@dataclass(frozen=True, slots=True)
class Overview:
    """Everything at `now`. `loads` are by account without what is below it; `teams` are with it.

    None: not read; `failed` says why, by source (slurm, ledger, snapshot).
    """

    cluster: str
    now: int
    teams: list[Team]
    loads: dict[str, Load] | None
    gpus: Gpus | None
    sweeps: list[Sweep] | None
    totals: Totals | None
    observed_at: int | None
    paused: str
    failed: dict[str, SbudgetError] = field(default_factory=dict)


def overview_of(
    slurm: "CommandSlurm",
    open_ledger: OpenLedger,
    settings: Settings,
    name: Callable[[], str],
    now: int,
) -> Overview:
    """Never raises for a source that fails: it is in `failed`. `name` tells the cluster's name."""
    sight = look(slurm, open_ledger, settings, now, deeply=True)
    cluster = sight.attempt("slurm", name) or (sight.facts.cluster if sight.facts else "")
    if not cluster:
        sight.ledger = None  # whose figures it should give is not known
    ledger = sight.ledger
    sweeps = totals = None
    if ledger is not None:
        sweeps = sight.attempt("ledger", lambda: ledger.last_sweeps(SENTENCES, cluster))
        totals = sight.attempt("ledger", lambda: ledger.totals(cluster))
    parents, aliases, standings, left = _budgets(sight, settings, cluster)
    loads = gpus = None
    if sight.jobs is not None and sight.nodes is not None:
        names = {name: name for name in parents} | aliases
        owing = sight.decision.owed if sight.decision is not None else None
        policy = sweep_policy(settings)
        loads = overview.loads(sight.jobs, sight.nodes, names, policy, now, owing)
        gpus = overview.gpus(sight.jobs, sight.nodes)
    return Overview(
        cluster=cluster,
        now=now,
        teams=overview.teams(parents, standings, left, loads),
        loads=loads,
        gpus=gpus,
        sweeps=sweeps,
        totals=totals,
        observed_at=sight.facts.observed_at if sight.facts else None,
        paused=sight.paused,
        failed=sight.failed,
    )


Budgets = tuple[
    dict[str, str | None], dict[str, str], "dict[str, Standing] | None", dict[str, tuple[int, int]]
]


def _budgets(sight: Sight, settings: Settings, cluster: str) -> Budgets:
    """Parents, aliases, standings, and what is left: of the world if it was seen, else of the
    ledger alone, else of the snapshot."""
    left = {}
    if sight.decision is not None:
        facts = sight.decision.verdicts.accounts
        left = {name: (one.budget, one.balance) for name, one in facts.items()}
    elif sight.facts is not None:
        accounts = sight.facts.accounts
        left = {name: (one.budget, one.balance) for name, one in accounts.items() if one.qos}
    if sight.ledger is not None:
        ledger = sight.ledger
        found = sight.attempt("ledger", lambda: _from_ledger(sight, ledger, settings, cluster))
        if found is not None:
            return *found, left
    if sight.facts is None:
        return {}, {}, None, left
    parents = {name: one.parent for name, one in sight.facts.accounts.items()}
    return parents, dict(sight.facts.aliases), None, left


def _from_ledger(
    sight: Sight, ledger: "Ledger", settings: Settings, cluster: str
) -> "tuple[dict[str, str | None], dict[str, str], dict[str, Standing]]":
    from slurm_budget.core.budget import account_budgets
    from slurm_budget.core.standing import standings
    from slurm_budget.usecases.accounting import sums_now, window_of
    from slurm_budget.usecases.across import charged

    if sight.world is not None:
        tree, found = sight.world.tree, dict(sight.world.accounts)
    else:
        tree = ledger.budget_tree(cluster)
        budgets = account_budgets(tree, window_of(settings).budget_seconds, sight.now)
        found = standings(tree, budgets, sums_now(ledger, cluster, settings, sight.now), {})
        found = charged(found, tree, ledger, settings, sight.now)
    parents = {name: node.parent for name, node in tree.nodes.items()}
    aliases = {alias: node.name for node in tree.nodes.values() for alias in node.aliases}
    return parents, aliases, found
