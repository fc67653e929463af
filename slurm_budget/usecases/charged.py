"""What a window charges to which budget, run by run. A sweep and an answer ask for it, and need
nothing else of each other."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from slurm_budget.core.weights import rate
from slurm_budget.settings import Settings
from slurm_budget.state.budget import BudgetTree
from slurm_budget.usecases.accounting import weights_of

if TYPE_CHECKING:
    from slurm_budget.ledger.store import Ledger


def charged_parts(
    tree: BudgetTree, names: Iterable[str], ledger: "Ledger", settings: Settings, now: int
) -> dict[str, list[tuple[int, int, int]]]:
    """(start, end, rate) of every protected part that a sliding window charges, by account; a rate
    is in thousandths of a GPU. Raises LedgerUnreachable."""
    parts: dict[str, list[tuple[int, int, int]]] = {name: [] for name in names}
    weights, length = weights_of(settings), settings.window.length
    nodes = (node for name in parts for node in tree.subtree(name))
    below = {name for node in nodes for name in (node.name, *node.aliases)}
    for run in ledger.charged_between(tree.cluster, below, now - length, now):
        account = tree.resolve(run.account)
        if account is None:
            continue
        for node in tree.ancestors(account):
            if node.name in parts:
                amount = rate(run.gpus, weights, node.gres)
                parts[node.name].append((run.since, min(run.charged_until, now + length), amount))
    return parts
