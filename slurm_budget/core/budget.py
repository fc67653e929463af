"""The arithmetic of a budget tree.

A node's budget for a window of `W` seconds is a count of GPU-milliseconds:

    gpus: 16        16 x W x 1000
    gpu_hours: 50   50 x 3600 x 1000
    share: 25       a quarter of the parent's budget
    nothing         the sum of the children that have one; with none of those, no budget at all

No budget is not a budget of 0: jobs of both are preemptible, but the first is reported as a gap.
A budget outside `valid_from`..`valid_until` is as if it were not there.

    >>> from slurm_budget.state.budget import Amount, BudgetNode, BudgetTree
    >>> lab = BudgetNode("lab", amount=Amount("gpus", 8))
    >>> team = BudgetNode("team", parent="lab", amount=Amount("share", 25))
    >>> tree = BudgetTree("c", {"lab": lab, "team": team})
    >>> account_budgets(tree, window=3600, now=0)
    {'lab': 28800000, 'team': 7200000}
"""

from collections.abc import Mapping

from slurm_budget.state.budget import Amount, BudgetNode, BudgetTree, UserBudget
from slurm_budget.text.gputime import MS_PER_GPU_HOUR


def _in_force(item: BudgetNode | UserBudget, now: int) -> bool:
    return (item.valid_from is None or item.valid_from <= now) and (
        item.valid_until is None or now < item.valid_until
    )


def amount_ms(amount: Amount, parent_ms: int | None, window: int) -> int | None:
    """GPU-milliseconds per window; None for a share of a parent that has no budget."""
    if amount.kind == "gpus":
        return amount.value * window * 1000
    if amount.kind == "gpu_hours":
        return amount.value * MS_PER_GPU_HOUR
    return None if parent_ms is None else parent_ms * amount.value // 100


def account_budgets(tree: BudgetTree, window: int, now: int) -> dict[str, int | None]:
    """GPU-milliseconds per window of every account; None where it has no budget."""
    out: dict[str, int | None] = {}

    def visit(node: BudgetNode, parent_ms: int | None) -> None:
        if node.amount is not None and _in_force(node, now):
            out[node.name] = amount_ms(node.amount, parent_ms, window)
        else:
            out[node.name] = None
        for child in by_parent.get(node.name, ()):
            visit(child, out[node.name])
        if out[node.name] is None and node.amount is None:
            below = [out[child.name] for child in by_parent.get(node.name, ())]
            given = [ms for ms in below if ms is not None]
            out[node.name] = sum(given) if given else None

    by_parent: dict[str | None, list[BudgetNode]] = {}
    for node in tree.nodes.values():
        by_parent.setdefault(node.parent, []).append(node)
    for top in by_parent.get(None, ()):
        visit(top, None)
    return {name: out[name] for name in tree.nodes if name in out}


def user_budgets(
    tree: BudgetTree, accounts: Mapping[str, int | None], window: int, now: int
) -> dict[tuple[str, str], int]:
    """GPU-milliseconds per window by (account, user), where the user has a budget of their own."""
    out = {}
    for node in tree.nodes.values():
        for user in node.users:
            if user.amount is None or not _in_force(user, now):
                continue
            ms = amount_ms(user.amount, accounts.get(node.name), window)
            if ms is not None:
                out[node.name, user.name] = ms
    return out
