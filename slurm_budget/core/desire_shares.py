"""Fairshare of accounts and users, and why; see core.fairshare for the arithmetic.

Below one account stand its sub-accounts and its users, and all of them are siblings to Slurm. Those
with a budget are numbered by it. The users without one share what the others leave of the
account's own budget, evenly. Where nobody below an account has a budget, nothing is written there:
new users get Slurm's default of 1, which is even.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from slurm_budget.core import fairshare
from slurm_budget.state.budget import BudgetNode, BudgetTree
from slurm_budget.state.slurm import QosPolicy, SlurmState
from slurm_budget.text.gputime import gpu_hours

Settled = tuple[str, str]
"""A fairshare as text, and why."""


@dataclass(slots=True)
class Shares:
    """Fairshare by account, and by (account, user in lower case); absent where it is not ours."""

    accounts: dict[str, Settled] = field(default_factory=dict)
    users: dict[tuple[str, str], Settled] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def shares(
    tree: BudgetTree,
    state: SlurmState,
    budgets: Mapping[str, int | None],
    user_budgets: Mapping[tuple[str, str], int],
    window: int,
    policy: QosPolicy,
) -> Shares:
    """Number every group of siblings. Budgets in GPU-milliseconds per `window` seconds."""
    out = Shares()
    below: dict[str | None, list[BudgetNode]] = {}
    for node in tree.nodes.values():
        below.setdefault(node.parent, []).append(node)
    members: dict[str, dict[str, str]] = {}
    for (account, user, _), row in state.associations.items():
        if user and row.fairshare != "parent":
            members.setdefault(account, {})[user.lower()] = user
    own: dict[str, dict[str, int]] = {}
    for (account, user), ms in user_budgets.items():
        own.setdefault(account, {})[user.lower()] = ms
    for parent in [None, *tree.nodes]:
        accounts = below.get(parent, [])
        group: dict[tuple[str, str], int] = {}
        for node in accounts:
            given = budgets[node.name]
            if given is not None:
                group["account", node.name] = given
        users = own.get(parent, {}) if parent is not None else {}
        group |= {("user", user): ms for user, ms in users.items()}
        _without(out, accounts, budgets, bool(group), state, policy)
        if not group:
            continue
        total = sum(group.values())
        for (kind, name), number in fairshare.numbers(group, window).items():
            ms = group[kind, name]
            settled = (str(number), _why(ms, total, len(group), parent))
            if kind == "account":
                out.accounts[name] = settled
            elif parent is not None:
                out.users[parent, name] = settled
        if parent is not None:
            named = {user.name.lower() for user in tree.nodes[parent].users}
            # Rows on `parent` take no part: they weigh what the account weighs.
            others = sorted((named | set(members.get(parent, ()))) - set(users))
            number = fairshare.rest_each(budgets[parent], group, len(others), window)
            rest = max(0, (budgets[parent] or 0) - total)
            for user in others:
                out.users[parent, user] = (
                    str(number),
                    f"no budget of their own: an even part of the {gpu_hours(rest)} GPU-hours that"
                    f" {parent} leaves over, among {len(others)}",
                )
    return out


def _why(ms: int, total: int, siblings: int, parent: str | None) -> str:
    where = f"below {parent}" if parent is not None else "at the top"
    part = 100 * ms / total if total else 0
    if siblings == 1:
        return f"{gpu_hours(ms)} GPU-hours a window, the only budget {where}"
    of = f"{part:.4g}% of the {gpu_hours(total)} that the {siblings} budgets {where} add up to"
    return f"{gpu_hours(ms)} GPU-hours a window, {of}"


def _without(
    out: Shares,
    accounts: list[BudgetNode],
    budgets: Mapping[str, int | None],
    beside_budgets: bool,
    state: SlurmState,
    policy: QosPolicy,
) -> None:
    """Accounts without a budget: 1 where they had one before, else left, and said so."""
    for node in accounts:
        if budgets[node.name] is not None:
            continue
        if policy.funded(node.name) in state.qos:
            out.accounts[node.name] = (
                str(fairshare.NO_BUDGET),
                "it has no budget now: the least that takes part",
            )
            continue
        row = state.associations.get((node.name, "", ""))
        if beside_budgets and row is not None and row.fairshare not in (1, "parent"):
            out.notes.append(
                f"{node.name}: no budget, so its fairshare {row.fairshare} is left as it is, beside"
                " siblings with budgets"
            )
