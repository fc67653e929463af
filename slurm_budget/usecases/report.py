"""Reports from the ledger. Slurm is not asked, so they are quick and work when it is down."""

from slurm_budget.core.budget import account_budgets
from slurm_budget.core.report import BudgetRow, budget_rows
from slurm_budget.ledger.store import Ledger
from slurm_budget.settings import Settings
from slurm_budget.usecases.accounting import weights_of, window_of


def budgets(ledger: Ledger, cluster: str, settings: Settings, now: int) -> list[BudgetRow]:
    """Budget, use and charge of every account in the window that ends at `now`."""
    window = window_of(settings)
    tree = ledger.budget_tree(cluster)
    whole = settings.window.charge == "run"
    weights = weights_of(settings)
    factors = (round(settings.qos.usage_factor * 1000), 0, 1000)
    sums = [ledger.sums(cluster, window, now, weights, f, whole_run=whole) for f in factors]
    return budget_rows(tree, account_budgets(tree, window.budget_seconds, now), *sums)
