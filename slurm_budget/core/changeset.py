"""Changes of a budget tree: what differs, the inverse, what clashes, and who may change what.

A changeset is a list of `Change`: one field of one account or user, with its value before and
after. An account or user that appears or goes is one change, of the whole of it. `apply(old,
diff(old, new))` equals `new`, and `inverse` leads back; accounts and users have no order of their
own.

Who may change what: a manager of an account may change everything below it, which includes the
users in it, and nothing of the account itself, least of all its own amount. An account that moves
must be below a manager's account before and after. Root and the named admins may change all.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

from slurm_budget.errors import Refused
from slurm_budget.state.budget import BudgetNode, BudgetTree, UserBudget
from slurm_budget.text import moments

_NODE_FIELDS = tuple(f.name for f in fields(BudgetNode) if f.name not in ("name", "users"))
_USER_FIELDS = tuple(f.name for f in fields(UserBudget) if f.name != "name")
_MOMENTS = ("valid_from", "valid_until")
WHOLE = "whole"
"""The field of a change that makes or removes an account or a user."""


@dataclass(frozen=True, slots=True)
class Change:
    """`user` is empty for the account itself. For `field == WHOLE`, `before` or `after` is None and
    the other a BudgetNode (its users included) or a UserBudget."""

    account: str
    user: str
    field: str
    before: Any
    after: Any

    def __str__(self) -> str:
        who = f"account {self.account}" if not self.user else f"user {self.user} in {self.account}"
        if self.field == WHOLE:
            thing = self.after if self.before is None else self.before
            amount = f" with {thing.amount}" if thing.amount is not None else ""
            return f"{who}: {'added' if self.before is None else 'removed'}{amount}"
        return f"{who}: {self.field} {self._shown(self.before)} -> {self._shown(self.after)}"

    def _shown(self, value: Any) -> str:
        return moments.shown(value) if self.field in _MOMENTS else shown(value)

    @property
    def place(self) -> tuple[str, str, str]:
        return self.account, self.user, self.field


def shown(value: object) -> str:
    """A value of a field for people: unset is `-`, a list its items."""
    if value is None or value == "" or value == ():
        return "-"
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def diff(old: BudgetTree, new: BudgetTree) -> list[Change]:
    """What leads from `old` to `new`, parents before children where they appear."""
    out: list[Change] = []
    for name in old.nodes:
        if name not in new.nodes:
            out.append(Change(name, "", WHOLE, old.nodes[name], None))
    for name, node in new.nodes.items():
        out += node_diff(old.nodes.get(name), node)
    return out


def node_diff(before: BudgetNode | None, after: BudgetNode | None) -> list[Change]:
    """The same for one account that may be new or gone (None)."""
    if before is None or after is None:
        some = before or after
        return [Change(some.name, "", WHOLE, before, after)] if some is not None else []
    out = [
        Change(after.name, "", name, getattr(before, name), getattr(after, name))
        for name in _NODE_FIELDS
        if getattr(before, name) != getattr(after, name)
    ]
    was = {user.name: user for user in before.users}
    now = {user.name: user for user in after.users}
    for name in was.keys() | now.keys():
        one, two = was.get(name), now.get(name)
        if one is None or two is None:
            out.append(Change(after.name, name, WHOLE, one, two))
            continue
        out += [
            Change(after.name, name, key, getattr(one, key), getattr(two, key))
            for key in _USER_FIELDS
            if getattr(one, key) != getattr(two, key)
        ]
    return sorted(out, key=lambda change: (change.user, change.field))


def apply(tree: BudgetTree, changes: Iterable[Change]) -> BudgetTree:
    """The tree after the changes. Raises Refused when what a change starts from is not there."""
    nodes = dict(tree.nodes)
    for change in changes:
        node = nodes.get(change.account)
        if not change.user and change.field == WHOLE:
            _must(change, node)
            if change.after is None:
                del nodes[change.account]
            else:
                nodes[change.account] = change.after
        elif node is None:
            raise _gone(change)
        elif not change.user:
            _must(change, getattr(node, change.field))
            nodes[change.account] = replace(node, **{change.field: change.after})
        else:
            users = {user.name: user for user in node.users}
            user = users.get(change.user)
            if change.field == WHOLE:
                _must(change, user)
                users.pop(change.user, None)
                if change.after is not None:
                    users[change.user] = change.after
            elif user is None:
                raise _gone(change)
            else:
                _must(change, getattr(user, change.field))
                users[change.user] = replace(user, **{change.field: change.after})
            nodes[change.account] = replace(node, users=tuple(users.values()))
    return canonical(BudgetTree(tree.cluster, nodes))


def canonical(tree: BudgetTree) -> BudgetTree:
    """Parents before children in the order given, users by name: equal trees look alike."""
    below: dict[str | None, list[BudgetNode]] = {}
    for node in tree.nodes.values():
        known = node.parent if node.parent in tree.nodes else None
        below.setdefault(known, []).append(node)
    out: dict[str, BudgetNode] = {}
    waiting = list(reversed(below.get(None, [])))
    while waiting:
        node = waiting.pop()
        users = tuple(sorted(node.users, key=lambda user: user.name))
        out[node.name] = node if users == node.users else replace(node, users=users)
        waiting += reversed(below.get(node.name, []))
    # what hangs in a cycle is kept as it is, for the rules to report
    return BudgetTree(tree.cluster, out | {n: v for n, v in tree.nodes.items() if n not in out})


def _must(change: Change, found: object) -> None:
    if isinstance(found, BudgetNode) and isinstance(change.before, BudgetNode):
        same = not node_diff(found, change.before)
    else:
        same = found == change.before
    if not same:
        raise Refused(
            f"{change}: but it is {shown(found)} now",
            mend="look at `sbudget budget log`, then make the change against what is there",
        )


def _gone(change: Change) -> Refused:
    return Refused(f"{change}: but it is not there", mend="look at `sbudget budget log`")


def inverse(changes: Iterable[Change]) -> list[Change]:
    """What takes the changes back."""
    return [
        replace(change, before=change.after, after=change.before)
        for change in reversed(list(changes))
    ]


def conflicts(ours: Iterable[Change], theirs: Iterable[Change]) -> list[tuple[Change, Change]]:
    """Pairs of changes that touch the same: one field, or a field of what the other removes."""
    by_account: dict[str, list[Change]] = {}
    for change in theirs:
        by_account.setdefault(change.account, []).append(change)
    return [
        (change, other)
        for change in ours
        for other in by_account.get(change.account, ())
        if _touch(change, other) or _touch(other, change)
    ]


def _touch(change: Change, other: Change) -> bool:
    if change.field == WHOLE:
        return not change.user or change.user == other.user
    return change.place == other.place


def forbidden(
    changes: Iterable[Change], old: BudgetTree, who: str, admins: Collection[str] = ()
) -> list[str]:
    """Why `who` may not make these changes, one sentence each; empty when they may.

    Managers are those of `old`: nobody becomes one by the change itself.
    """
    if who == "root" or who in admins:
        return []
    out = []
    added = {
        change.account: change.after
        for change in changes
        if not change.user and change.field == WHOLE and change.after is not None
    }
    for change in changes:
        for anchor in _anchors(change, old, added):
            if anchor is None or not _manages(who, anchor, old):
                owner = "the top of the tree" if anchor is None else f"account {anchor}"
                out.append(f"{change}: {who} manages neither {owner} nor anything above it")
                break
    return out


def _anchors(change: Change, old: BudgetTree, added: dict[str, BudgetNode]) -> Iterator[str | None]:
    """The accounts of `old` of which (or above which) one must be a manager to make the change."""

    def known(name: str | None) -> str | None:
        while name is not None and name not in old.nodes:
            name = added[name].parent if name in added else None
        return name

    if change.user:
        yield known(change.account)
        return
    if change.field == WHOLE:
        node = change.after if change.before is None else change.before
        yield known(node.parent)
        return
    yield known(old.nodes[change.account].parent)
    if change.field == "parent":
        yield known(change.after)


def _manages(who: str, account: str, tree: BudgetTree) -> bool:
    return any(who in node.managers for node in tree.ancestors(account))
