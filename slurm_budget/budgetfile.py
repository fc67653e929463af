"""Budgets as a YAML file, so that a site can keep them in git. Errors name file, line and column.

    cluster: main
    accounts:
      institute:
        gpus: 32
        accounts:
          vision: {share: 50, managers: [mara], users: {ana: , ben: {gpus: 4}}}
          language: {gpus: 8, users: [cleo, dan]}

An account may also stand at the top with `parent: NAME`, which suits generated files.
"""

import contextlib
import io
from datetime import UTC, date, datetime
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from slurm_budget import budgetyaml
from slurm_budget.core import budget_rules
from slurm_budget.errors import BadInput, BadInputs
from slurm_budget.state.budget import (
    ALL_GPUS,
    Amount,
    AmountKind,
    BudgetNode,
    BudgetTree,
    UserBudget,
)
from slurm_budget.text.nearest import meant

_AMOUNTS: tuple[AmountKind, ...] = ("gpus", "gpu_hours", "share")
_PERIOD = ("valid_from", "valid_until")
_USER_KEYS = (*_AMOUNTS, *_PERIOD)
_NODE_KEYS = (
    *_USER_KEYS,
    *("accounts", "users", "managers", "overcommit", "aliases", "gres", "description", "parent"),
)


class _Reader:
    """Turns YAML nodes into a tree and collects faults with their place."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.faults: list[BadInput] = []
        self.nodes: dict[str, BudgetNode] = {}
        self.places: dict[str, str] = {}

    def fault(self, place: str, what: str, mend: str) -> None:
        self.faults.append(BadInput(what, where=place, mend=mend))

    def place(self, mapping: CommentedMap, key: object = None) -> str:
        line, column = mapping.lc.line, mapping.lc.col
        if key is not None and key in (mapping.lc.data or {}):
            line, column = mapping.lc.data[key][:2]
        # a mapping that an alias points back to has no place of its own yet
        return self.where if line is None else f"{self.where}:{line + 1}:{column + 1}"

    def mapping(self, value: object, place: str, what: str) -> CommentedMap:
        if isinstance(value, CommentedMap):
            return value
        if value is not None:
            self.fault(
                place, f"{what} is {value!r}, not a mapping", "write `key: value` lines below it"
            )
        return CommentedMap()

    def known(self, mapping: CommentedMap, keys: tuple[str, ...], what: str) -> None:
        for key in mapping:
            if key not in keys:
                mend = meant(str(key), keys, f"known keys: {', '.join(keys)}")
                self.fault(self.place(mapping, key), f"unknown key {key!r} in {what}", mend)

    def amount(self, mapping: CommentedMap, what: str) -> Amount | None:
        given = [key for key in _AMOUNTS if mapping.get(key) is not None]
        if len(given) > 1:
            self.fault(
                self.place(mapping, given[1]),
                f"{what} has {' and '.join(given)}",
                "keep one of gpus, gpu_hours and share",
            )
        if not given:
            return None
        key, value = given[0], mapping[given[0]]
        if isinstance(value, bool) or not isinstance(value, int):
            self.fault(
                self.place(mapping, key),
                f"{what} has {key}: {value}, not a whole number",
                "round it; for less than one GPU use gpu_hours",
            )
            return None
        if value < 0:
            self.fault(
                self.place(mapping, key),
                f"{what} has {key}: {value}, below zero",
                "use 0 or a positive whole number",
            )
            return None
        return Amount(key, int(value))

    def moment(self, mapping: CommentedMap, key: str, what: str) -> int | None:
        value = mapping.get(key)
        if value is None:
            return None
        if isinstance(value, str):
            with contextlib.suppress(ValueError):
                value = datetime.fromisoformat(value)
        if isinstance(value, date) and not isinstance(value, datetime):
            value = datetime(value.year, value.month, value.day, tzinfo=UTC)
        if isinstance(value, datetime):
            return int((value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp())
        self.fault(
            self.place(mapping, key),
            f"{what} has {key}: {value!r}, not a date",
            "write it like 2026-03-01 or 2026-03-01T12:00:00Z",
        )
        return None

    def names(self, mapping: CommentedMap, key: str, what: str) -> tuple[str, ...]:
        value = mapping.get(key)
        if value is None:
            return ()
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            self.fault(
                self.place(mapping, key), f"{what} has {key}: {value!r}", "write a list: [one, two]"
            )
            return ()
        return tuple(str(item) for item in value)

    def users(self, mapping: CommentedMap, account: str) -> tuple[UserBudget, ...]:
        value = mapping.get("users")
        if isinstance(value, list):
            return tuple(UserBudget(name) for name in self.names(mapping, "users", account))
        out = []
        table = self.mapping(value, self.place(mapping, "users"), f"users of account {account}")
        for name, body in table.items():
            what = f"user {name} in account {account}"
            entry = self.mapping(body, self.place(table, name), what)
            self.known(entry, _USER_KEYS, what)
            out.append(
                UserBudget(
                    str(name),
                    self.amount(entry, what),
                    self.moment(entry, "valid_from", what),
                    self.moment(entry, "valid_until", what),
                )
            )
        return tuple(out)

    def account(self, table: CommentedMap, key: object, parent: str | None) -> None:
        name, place = str(key), self.place(table, key)
        what = f"account {name}"
        entry = self.mapping(table[key], place, what)
        twin = next((other for other in self.nodes if other.lower() == name.lower()), None)
        if twin is not None:
            self.fault(
                place,
                f"account {name!r} stands at {self.places[twin]} already"
                + (f" as {twin!r}; Slurm folds names to lower case" if twin != name else ""),
                "rename or remove one of them",
            )
            return
        if name != name.lower():
            self.fault(place, f"account name {name!r} has capitals", f"write {name.lower()!r}")
        self.known(entry, _NODE_KEYS, what)
        if parent is not None and "parent" in entry:
            self.fault(
                self.place(entry, "parent"),
                f"{what} stands below {parent} and names a parent too",
                "keep one of the two",
            )
        over = entry.get("overcommit", False)
        if not isinstance(over, bool):
            self.fault(
                self.place(entry, "overcommit"),
                f"{what} has overcommit: {over!r}",
                "write true or false",
            )
        named = entry.get("parent")
        self.places[name] = place
        self.nodes[name] = BudgetNode(
            name=name,
            parent=parent if parent is not None else (str(named) if named is not None else None),
            amount=self.amount(entry, what),
            gres=str(entry.get("gres", ALL_GPUS)),
            users=self.users(entry, name),
            managers=self.names(entry, "managers", what),
            overcommit=over is True,
            valid_from=self.moment(entry, "valid_from", what),
            valid_until=self.moment(entry, "valid_until", what),
            aliases=self.names(entry, "aliases", what),
            description=str(entry.get("description", "")),
        )
        below = self.mapping(entry.get("accounts"), place, f"accounts of {name}")
        for child in below:
            self.account(below, child, name)


def load(text: str, where: str, *, window: int, now: int) -> BudgetTree:
    """The tree in `text`. Raises BadInput(s): place, value and fix of every fault at once.

    `window` (s) and `now` (epoch) are needed to compare budgets of different kinds.
    """
    try:
        budgetyaml.check(YAML(typ="rt").compose(text), where)
        document = YAML(typ="rt").load(text)
    except RecursionError:
        raise BadInput(
            "is nested too deeply",
            where=where,
            mend="no tree of accounts is so deep; see what made the file",
        ) from None
    except MarkedYAMLError as bad:
        mark = bad.problem_mark or bad.context_mark
        place = f"{where}:{mark.line + 1}:{mark.column + 1}" if mark else where
        raise BadInput(
            f"is not YAML: {bad.problem or bad.context}", where=place, mend="correct that line"
        ) from None
    except (YAMLError, ValueError) as bad:
        reason = str(bad).splitlines()[0]
        raise BadInput(
            f"is not YAML: {reason}", where=where, mend="save it as plain UTF-8 text"
        ) from None
    if not isinstance(document, CommentedMap):
        raise BadInput(
            "has no budgets", where=where, mend="start it with `cluster: NAME` and `accounts:`"
        )
    reader = _Reader(where)
    reader.known(document, ("cluster", "accounts"), "the budget file")
    cluster = document.get("cluster")
    if not isinstance(cluster, str) or not cluster:
        reader.fault(
            reader.place(document, "cluster"),
            f"cluster is {cluster!r}",
            "write `cluster: NAME` as in slurm.conf's ClusterName",
        )
    table = reader.mapping(document.get("accounts"), reader.place(document, "accounts"), "accounts")
    for key in table:
        reader.account(table, key, None)
    tree = BudgetTree(str(cluster), _parents_first(reader.nodes))
    if not reader.faults:
        for name, fault in budget_rules.faults(tree, window, now):
            fault.where = reader.places.get(name, where)
            reader.faults.append(fault)
    if reader.faults:
        raise reader.faults[0] if len(reader.faults) == 1 else BadInputs(reader.faults)
    return tree


def _parents_first(nodes: dict[str, BudgetNode]) -> dict[str, BudgetNode]:
    """The same nodes, each after its parent; what hangs on a cycle or on nothing comes last."""
    out: dict[str, BudgetNode] = {}
    left = dict(nodes)
    while left:
        ready = [n for n, node in left.items() if node.parent is None or node.parent in out]
        for name in ready or list(left):
            out[name] = left.pop(name)
    return out


def dump(tree: BudgetTree) -> str:
    """The tree as YAML that `load` reads back to an equal tree."""

    def amount(item: BudgetNode | UserBudget) -> dict[str, Any]:
        out: dict[str, Any] = {}
        if item.amount is not None:
            out[item.amount.kind] = item.amount.value
        for key in _PERIOD:
            moment = getattr(item, key)
            if moment is not None:
                out[key] = datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return out

    def entry(node: BudgetNode) -> dict[str, Any]:
        out = amount(node)
        if node.gres != ALL_GPUS:
            out["gres"] = node.gres
        if node.overcommit:
            out["overcommit"] = True
        for key in ("aliases", "managers"):
            if getattr(node, key):
                out[key] = list(getattr(node, key))
        if node.description:
            out["description"] = node.description
        if node.users:
            out["users"] = {user.name: amount(user) or None for user in node.users}
        children = tree.children(node.name)
        if children:
            out["accounts"] = {child.name: entry(child) for child in children}
        return out

    yaml = YAML()
    yaml.default_flow_style = False
    yaml.indent(mapping=2, sequence=4, offset=2)
    yaml.representer.add_representer(
        type(None), lambda r, _: r.represent_scalar("tag:yaml.org,2002:null", "")
    )
    stream = io.StringIO()
    yaml.dump(
        {"cluster": tree.cluster, "accounts": {n.name: entry(n) for n in tree.children(None)}},
        stream,
    )
    return stream.getvalue()
