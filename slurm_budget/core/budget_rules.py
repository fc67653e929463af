"""The rules that a budget tree must keep; every broken one is reported, not just the first."""

import re

from slurm_budget.core.budget import account_budgets, user_budgets
from slurm_budget.errors import BadInput
from slurm_budget.state.budget import Amount, BudgetNode, BudgetTree
from slurm_budget.text.gputime import gpu_hours
from slurm_budget.text.printable import printable
from slurm_budget.text.spoken import spoken

SLURM_NAME = re.compile(r"[a-z0-9_][a-z0-9_.@-]*")
USER_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@-]*\$?")
CLUSTER_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
RESERVED = frozenset({"root", "parent", "none", "all"})
GRES = re.compile(r"gres/gpu(:[A-Za-z0-9_][A-Za-z0-9_.+-]*)?")
LONGEST_NAME = 64
MOST = 10**9
"""The largest figure of a budget; more is a slip of the hand, and would not fit the ledger."""


def faults(tree: BudgetTree, window: int, now: int) -> list[tuple[str, BadInput]]:
    """Every rule that the tree breaks, as (account, error); an empty list is a good tree."""
    found: list[tuple[str, BadInput]] = []
    if not CLUSTER_NAME.fullmatch(tree.cluster) or len(tree.cluster) > LONGEST_NAME:
        what = f"cluster name {tree.cluster!r} is none that Slurm takes"
        found.append(("", BadInput(what, mend="write it as in slurm.conf's ClusterName")))
    owner: dict[str, str] = {}
    for node in tree.nodes.values():
        found += [(node.name, fault) for fault in _name_faults(node, owner)]
        found += [(node.name, fault) for fault in _amount_faults(node, tree)]
    cyclic = _cycles(tree)
    found += [
        (
            name,
            BadInput(
                f"account {name} is its own ancestor: {' -> '.join(path)}",
                mend="give one of them another parent",
            ),
        )
        for name, path in cyclic.items()
    ]
    if not found:
        found += _sum_faults(tree, window, now)
    return found


def _name_faults(node: BudgetNode, owner: dict[str, str]) -> list[BadInput]:
    out = []
    for name in (node.name, *node.aliases):
        if not SLURM_NAME.fullmatch(name) or len(name) > LONGEST_NAME:
            out.append(
                BadInput(
                    f"account name {name!r} is one that Slurm refuses or folds",
                    mend=f"use lower-case letters, digits and _-.@; at most {LONGEST_NAME} of them",
                )
            )
        elif name in RESERVED:
            out.append(
                BadInput(f"account name {name!r} belongs to Slurm", mend="choose another name")
            )
        elif name in owner:
            out.append(
                BadInput(
                    f"the name {name!r} is used by account {owner[name]} already",
                    mend="rename one of them; Slurm folds names to lower case",
                )
            )
        owner.setdefault(name, node.name)
    seen: set[str] = set()
    for user in node.users:
        if not USER_NAME.fullmatch(user.name) or len(user.name) > LONGEST_NAME:
            out.append(
                BadInput(
                    f"user name {user.name!r} in account {node.name} is no Unix user name",
                    mend="write it as in `id -un`",
                )
            )
        if user.name.lower() in seen:
            out.append(
                BadInput(
                    f"user {user.name} stands twice in account {node.name}",
                    mend="keep one of the two lines",
                )
            )
        seen.add(user.name.lower())
    return out


def _amount_faults(node: BudgetNode, tree: BudgetTree) -> list[BadInput]:
    out = []
    if node.parent is not None and node.parent not in tree.nodes:
        out.append(
            BadInput(
                f"account {node.name} names the parent {node.parent!r}, which is not there",
                mend="add that account or correct the name",
            )
        )
    holders: list[tuple[str, Amount | None]] = [(f"account {node.name}", node.amount)]
    holders += [(f"user {user.name} in account {node.name}", user.amount) for user in node.users]
    for who, amount in holders:
        if amount is None:
            continue
        if amount.value < 0:
            out.append(
                BadInput(
                    f"{who} has {amount.kind}: {amount.value}, below zero",
                    mend="use 0 or a positive whole number",
                )
            )
        if amount.value > MOST:
            out.append(
                BadInput(
                    f"{who} has {amount.kind}: {amount.value}, more than any cluster has",
                    mend=f"use at most {MOST:,}",
                )
            )
        if amount.kind == "share" and amount.value > 100:
            out.append(
                BadInput(
                    f"{who} has share: {amount.value}, more than 100 per cent",
                    mend="a share is per cent of the parent, 0 to 100",
                )
            )
    if node.amount is not None and node.amount.kind == "share" and node.parent is None:
        out.append(
            BadInput(
                f"account {node.name} has a share but no parent to share",
                mend="give it gpus or gpu_hours",
            )
        )
    for start, end, who in [(node.valid_from, node.valid_until, f"account {node.name}")] + [
        (u.valid_from, u.valid_until, f"user {u.name} in account {node.name}") for u in node.users
    ]:
        if start is not None and end is not None and end <= start:
            out.append(
                BadInput(
                    f"{who} is valid until a moment before valid_from",
                    mend="swap the two or correct one",
                )
            )
    if node.description != printable(node.description):
        out.append(
            BadInput(
                f"account {node.name} has a description with characters that no terminal shows",
                mend="retype it, in one line",
            )
        )
    if not GRES.fullmatch(node.gres):
        out.append(
            BadInput(
                f"account {node.name} has gres {node.gres!r}",
                mend="write gres/gpu, or gres/gpu:h100 for one type",
            )
        )
    return out


def _cycles(tree: BudgetTree) -> dict[str, list[str]]:
    out: dict[str, list[str]] = {}
    known: set[str] = set()
    for name in tree.nodes:
        path: list[str] = []
        at: str | None = name
        while at is not None and at in tree.nodes and at not in path and at not in known:
            path.append(at)
            at = tree.nodes[at].parent
        if at is not None and at in path:
            ring = path[path.index(at) :]
            out[min(ring)] = [*ring, at]
        known.update(path)
    return out


def _sum_faults(tree: BudgetTree, window: int, now: int) -> list[tuple[str, BadInput]]:
    """Children above their parent, and users above their account; compared in GPU-hours."""
    budgets = account_budgets(tree, window, now)
    own = user_budgets(tree, budgets, window, now)
    found = []
    for node in tree.nodes.values():
        parent = budgets[node.name]
        if parent is None or node.amount is None or node.overcommit:
            continue
        per = f"GPU-hours per window of {spoken(window)}"
        children = sum(budgets[child.name] or 0 for child in tree.children(node.name))
        if children > parent:
            what = (
                f"the children of account {node.name} add up to"
                f" {gpu_hours(children, up=True)} {per}, more than "
                f"its own {gpu_hours(parent)}"
            )
            mend = "lower them, raise the parent, or set overcommit: true on it"
            found.append((node.name, BadInput(what, mend=mend)))
        for user in node.users:
            if own.get((node.name, user.name), 0) > parent:
                has = gpu_hours(own[node.name, user.name], up=True)
                what = (
                    f"user {user.name} has {has} {per}, more than "
                    f"account {node.name} with its {gpu_hours(parent)}"
                )
                mend = "lower it, raise the account, or set overcommit: true on it"
                found.append((node.name, BadInput(what, mend=mend)))
    return found
