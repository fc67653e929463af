"""The rows of the reports on budgets, users and usage, from figures worked out elsewhere. Pure.

GPU-milliseconds everywhere; None where an account or a user has no budget, which is not 0.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

from slurm_budget.core.standing import Key, Standing, Sums, ratio, standings
from slurm_budget.core.weights import counted_type, rates
from slurm_budget.state.budget import BudgetTree
from slurm_budget.state.report import Used


@dataclass(frozen=True, slots=True)
class BudgetRow:
    """One account with all below it, or one user's own jobs in an account (`user` not empty).

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
    user: str = ""


@dataclass(frozen=True, slots=True)
class UsageRow:
    """GPU-time of an account with all below it, or of one user in an account, not weighted."""

    cluster: str
    account: str
    depth: int
    user: str
    used: int
    funded: int

    @property
    def preemptible(self) -> int:
        return self.used - self.funded


@dataclass(frozen=True, slots=True)
class ThreeSums:
    """The same runs three times: `weighed` counts preemptible use as the settings say, `funded`
    with 0, `everything` with 1."""

    weighed: Sums
    funded: Sums
    everything: Sums


def walk(tree: BudgetTree) -> Iterator[tuple[str, int]]:
    """(account, depth): every account, each below its parent, in the order of the budget file."""
    below: dict[str | None, list[str]] = {}
    for node in tree.nodes.values():
        below.setdefault(node.parent, []).append(node.name)
    waiting = [(name, 0) for name in reversed(below.get(None, []))]
    while waiting:
        name, depth = waiting.pop()
        yield name, depth
        waiting += [(kid, depth + 1) for kid in reversed(below.get(name, []))]


def budget_rows(
    tree: BudgetTree, budgets: Mapping[str, int | None], sums: ThreeSums
) -> list[BudgetRow]:
    """Every account, in the order of `walk`."""
    weighed = standings(tree, budgets, sums.weighed, {})
    paid = standings(tree, budgets, sums.funded, {})
    ran = standings(tree, budgets, sums.everything, {})
    return [
        _row(name, depth, weighed[name], paid[name].use, ran[name].use)
        for name, depth in walk(tree)
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


def user_rows(
    tree: BudgetTree, budgets: Mapping[tuple[str, str], int], sums: ThreeSums
) -> list[BudgetRow]:
    """Every user of an account who has a budget or has used something; `budgets` by both names."""
    totals: dict[tuple[str, str], list[int]] = {key: [0] * 4 for key in budgets}
    figures = (sums.weighed.charge, sums.weighed.use, sums.funded.use, sums.everything.use)
    for place, figure in enumerate(figures):
        for account, user, amount in _counted(tree, figure):
            totals.setdefault((account, user), [0] * 4)[place] += amount
    by_account: dict[str, list[str]] = {}
    for account, user in sorted(totals):
        by_account.setdefault(account, []).append(user)
    out = []
    for name, depth in walk(tree):
        for user in by_account.get(name, ()):
            charge, use, funded, everything = totals[name, user]
            budget = budgets.get((name, user))
            left = None if budget is None else budget - charge
            standing = ratio(use, budget)
            free = everything - funded
            row = BudgetRow(name, depth, budget, funded, free, charge, left, standing, user)
            if budget is not None or everything:
                out.append(row)
    return out


def _counted(tree: BudgetTree, figure: Mapping[Key, int]) -> Iterator[tuple[str, str, int]]:
    """(account, user, amount) of what the account's budget counts: all GPUs, or one type."""
    only = {name: counted_type(node.gres) for name, node in tree.nodes.items()}
    resolved: dict[str, str | None] = {}
    for (account, user, kind), amount in figure.items():
        if account not in resolved:
            resolved[account] = tree.resolve(account)
        name = resolved[account]
        if name is not None and only[name] in (None, kind):
            yield name, user, amount


def sums_of(
    used: Iterable[Used], weights: Mapping[str, int], usage_factor: int, *, whole_run: bool
) -> ThreeSums:
    """Sums of a period; `weights` and `usage_factor` in thousandths."""
    charge: dict[Key, int] = {}
    funded: dict[Key, int] = {}
    unpaid: dict[Key, int] = {}
    for one in used:
        for kind, rate in rates(one.gpus, weights).items():
            key = (one.account, one.user, kind)
            ran = funded if one.funded else unpaid
            ran[key] = ran.get(key, 0) + rate * one.seconds
            if one.funded:
                paid = one.seconds if whole_run else one.charged
                charge[key] = charge.get(key, 0) + rate * paid
    keys = funded.keys() | unpaid.keys()

    def use(factor: int) -> Sums:
        whole = {k: funded.get(k, 0) + unpaid.get(k, 0) * factor // 1000 for k in keys}
        return Sums(charge, whole)

    return ThreeSums(use(usage_factor), use(0), use(1000))


def usage_rows(cluster: str, tree: BudgetTree, used: Iterable[Used]) -> list[UsageRow]:
    """Accounts that used something, each with its users below it, as sreport lists them.

    Accounts that no budget names come last.
    """
    own: dict[str, dict[str, list[int]]] = {}
    totals: dict[str, list[int]] = {}
    for one in used:
        ms = sum(one.gpus.values()) * 1000 * one.seconds
        funded = ms if one.funded else 0
        known = tree.resolve(one.account)
        account = one.account if known is None else known
        above = [account] if known is None else [node.name for node in tree.ancestors(known)]
        for row in (
            own.setdefault(account, {}).setdefault(one.user, [0, 0]),
            *(totals.setdefault(name, [0, 0]) for name in above),
        ):
            row[0] += ms
            row[1] += funded
    order = [*walk(tree), *((name, 0) for name in sorted(own.keys() - tree.nodes.keys()))]
    out = []
    for name, depth in order:
        if totals.get(name, [0])[0]:
            out.append(UsageRow(cluster, name, depth, "", *totals[name]))
            out += [
                UsageRow(cluster, name, depth + 1, user, *figures)
                for user, figures in sorted(own.get(name, {}).items())
                if figures[0]
            ]
    return out
