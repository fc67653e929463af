"""A budget tree from a cluster that exists, whose plan changes nothing that people have set. Pure.

It has the accounts, their parents and users, and no amounts: Slurm's fairshare and limits are not
budgets, and read back as such they would feed on themselves. As long as an account has no amount,
sync only adds to it (see core.desire). What the fairshare of today would amount to is listed, for
managers to decide on.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from slurm_budget.core import budget_rules
from slurm_budget.core.changeset import canonical
from slurm_budget.state.budget import BudgetNode, BudgetTree, UserBudget
from slurm_budget.state.slurm import ROOT, AccountInfo, Association, SlurmState
from slurm_budget.text.printable import printable


@dataclass(frozen=True, slots=True)
class Adoption:
    """The tree, and sentences: what sync will own of it, what it leaves alone, what could not be
    taken over, and what the fairshare of today would be as GPUs."""

    tree: BudgetTree
    owns: tuple[str, ...]
    leaves: tuple[str, ...]
    skipped: tuple[str, ...]
    suggestions: tuple[str, ...]


OWNS = (
    "the QOS `preemptible` and every `funded-<account>`: priority, preemption, times, GPU limits",
    "in the list of QOS of an account of this file: those QOS, added to what is there",
    "DefaultQOS of such an account where it has none",
    "of an account with an amount, from then on: its fairshare, DefaultQOS and parent",
    "of its users who have an amount, and of those beside them: the fairshare",
)


def adopt(state: SlurmState, info: Mapping[str, AccountInfo], gpus: int) -> Adoption:
    """Take over what `state` holds; `gpus` is how many the cluster has, for the suggestions."""
    accounts = {a: row for (a, user, _), row in state.associations.items() if not user}
    users: dict[str, list[str]] = {}
    for account, user, _ in sorted(state.associations):
        if user and user not in users.setdefault(account, []):
            users[account].append(user)
    nodes: dict[str, BudgetNode] = {}
    skipped: list[str] = []
    for name in _top_down(accounts):
        row = accounts[name]
        if row.parent != ROOT and row.parent not in nodes:
            skipped.append(f"account {name}: the account above it was not taken over")
            continue
        told = info.get(name, AccountInfo())
        node = BudgetNode(
            name,
            None if row.parent == ROOT else row.parent,
            users=tuple(UserBudget(user) for user in users.get(name, ())),
            managers=told.coordinators,
            description=""
            if told.description in (name, "Account Name")
            else printable(told.description),
        )
        # A name that budgets refuse is left out, and what Slurm has under it stays as it is.
        alone = BudgetTree(state.cluster, {name: replace(node, parent=None)})
        faults = budget_rules.faults(alone, 1, 0)
        if faults:
            skipped += [f"account {name}: {fault.what}" for _, fault in faults]
            continue
        nodes[name] = node
    tree = canonical(BudgetTree(state.cluster, nodes))
    return Adoption(
        tree, OWNS, tuple(_leaves(accounts, state)), tuple(skipped), tuple(_suggest(accounts, gpus))
    )


def _top_down(accounts: Mapping[str, Association]) -> list[str]:
    below: dict[str, list[str]] = {}
    for name, row in sorted(accounts.items()):
        if name != ROOT:
            below.setdefault(row.parent, []).append(name)
    out: list[str] = []
    stack = list(reversed(below.get(ROOT, [])))
    while stack:
        name = stack.pop()
        out.append(name)
        stack += reversed(below.get(name, []))
    return out


def _leaves(accounts: Mapping[str, Association], state: SlurmState) -> list[str]:
    rows = state.associations.values()
    counts = (
        ("accounts with a fairshare of their own", sum(
            row.fairshare != 1 for name, row in accounts.items() if name != ROOT)),
        ("users with a fairshare of their own, `parent` among them", sum(
            bool(row.user) and row.fairshare != 1 for row in rows)),
        ("rows with a GrpTRES or MaxTRES limit", sum(
            bool(row.grp_tres or row.max_tres) for row in rows)),
        ("rows with a list of QOS of their own, to which ours are added", sum(
            bool(row.own_qos) for row in rows)),
        ("rows with a DefaultQOS of their own", sum(bool(row.own_default_qos) for row in rows)),
        ("rows for one partition", sum(bool(row.partition) for row in rows)),
        ("QOS of the site", len(state.qos)),
    )  # fmt: skip
    return [f"{count} {what}" for what, count in counts if count]


def _suggest(accounts: Mapping[str, Association], gpus: int) -> list[str]:
    """GPUs that today's fairshare stands for, down the tree; `parent` takes no part."""
    part: dict[str, Fraction] = {ROOT: Fraction(1)}
    sums: dict[str, int] = {}
    for name, row in accounts.items():
        if name != ROOT and row.fairshare != "parent":
            sums[row.parent] = sums.get(row.parent, 0) + row.fairshare
    out = []
    for name in _top_down(accounts):
        row = accounts[name]
        if row.fairshare == "parent" or not sums.get(row.parent):
            continue
        share = Fraction(row.fairshare, sums[row.parent])
        part[name] = part.get(row.parent, Fraction(0)) * share
        out.append(
            f"{name}: fairshare {row.fairshare} is {float(100 * share):.3g}% of its siblings',"
            f" {float(part[name] * gpus):.3g} of {gpus} GPUs"
        )
    return out
