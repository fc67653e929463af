"""The difference between what Slurm has and what the budgets want, as a value that can be shown,
kept and compared. Pure; models no order other than: QOS, accounts from the top down, users.

Values are canonical text in sacctmgr's words, so that the same state read back gives no change:
`fairshare=160000`, `qos=normal,preemptible`, `gracetime=00:01:00`, `grptres=gres/gpu=96`.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Literal

from slurm_budget.core import limits
from slurm_budget.core.budget import account_budgets, user_budgets
from slurm_budget.core.desire_qos import slurm_time
from slurm_budget.errors import BadInput
from slurm_budget.state.budget import BudgetTree
from slurm_budget.state.slurm import (
    Association,
    Desired,
    Kind,
    Qos,
    QosPolicy,
    SlurmState,
    Wanted,
)

FORMAT = 1


@dataclass(frozen=True, slots=True)
class Field:
    """One value: `old` None where the row is created, empty where nothing is set."""

    name: str
    old: str | None
    new: str
    why: str = ""


@dataclass(frozen=True, slots=True)
class Change:
    """Create or modify one QOS, account or user. `account` is empty for a QOS; `name` is the QOS,
    the account once more, or the user; `group` is the account that people look for it under."""

    action: Literal["create", "modify"]
    kind: Kind
    name: str
    account: str
    partition: str
    group: str
    fields: tuple[Field, ...]

    @property
    def key(self) -> tuple[Kind, str, str, str]:
        return self.kind, self.account, self.name, self.partition

    @property
    def title(self) -> str:
        """`QOS funded-lab`, `account lab`, `user ana in lab`."""
        if self.kind == "qos":
            return f"QOS {self.name}"
        if self.kind == "account":
            return f"account {self.name}"
        where = f", partition {self.partition}" if self.partition else ""
        return f"user {self.name} in {self.account}{where}"

    def value(self, name: str) -> str | None:
        """The new value of a field; None where this change does not touch it."""
        return next((field.new for field in self.fields if field.name == name), None)


@dataclass(frozen=True, slots=True)
class Plan:
    """What sync would do. `existing` counts the rows of Slurm that the budgets could change;
    the digests tell whether Slurm or the budgets differ from when it was made."""

    cluster: str
    made_at: int
    changes: tuple[Change, ...]
    notes: tuple[str, ...] = ()
    existing: int = 0
    slurm_digest: str = ""
    budget_digest: str = ""

    def __bool__(self) -> bool:
        return bool(self.changes)

    @property
    def created(self) -> int:
        return sum(change.action == "create" for change in self.changes)

    @property
    def modified(self) -> int:
        return sum(change.action == "modify" for change in self.changes)


def make(desired: Desired, state: SlurmState, now: int, budget_digest: str = "") -> Plan:
    """The plan that leads from `state` to `desired`."""
    changes = tuple(diff(desired.wanted, state))
    return Plan(
        cluster=state.cluster,
        made_at=now,
        changes=changes,
        notes=desired.notes,
        existing=sum(_seen(item, state) is not None for item in desired.wanted),
        slurm_digest=state_digest(state),
        budget_digest=budget_digest,
    )


def diff(wanted: Iterable[Wanted], state: SlurmState) -> Iterable[Change]:
    """One change for each row that is not there or holds other values in the fields named."""
    for item in wanted:
        seen = _seen(item, state)
        if seen is None:
            new = {**item.only_new, **item.fields}
            fields = [Field(k, None, v, item.why.get(k, "")) for k, v in new.items() if v]
        else:
            fields = [
                Field(name, seen.get(name, ""), value, item.why.get(name, ""))
                for name, value in item.fields.items()
                if seen.get(name, "") != value
            ]
        if seen is None or fields:
            yield Change(
                "create" if seen is None else "modify",
                item.kind,
                item.name,
                item.account,
                item.partition,
                item.group or item.account,
                tuple(fields),
            )


def _seen(item: Wanted, state: SlurmState) -> Mapping[str, str] | None:
    if item.kind == "qos":
        qos = state.qos.get(item.name)
        return None if qos is None else qos_fields(qos)
    user = item.name if item.kind == "user" else ""
    row = state.associations.get((item.account, user, item.partition))
    return None if row is None else association_fields(row)


def qos_fields(qos: Qos) -> dict[str, str]:
    """The fields of a QOS that we may own, as canonical text."""
    return {
        "priority": str(qos.priority),
        "preempt": ",".join(sorted(qos.preempt)),
        "preemptmode": qos.preempt_mode,
        "preemptexempttime": ""
        if qos.preempt_exempt_time is None
        else slurm_time(qos.preempt_exempt_time),
        "gracetime": slurm_time(qos.grace_time),
        "usagefactor": f"{qos.usage_factor:g}",
        "grptres": limits.gpu_part(qos.grp_tres),
        "grptresmins": limits.gpu_part(qos.grp_tres_mins),
    }


def association_fields(row: Association) -> dict[str, str]:
    """The fields of an association that we may own, as canonical text. A list that is inherited is
    marked: to inherit the right one by luck is not to have it."""
    own = row.own_qos == row.qos and row.own_qos
    return {
        "parent": row.parent,
        "fairshare": str(row.fairshare),
        "qos": ",".join(sorted(row.qos)) + ("" if own else " (inherited)"),
        "defaultqos": row.own_default_qos,
    }


def state_digest(state: SlurmState) -> str:
    """Of everything in Slurm that a plan depends on; equal for the same state in any order."""
    rows = [[*key, *association_fields(row).values()] for key, row in state.associations.items()]
    qos = [[name, *qos_fields(row).values()] for name, row in state.qos.items()]
    return _digest([sorted(rows), sorted(qos)])


def budget_digest(tree: BudgetTree, policy: QosPolicy, window: int, now: int) -> str:
    """Of the budgets in force and the settings that decide what they become."""
    budgets = account_budgets(tree, window, now)
    users = user_budgets(tree, budgets, window, now)
    # repr, since asdict copies every value: a quarter of a second for a thousand accounts.
    nodes = [repr(node) for _, node in sorted(tree.nodes.items())]
    return _digest([budgets, sorted(users.items()), nodes, asdict(policy), window])


def _digest(value: object) -> str:
    text = json.dumps(value, sort_keys=True, default=sorted)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def to_json(plan: Plan) -> str:
    """A plan as a file; `from_json(to_json(plan)) == plan`."""
    head = {"slurm_budget_plan": FORMAT, "created": plan.created, "modified": plan.modified}
    return json.dumps(head | asdict(plan), indent=1) + "\n"


def from_json(text: str, where: str = "plan") -> Plan:
    """Raises BadInput for what is no plan of this version."""
    try:
        raw = json.loads(text)
        if raw["slurm_budget_plan"] != FORMAT:
            raise BadInput(
                f"is a plan of format {raw['slurm_budget_plan']!r}, this version reads {FORMAT}",
                where=where,
                mend="make it again with `sbudget plan -o FILE`",
            )
        changes = [
            Change(**{**change, "fields": tuple(Field(**field) for field in change["fields"])})
            for change in raw["changes"]
        ]
        return Plan(
            cluster=raw["cluster"],
            made_at=raw["made_at"],
            changes=tuple(changes),
            notes=tuple(raw["notes"]),
            existing=raw["existing"],
            slurm_digest=raw["slurm_digest"],
            budget_digest=raw["budget_digest"],
        )
    except (ValueError, KeyError, TypeError) as bad:
        raise BadInput(
            f"is not a plan: {bad!r}", where=where, mend="make it with `sbudget plan -o FILE`"
        ) from None
