"""What other clusters of the ledger charge to budgets that are one for all (core.across)."""

from collections.abc import Mapping

from slurm_budget.core.across import Elsewhere, Row, counted, rows
from slurm_budget.core.budget import account_budgets
from slurm_budget.core.standing import Standing
from slurm_budget.ledger.store import Ledger
from slurm_budget.settings import Settings
from slurm_budget.state.budget import BudgetTree
from slurm_budget.usecases.accounting import sums_now, window_of


def elsewhere(ledger: Ledger, cluster: str, settings: Settings, now: int) -> list[Elsewhere]:
    """All other clusters with budgets; none where no budget is shared, so nothing is read."""
    if not settings.ledger.across:
        return []
    return [
        Elsewhere(
            ledger.budget_tree(name), sums_now(ledger, name, settings, now), ledger.cursor(name)
        )
        for name in ledger.clusters()
        if name != cluster
    ]


def charged(
    accounts: Mapping[str, Standing],
    tree: BudgetTree,
    ledger: Ledger,
    settings: Settings,
    now: int,
) -> dict[str, Standing]:
    """`accounts` of one cluster with what the others charge to the budgets that they share."""
    others = elsewhere(ledger, tree.cluster, settings, now)
    return counted(accounts, tree, settings.ledger.across, others)


def report(ledger: Ledger, settings: Settings, now: int) -> list[Row]:
    """Budgets of all clusters in the window that ends at `now`, each and together."""
    window = window_of(settings)
    trees = [ledger.budget_tree(name) for name in ledger.clusters()]
    return rows(
        (
            (
                tree,
                account_budgets(tree, window.budget_seconds, now),
                sums_now(ledger, tree.cluster, settings, now),
            )
            for tree in trees
        ),
        settings.ledger.across,
    )
