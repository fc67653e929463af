"""The rows of reports, from figures that are worked out elsewhere. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

from slurm_budget.core.standing import Standing, Sums, standings
from slurm_budget.state.budget import BudgetTree


@dataclass(frozen=True, slots=True)
class BudgetRow:
    """One account with all below it, in the window. GPU-milliseconds; None: it has no budget.

    `funded` and `preemptible` are what ran; `charge` is what of it the budget pays for; `left` is
    budget less charge; `standing` is use over budget.
    """

    account: str
    depth: int
    budget: int | None
    funded: int
    preemptible: int
    charge: int
    left: int | None
    standing: Fraction | float | None


def budget_rows(
    tree: BudgetTree,
    budgets: Mapping[str, int | None],
    sums: Sums,
    funded: Sums,
    everything: Sums,
) -> list[BudgetRow]:
    """Every account, each below its parent, in the order of the budget file.

    `sums` weighs preemptible use as the settings say, `funded` with 0 and `everything` with 1.
    """
    weighed = standings(tree, budgets, sums, {})
    paid = standings(tree, budgets, funded, {})
    ran = standings(tree, budgets, everything, {})
    return [
        _row(name, depth, weighed[name], paid[name].use, ran[name].use)
        for name, depth in _walk(tree, None, 0)
    ]


def _row(name: str, depth: int, it: Standing, funded: int, everything: int) -> BudgetRow:
    return BudgetRow(
        account=name,
        depth=depth,
        budget=it.budget,
        funded=funded,
        preemptible=everything - funded,
        charge=it.charge,
        left=it.balance,
        standing=it.standing,
    )


def _walk(tree: BudgetTree, name: str | None, depth: int) -> Iterator[tuple[str, int]]:
    for child in tree.children(name):
        yield child.name, depth
        yield from _walk(tree, child.name, depth + 1)
