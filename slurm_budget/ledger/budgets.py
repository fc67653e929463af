"""Budget trees as a history of changesets; a tree is what the changesets up to a moment left.

An entry is one account as a changeset left it, whole, so a tree is read without replaying fields
and an admin can read the table. What a changeset changed is the difference of the entries before
and after it (core.changeset).
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from sqlalchemy import Connection, Row, func, insert, select

from slurm_budget.core.changeset import Change, canonical, node_diff
from slurm_budget.errors import BadInput
from slurm_budget.ledger.schema import changesets, entries, entry_users
from slurm_budget.state.budget import Amount, BudgetNode, BudgetTree, UserBudget


@dataclass(frozen=True, slots=True)
class Changeset:
    """One change of the budgets of a cluster. `base` is the changeset that its author had seen (0:
    none), `undoes` the one that it takes back."""

    id: int
    cluster: str
    base: int
    author: str
    acting_as: str
    reason: str
    at: int
    undoes: int | None = None
    changes: tuple[Change, ...] = field(default=())

    def __str__(self) -> str:
        who = self.author + (f" for {self.acting_as}" if self.acting_as != self.author else "")
        return f"changeset {self.id} by {who} ({self.reason})"


def latest(connection: Connection, cluster: int, at: int | None = None) -> int:
    """The last changeset of a cluster, at a moment (None: now); 0 where there is none."""
    query = select(func.max(changesets.c.id)).where(changesets.c.cluster_id == cluster)
    if at is not None:
        query = query.where(changesets.c.made_at <= at)
    return connection.scalar(query) or 0


def tree(connection: Connection, name: str, cluster: int, upto: int) -> BudgetTree:
    """The budgets of cluster `name` as changeset `upto` left them."""
    last = (
        select(func.max(entries.c.id).label("id"))
        .join(changesets, changesets.c.id == entries.c.changeset_id)
        .where(changesets.c.cluster_id == cluster, changesets.c.id <= upto)
        .group_by(entries.c.account)
        .subquery()
    )
    first = (
        select(entries.c.account, func.min(entries.c.id).label("born"))
        .join(changesets, changesets.c.id == entries.c.changeset_id)
        .where(changesets.c.cluster_id == cluster)
        .group_by(entries.c.account)
        .subquery()
    )
    rows = connection.execute(
        select(entries)
        .join(last, last.c.id == entries.c.id)
        .join(first, first.c.account == entries.c.account)
        .where(entries.c.removed.is_(False))
        .order_by(first.c.born)
    ).all()
    found = connection.execute(select(entry_users).join(last, last.c.id == entry_users.c.entry_id))
    users: dict[int, list[UserBudget]] = {}
    for row in found:
        users.setdefault(row.entry_id, []).append(_user(row))
    return canonical(BudgetTree(name, {row.account: _node(row, users) for row in rows}))


def history(connection: Connection, name: str, cluster: int) -> Iterator[Changeset]:
    """Every changeset with what it changed, the first one first."""
    heads = connection.execute(
        select(changesets).where(changesets.c.cluster_id == cluster).order_by(changesets.c.id)
    ).all()
    users: dict[int, list[UserBudget]] = {}
    by_changeset: dict[int, list[Row[Any]]] = {}
    mine = (
        select(entries)
        .join(changesets, changesets.c.id == entries.c.changeset_id)
        .where(changesets.c.cluster_id == cluster)
    )
    own = mine.with_only_columns(entries.c.id).subquery()
    for row in connection.execute(
        select(entry_users).join(own, own.c.id == entry_users.c.entry_id)
    ):
        users.setdefault(row.entry_id, []).append(_user(row))
    for row in connection.execute(mine.order_by(entries.c.id)):
        by_changeset.setdefault(row.changeset_id, []).append(row)
    nodes: dict[str, BudgetNode] = {}
    for head in heads:
        changes: list[Change] = []
        for row in by_changeset.get(head.id, ()):
            before = nodes.pop(row.account, None)
            after = None if row.removed else _node(row, users)
            changes += node_diff(before, after)
            if after is not None:
                nodes[row.account] = after
        yield Changeset(
            head.id,
            name,
            head.base_id or 0,
            head.author,
            head.acting_as,
            head.reason,
            head.made_at,
            head.undoes_id,
            tuple(changes),
        )


def write(
    connection: Connection,
    cluster: int,
    changeset: Changeset,
    new: BudgetTree,
) -> int:
    """Add a changeset and the accounts that it changes, as they are in `new`; returns its id."""
    done = connection.execute(
        insert(changesets).values(
            cluster_id=cluster,
            base_id=changeset.base or None,
            undoes_id=changeset.undoes,
            author=changeset.author,
            acting_as=changeset.acting_as,
            reason=changeset.reason,
            made_at=changeset.at,
        )
    )
    key = done.inserted_primary_key
    assert key is not None
    touched = dict.fromkeys(change.account for change in changeset.changes)
    order = {name: place for place, name in enumerate(new.nodes)}
    for account in sorted(touched, key=lambda name: order.get(name, -1)):
        node = new.nodes.get(account)
        values = _values(node or BudgetNode(account)) | {"removed": node is None}
        entry = connection.execute(insert(entries).values(changeset_id=key[0], **values))
        number = entry.inserted_primary_key
        assert number is not None
        rows = [_user_values(number[0], user) for user in (node.users if node else ())]
        if rows:
            connection.execute(insert(entry_users), rows)
    return int(key[0])


def _amount(kind: str | None, value: int | None) -> Amount | None:
    if kind is None or value is None:
        return None
    return Amount(cast(Literal["gpus", "gpu_hours", "share"], kind), value)


def _user(row: Row[Any]) -> UserBudget:
    return UserBudget(
        row.user, _amount(row.amount_kind, row.amount), row.valid_from, row.valid_until
    )


def _node(row: Row[Any], users: dict[int, list[UserBudget]]) -> BudgetNode:
    return BudgetNode(
        name=row.account,
        parent=row.parent,
        amount=_amount(row.amount_kind, row.amount),
        gres=row.gres,
        users=tuple(sorted(users.get(row.id, ()), key=lambda user: user.name)),
        managers=tuple(json.loads(row.managers)),
        overcommit=bool(row.overcommit),
        valid_from=row.valid_from,
        valid_until=row.valid_until,
        aliases=tuple(json.loads(row.aliases)),
        description=row.description,
    )


def _period(item: BudgetNode | UserBudget) -> dict[str, Any]:
    amount = item.amount
    return {
        "amount_kind": amount.kind if amount else None,
        "amount": amount.value if amount else None,
        "valid_from": item.valid_from,
        "valid_until": item.valid_until,
    }


def _values(node: BudgetNode) -> dict[str, Any]:
    return _period(node) | {
        "account": node.name,
        "parent": node.parent,
        "gres": node.gres,
        "overcommit": node.overcommit,
        "managers": json.dumps(node.managers),
        "aliases": json.dumps(node.aliases),
        "description": node.description,
    }


def _user_values(entry: int, user: UserBudget) -> dict[str, Any]:
    return _period(user) | {"entry_id": entry, "user": user.name}


def pick(found: Iterable[Changeset], number: int) -> Changeset:
    """One changeset by its id; BadInput where it is not there."""
    for changeset in found:
        if changeset.id == number:
            return changeset
    raise BadInput(
        f"there is no changeset {number} of this cluster", mend="see `sbudget budget log`"
    )
