"""Where each account stands: budget, charge, reserved, balance, use, and the ratio that decides
who is owed.

    balance   budget - charge - reserved, of an account with all below it
    standing  use / budget: 1/2 has had half of what it is owed, 2 twice as much

`reserved` (what protected runs and funded jobs that wait have still to come) is worked out by the
caller, which knows the queue; here it is added up like the rest.
"""

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import inf
from typing import NamedTuple, TypeVar

from slurm_budget.core.weights import counted_type
from slurm_budget.state.budget import ALL_GPUS, BudgetNode, BudgetTree

K = TypeVar("K", bound=Hashable)
Key = tuple[str, str, str]
"""(account, user, GPU type); the type of an untyped GPU is the empty string."""


@dataclass(frozen=True, slots=True)
class Sums:
    """Weighted GPU-milliseconds in the window, by account (as the job named it), user and type."""

    charge: Mapping[Key, int] = field(default_factory=dict)
    use: Mapping[Key, int] = field(default_factory=dict)


class Standing(NamedTuple):
    """One account with all below it, or one user in an account. Weighted GPU-milliseconds."""

    name: str
    budget: int | None
    charge: int
    reserved: int
    use: int

    @property
    def balance(self) -> int | None:
        """What may still be promised; None without a budget, which is not a balance of 0."""
        return None if self.budget is None else self.budget - self.charge - self.reserved

    @property
    def standing(self) -> Fraction | float | None:
        """use / budget: None without a budget, infinite for use of a budget of 0."""
        return ratio(self.use, self.budget)


def ratio(use: int, budget: int | None) -> Fraction | float | None:
    """use / budget as a Fraction; infinite when some was used of nothing; None of no budget."""
    if budget is None:
        return None
    if budget <= 0:
        return inf if use > 0 else Fraction(0)
    return Fraction(use, budget)


class _Accounts:
    """The shape of the tree, worked out once: a walk per question would be slow for 1,000
    accounts."""

    def __init__(self, tree: BudgetTree) -> None:
        self.aliases = {alias: node.name for node in tree.nodes.values() for alias in node.aliases}
        self.only = {name: counted_type(node.gres) for name, node in tree.nodes.items()}
        self.path: dict[str, tuple[str, ...]] = {}
        for name, node in tree.nodes.items():
            above = self.path.get(node.parent) if node.parent is not None else ()
            if above is None:
                above = tuple(up.name for up in tree.ancestors(name))[1:]
            self.path[name] = (name, *above)

    def holders(self, account: str, kind: str) -> Iterator[str]:
        """The accounts whose budget counts a GPU of this type used here: it and those above it."""
        for name in self.path.get(self.aliases.get(account, account), ()):
            if self.only[name] is None or self.only[name] == kind:
                yield name


def standings(
    tree: BudgetTree,
    budgets: Mapping[str, int | None],
    sums: Sums,
    reserved: Mapping[Key, int],
) -> dict[str, Standing]:
    """Every account of the tree with all below it; `budgets` from core.budget.account_budgets.

    Accounts that the tree does not know are in no figure (`unknown_accounts` lists them). A budget
    of one type (`gres/gpu:h100`) counts that type alone.
    """
    accounts = _Accounts(tree)
    direct: dict[tuple[str, str], list[int]] = {}
    for (account, _, kind), *amounts in _figures(sums, reserved):
        _add(direct, (account, kind), amounts)
    totals: dict[str, list[int]] = {}
    for (account, kind), amounts in direct.items():
        for name in accounts.holders(account, kind):
            _add(totals, name, amounts)
    return {
        name: Standing(name, budgets.get(name), *totals.get(name, _NOTHING)) for name in tree.nodes
    }


def user_standings(
    tree: BudgetTree,
    budgets: Mapping[tuple[str, str], int],
    sums: Sums,
    reserved: Mapping[Key, int],
) -> dict[tuple[str, str], Standing]:
    """The same for (account, user) with a budget of their own (core.budget.user_budgets)."""
    accounts = _Accounts(tree)
    totals: dict[tuple[str, str], list[int]] = {}
    for (account, user, kind), *amounts in _figures(sums, reserved):
        name = accounts.aliases.get(account, account)
        only = accounts.only.get(name)
        if only is None or only == kind:
            _add(totals, (name, user), amounts)
    return {
        key: Standing(key[1], budget, *totals.get(key, _NOTHING)) for key, budget in budgets.items()
    }


_NOTHING = (0, 0, 0)


def _figures(sums: Sums, reserved: Mapping[Key, int]) -> Iterator[tuple[Key, int, int, int]]:
    """(key, charge, reserved, use) of every key that is in any of the three."""
    charge, use = sums.charge, sums.use
    for key, used in use.items():
        yield key, charge.get(key, 0), reserved.get(key, 0), used
    for key in charge.keys() - use.keys():
        yield key, charge[key], reserved.get(key, 0), 0
    for key in reserved.keys() - use.keys() - charge.keys():
        yield key, 0, reserved[key], 0


def _add(totals: dict[K, list[int]], key: K, amounts: list[int]) -> None:
    have = totals.get(key)
    if have is None:
        totals[key] = [*amounts]
        return
    have[0] += amounts[0]
    have[1] += amounts[1]
    have[2] += amounts[2]


def unknown_accounts(tree: BudgetTree, sums: Sums) -> dict[str, int]:
    """Use of accounts that are in no budget; the empty name is a job without account."""
    accounts = _Accounts(tree)
    out: dict[str, int] = {}
    for (account, _, _), amount in sums.use.items():
        if accounts.aliases.get(account, account) not in accounts.path:
            out[account] = out.get(account, 0) + amount
    return out


def worse(
    a: str,
    b: str,
    tree: BudgetTree,
    standings: Mapping[str, Standing],
    margin: Fraction | float,
) -> bool:
    """Whether `a` has had so much more of its share than `b` that it must make way for it.

    The two are compared where they are siblings: below their nearest common ancestor, for it is
    there that one of them got what the other was owed. `a` must be further over its share than `b`
    by more than `margin` (0.05: five per cent of its budget). An account without a budget is worse
    than any with one. Where one lies above the other, its own jobs are compared by what it keeps
    for itself: budget and use less those of its children.
    """
    up_a = [node.name for node in tree.ancestors(a)]
    up_b = [node.name for node in tree.ancestors(b)]
    while up_a and up_b and up_a[-1] == up_b[-1]:
        above = up_a[-1]
        up_a.pop()
        up_b.pop()
    if not up_a and not up_b:
        return False
    one = standings[up_a[-1]].standing if up_a else _own(tree.nodes[above], tree, standings)
    other = standings[up_b[-1]].standing if up_b else _own(tree.nodes[above], tree, standings)
    if other is None:
        return False
    if one is None:
        return True
    if one == inf or other == inf:
        return one == inf and other != inf
    return one > other + Fraction(margin).limit_denominator(10**9)


def _own(
    node: BudgetNode, tree: BudgetTree, standings: Mapping[str, Standing]
) -> Fraction | float | None:
    """Standing of what an account keeps for its own jobs."""
    whole = standings[node.name]
    if whole.budget is None:
        return None
    below = [
        standings[child.name]
        for child in tree.children(node.name)
        if node.gres in (child.gres, ALL_GPUS)
    ]
    used = whole.use - sum(child.use for child in below)
    return ratio(max(used, 0), whole.budget - sum(child.budget or 0 for child in below))
