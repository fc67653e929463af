"""Which calls of sacctmgr carry out a plan: pure, so that it can be read and tested.

A process for each change would take minutes for a large site. Rows that get the same values go in
one call with a list of names; rows that are new, or get values of their own, go into a file for
`sacctmgr load`. What `load` does to rows that exist, measured:

- it sets fairshare and parents, on *all* rows of a user in an account (each partition), so users
  with partitions are left to `modify`;
- it adds the QOS of the file to an empty list, but *replaces* a list that is not empty by what it
  lacked; so it is used for lists only where the row has none of its own;
- it does not set DefaultQOS, so that is set last, when every row below can use it (Slurm refuses it
  otherwise), with one call for all accounts.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from slurm_budget.core import limits
from slurm_budget.core.plan import Change
from slurm_budget.slurm.versions import Version, rows_worth_a_call
from slurm_budget.state.slurm import RowKey, SlurmState
from slurm_budget.text import durations

MOST_NAMES = 500
"""Names in one call: an argument may be 128 KiB, a name 64 characters."""

MOST_LINES = 1000
"""Rows in one load: so often it can be stopped, and shows how far it is."""

_LOAD_NAMES = {
    "description": "Description",
    "organization": "Organization",
    "fairshare": "Fairshare",
    "qos": "QOS",
    "defaultqos": "DefaultQOS",
}

Values = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Row:
    """A row to write, with what this step sets on it. `parent` is the account that it is under."""

    key: RowKey
    values: Values
    parent: str = ""


@dataclass(frozen=True, slots=True)
class Step:
    """One call. All rows of an `add` or `modify` have the same values, account and partition."""

    verb: Literal["add", "modify", "load"]
    cluster: str
    rows: tuple[Row, ...]

    def split(self) -> "tuple[Step, Step]":
        """Two halves, to find the row that Slurm refuses."""
        half = len(self.rows) // 2
        return (
            Step(self.verb, self.cluster, self.rows[:half]),
            Step(self.verb, self.cluster, self.rows[half:]),
        )

    def argv(self, file: str = "") -> tuple[str, ...]:
        """The command; `file` is where `text` has been written, for a load."""
        head = ("sacctmgr", "-i", "-Q")
        if self.verb == "load":
            return (*head, "load", f"file={file}")
        kind, account, _, partition = self.rows[0].key
        listed = ",".join(row.key[2] for row in self.rows)
        values = tuple(f"{name}={value}" for name, value in self.rows[0].values)
        if self.verb == "add":
            return (*head, "add", kind, listed, *values)
        where: tuple[str, ...] = (f"name={listed}",)
        if kind != "qos":
            where += (f"cluster={self.cluster}",)
        if kind == "user":
            # `partition=` without a name is the row that holds for all partitions, and only that.
            where += (f"account={account}", f"partition={partition}")
        return (*head, "modify", kind, "where", *where, "set", *values)

    def text(self) -> str:
        """The file of a load; accounts come before what is under them."""
        lines = [f"Cluster - '{self.cluster}'"]
        under = ""
        for row in self.rows:
            if row.parent != under:
                under = row.parent
                lines.append(f"Parent - '{under}'")
            title = "Account" if row.key[0] == "account" else "User"
            options = "".join(
                f":{_LOAD_NAMES[name]}='{_plain(value)}'" if name != "fairshare"
                else f":Fairshare={value}"
                for name, value in row.values
            )  # fmt: skip
            lines.append(f"{title} - '{row.key[2]}'{options}")
        return "\n".join(lines) + "\n"


def _plain(value: str) -> str:
    """Free text that the file's simple syntax can hold."""
    return re.sub(r"[^\w .,/()+@=-]", " ", value).strip()


def phases(
    changes: Sequence[Change], state: SlurmState, version: Version
) -> list[tuple[bool, list[Step]]]:
    """Steps in the order that they must be taken; True: steps of this phase may run at once."""
    cluster = state.cluster
    qos = [c for c in changes if c.kind == "qos"]
    new = [c for c in changes if c.kind != "qos" and c.action == "create"]
    old = [c for c in changes if c.kind != "qos" and c.action == "modify"]
    pool = _Pool(old, state, version)
    moves = [c for c in old if c.value("parent") is not None]
    out = [
        (False, _same("add", cluster, [_qos_row(c) for c in qos if c.action == "create"])),
        (False, _same("modify", cluster, [_qos_row(c) for c in qos if c.action == "modify"])),
        (False, _loads(cluster, [_new_row(c, state) for c in _ordered(new)])),
        # One by one: where one goes may depend on where the one before went.
        (False, [Step("modify", cluster, (_row(c, ("parent",)),)) for c in moves]),
        (False, pool.calls),
        (True, _loads(cluster, pool.loaded)),
        (False, _same("modify", cluster, [_row(c, ("defaultqos",)) for c in old])),
    ]
    return [(parallel, steps) for parallel, steps in out if steps]


def _ordered(new: Sequence[Change]) -> list[Change]:
    """Accounts first, as the plan has them from the top down, then users by account."""
    users = sorted((c for c in new if c.kind == "user"), key=lambda c: c.key)
    return [c for c in new if c.kind == "account"] + users


def _qos_row(change: Change) -> Row:
    values = []
    for field in change.fields:
        new = field.new
        if field.name in ("grptres", "grptresmins"):
            new = limits.to_set(field.old or "", new)
        elif field.name == "gracetime":
            new = str(int(durations.elapsed(new)))  # sacctmgr shows a clock but reads seconds
        values.append((field.name, new))
    return Row(change.key, tuple(values))


def _new_row(change: Change, state: SlurmState) -> Row:
    values = tuple((f.name, f.new) for f in change.fields if f.name != "parent")
    return Row(change.key, values, _under(change, state))


def _under(change: Change, state: SlurmState) -> str:
    """The account that a row is below once the plan is carried out."""
    if change.kind == "user":
        return change.account
    parent = change.value("parent")
    if parent is not None:
        return parent
    seen = state.associations.get((change.account, "", ""))
    return seen.parent if seen else ""


def _row(change: Change, names: tuple[str, ...]) -> Row:
    values = tuple((f.name, f.new) for f in change.fields if f.name in names)
    return Row(change.key, values)


def _same(verb: Literal["add", "modify"], cluster: str, rows: Iterable[Row]) -> list[Step]:
    """Rows with the same values in one call, in the order of the first of each."""
    groups: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        if row.values:
            groups.setdefault(_group(row), []).append(row)
    return [
        Step(verb, cluster, tuple(chunk))
        for group in groups.values()
        for chunk in _chunks(group, MOST_NAMES)
    ]


def _group(row: Row) -> tuple[object, ...]:
    kind, account, _, partition = row.key
    return row.values, kind, account if kind == "user" else "", partition


def _chunks(rows: list[Row], size: int) -> Iterator[list[Row]]:
    for at in range(0, len(rows), size):
        yield rows[at : at + size]


def _loads(cluster: str, rows: Sequence[Row]) -> list[Step]:
    return [Step("load", cluster, tuple(chunk)) for chunk in _chunks(list(rows), MOST_LINES)]


class _Pool:
    """Fairshare and QOS lists of rows that exist: `calls` for those that share their values or that
    `load` would get wrong, `loaded` for the others."""

    def __init__(self, old: Sequence[Change], state: SlurmState, version: Version) -> None:
        per_user: dict[tuple[str, str], int] = {}
        for account, user, _ in state.associations:
            per_user[account, user] = per_user.get((account, user), 0) + 1
        self.loaded: list[Row] = []
        rows: list[Row] = []
        loadable: dict[RowKey, Row] = {}
        for change in old:
            row = _row(change, ("fairshare", "qos"))
            if not row.values:
                continue
            rows.append(row)
            if self._can_load(change, per_user, state):
                loadable[change.key] = Row(row.key, row.values, _under(change, state))
        worth = rows_worth_a_call(version)
        self.calls: list[Step] = []
        few: list[Step] = []
        for step in _same("modify", state.cluster, rows):
            alone = len(step.rows) >= worth or not all(r.key in loadable for r in step.rows)
            (self.calls if alone else few).append(step)
        if len(few) <= worth:
            # A load reads all associations first: not for a handful.
            self.calls += few
        else:
            self.loaded = [loadable[row.key] for step in few for row in step.rows]
            self.loaded.sort(key=lambda row: (row.key[0], row.parent, row.key[2]))

    @staticmethod
    def _can_load(
        change: Change, per_user: Mapping[tuple[str, str], int], state: SlurmState
    ) -> bool:
        user = change.name if change.kind == "user" else ""
        if change.partition or per_user.get((change.account, user), 0) != 1:
            return False
        if change.value("qos") is None:
            return True
        seen = state.associations.get((change.account, user, ""))
        return seen is not None and not seen.own_qos
