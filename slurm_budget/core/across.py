"""Budgets that are one for several clusters of a ledger.

An account that `ledger.across` names has the same budget in the tree of each cluster where it
stands, and is charged in each for what ran in all of them, with all below it there. So its balance
is one. Its standing is not: it says who makes way for whom, and GPUs of one cluster are no use to
who waits on another.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from slurm_budget.core.standing import Standing, Sums, standings
from slurm_budget.state.budget import BudgetTree


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """Another cluster of the ledger; its accounting is read up to epoch second `read` (None:
    never)."""

    tree: BudgetTree
    sums: Sums
    read: int | None


def counted(
    accounts: Mapping[str, Standing],
    tree: BudgetTree,
    names: Iterable[str],
    others: Iterable[Elsewhere],
) -> dict[str, Standing]:
    """`accounts`, of which those that `names` has are charged for other clusters too."""
    out = dict(accounts)
    mine = {name: found for name in names if (found := tree.resolve(name)) is not None}
    for other in others if mine else ():
        theirs = standings(other.tree, {}, other.sums, {})
        for name, here in mine.items():
            there = other.tree.resolve(name)
            if there is not None:
                out[here] = out[here]._replace(charge=out[here].charge + theirs[there].charge)
    return out


def behind(others: Iterable[Elsewhere], oldest: int) -> list[str]:
    """Clusters of which newer runs than of epoch second `oldest` may be missing."""
    return [other.tree.cluster for other in others if other.read is None or other.read < oldest]


@dataclass(frozen=True, slots=True)
class Row:
    """An account on one cluster with all below it, or (`cluster` empty) on all of them.
    GPU-milliseconds; None: no budget. `shared`: the budget is one for all clusters."""

    account: str
    cluster: str
    budget: int | None
    charge: int
    use: int
    shared: bool

    @property
    def left(self) -> int | None:
        """None too for a part of a shared budget: what is left of it is left on all clusters."""
        part = self.shared and self.cluster
        return None if part or self.budget is None else self.budget - self.charge


def rows(
    parts: Iterable[tuple[BudgetTree, Mapping[str, int | None], Sums]], names: Iterable[str]
) -> list[Row]:
    """Every account of every tree, in the order of the first that has it; where several have it, a
    row for all follows. Of those that `names` has, the budget is one: the largest of the figures,
    if they differ. Other budgets add up. `parts` are (tree, budgets, sums) of each cluster."""
    one_budget = frozenset(names)
    found: dict[str, list[Row]] = {}
    for tree, budgets, sums in parts:
        for name, it in standings(tree, budgets, sums, {}).items():
            row = Row(name, tree.cluster, it.budget, it.charge, it.use, name in one_budget)
            found.setdefault(name, []).append(row)
    out = []
    for name, each in found.items():
        out += each
        if len(each) > 1:
            given = [row.budget for row in each if row.budget is not None]
            shared = name in one_budget
            budget = (max if shared else sum)(given) if given else None
            charge, use = sum(row.charge for row in each), sum(row.use for row in each)
            out.append(Row(name, "", budget, charge, use, shared))
    return out
