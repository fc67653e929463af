"""What Slurm's associations and QOS should be, from the budgets and what is there. Pure.

What is ours: every field of our QOS that we name, and of an account from the moment that it has a
budget its fairshare, its DefaultQOS and our QOS in its list. All other QOS of the list are the
site's and stay. An account of the tree *without* a budget gets what adds to it (the QOS
`preemptible`, DefaultQOS where there is none) and keeps what people set, fairshare too: so an
adopted cluster changes account by account, as budgets are given.

Only accounts are written, and such users as the budgets settle or whose own list of QOS hides the
account's: the others inherit. See desire_qos, desire_shares and desire_lists for each part.
"""

from collections.abc import Iterator, Mapping

from slurm_budget.core import desire_qos, fairshare
from slurm_budget.core.budget import account_budgets, user_budgets
from slurm_budget.core.desire_lists import Lists
from slurm_budget.core.desire_shares import Shares, shares
from slurm_budget.state.budget import BudgetNode, BudgetTree
from slurm_budget.state.slurm import ROOT, Desired, QosPolicy, SlurmState, Wanted


def desire(
    tree: BudgetTree, state: SlurmState, policy: QosPolicy, window: int, now: int
) -> Desired:
    """All that the budgets settle: QOS first, then accounts with parents before children, users.

    `window` in seconds, `now` in epoch seconds: a budget outside its dates is none.
    """
    budgets = account_budgets(tree, window, now)
    users = user_budgets(tree, budgets, window, now)
    gone = {
        qos: qos.removeprefix(policy.funded_prefix)
        for qos in sorted(state.qos)
        if qos.startswith(policy.funded_prefix)
        and budgets.get(qos.removeprefix(policy.funded_prefix)) is None
    }
    lists = Lists(tree, state, policy, budgets)
    settled = shares(tree, state, budgets, users, window, policy)
    nodes = _top_down(tree)
    wanted = [desire_qos.preemptible(policy)]
    largest = desire_qos.largest_jobs(state)
    for node in nodes:
        ms = budgets[node.name]
        if ms is not None:
            size = largest.get(node.name, 0)
            wanted.append(desire_qos.funded(node, ms, state, policy, window, size))
    wanted += [desire_qos.retired(qos, account, state) for qos, account in gone.items()]
    wanted += [_account_row(node, budgets, lists, settled, state, policy) for node in nodes]
    wanted += _outside_now(gone, tree, state)
    for node in nodes:
        wanted += _user_rows(node, lists, settled, state)
    wanted += lists.others()
    notes = [
        f"{account}: no budget now; the limit of {qos} goes to nothing, nothing is deleted"
        for qos, account in gone.items()
    ]
    notes += settled.notes + lists.notes() + _shared(wanted, state, policy)
    return Desired(tuple(wanted), tuple(notes))


def _top_down(tree: BudgetTree) -> list[BudgetNode]:
    """Every account after its parent, with what is below it together."""
    below: dict[str | None, list[BudgetNode]] = {}
    for node in tree.nodes.values():
        below.setdefault(node.parent, []).append(node)
    out: list[BudgetNode] = []
    stack = below.get(None, [])[::-1]
    while stack:
        node = stack.pop()
        out.append(node)
        stack += below.get(node.name, [])[::-1]
    return out


def _account_row(
    node: BudgetNode,
    budgets: Mapping[str, int | None],
    lists: Lists,
    settled: Shares,
    state: SlurmState,
    policy: QosPolicy,
) -> Wanted:
    paid = budgets[node.name] is not None
    fields = {"parent": node.parent or ROOT}
    why = {"parent": "as in the budget tree"}
    if node.name in settled.accounts:
        fields["fairshare"], why["fairshare"] = settled.accounts[node.name]
    fields["qos"] = ",".join(sorted(lists.of_account(node.name)))
    why["qos"] = f"the site's and {policy.preemptible}" + (
        f" and {policy.funded(node.name)}" if paid else "; no budget, so none that is funded"
    )
    seen = state.associations.get((node.name, "", ""))
    if paid or seen is None or seen.own_default_qos in ("", policy.preemptible):
        fields["defaultqos"] = policy.preemptible
        why["defaultqos"] = "jobs that ask for nothing are free and make way"
    only_new = {
        "description": node.description or node.name,
        "organization": node.parent or node.name,
    }
    if "fairshare" not in fields:
        only_new["fairshare"] = str(fairshare.NO_BUDGET)
    return Wanted("account", node.name, node.name, "", fields, why, only_new, node.name)


def _outside_now(gone: Mapping[str, str], tree: BudgetTree, state: SlurmState) -> Iterator[Wanted]:
    """Accounts that left the tree and had a budget in it weigh no more than one that never had."""
    for account in gone.values():
        if account not in tree.nodes and (account, "", "") in state.associations:
            yield Wanted(
                "account",
                account,
                account,
                fields={"fairshare": str(fairshare.NO_BUDGET)},
                why={"fairshare": "it has no budget now: the least that takes part"},
                group=account,
            )


def _user_rows(
    node: BudgetNode, lists: Lists, settled: Shares, state: SlurmState
) -> Iterator[Wanted]:
    """Users whom the tree names, and those of the account whom the budgets settle.

    A user with rows for several partitions has the same number in each: in a partition they
    compete with what the others have there.
    """
    seen = lists.users_of(node.name)
    there = {name.lower() for name in seen}
    missing = [user.name for user in node.users if user.name.lower() not in there]
    for name, partitions in [*((name, [""]) for name in missing), *seen.items()]:
        for partition in partitions:
            row = state.associations.get((node.name, name, partition))
            fields: dict[str, str] = {}
            why: dict[str, str] = {}
            number = settled.users.get((node.name, name.lower()))
            if number is not None and (row is None or row.fairshare != "parent"):
                fields["fairshare"], why["fairshare"] = number
            if row is not None and row.own_qos:
                fields["qos"] = ",".join(sorted(lists.of_user(row)))
                why["qos"] = "has a list of their own, so ours are added to it"
            if fields or row is None:
                only_new = {} if "fairshare" in fields else {"fairshare": str(fairshare.NO_BUDGET)}
                yield Wanted("user", name, node.name, partition, fields, why, only_new, node.name)


def _shared(wanted: list[Wanted], state: SlurmState, policy: QosPolicy) -> list[str]:
    """QOS are one for all clusters of a slurmdbd: two that sync the same name would undo each
    other."""
    mine = [item.name for item in wanted if item.kind == "qos" and item.name != policy.preemptible]
    return [
        f"{name} is used by cluster {', '.join(state.elsewhere[name])} too: QOS are shared by all"
        " clusters of a slurmdbd, so its limit must suit both, or one account needs another name"
        for name in mine
        if name in state.elsewhere
    ]
