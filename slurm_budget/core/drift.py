"""Drift: what somebody changed by hand, told apart from what the budgets changed. Pure.

A field that sync would write differs from the budgets either because these changed, or because
somebody wrote it. slurmdbd's transaction log has the last write of the field and its time; if what
it wrote is what the budgets of *that* time wanted, it was a sync, and the budgets have changed
since. If not, it was a hand; or, of a QOS, whose fields come from the settings too, a sync under
other settings than today's, of which there is no history.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from slurm_budget.core.plan import Change, Field, Plan
from slurm_budget.state.slurm import RowKey, Transaction

Wants = Mapping[tuple[RowKey, str], str]
"""What the budgets of some moment wanted of (row, field)."""


@dataclass(frozen=True, slots=True)
class Drift:
    """One field that was changed by hand, and the write that did it."""

    change: Change
    field: Field
    by: Transaction

    def __str__(self) -> str:
        at = datetime.fromtimestamp(self.by.at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        known = self.change.kind != "qos"
        who = "by hand" if known else "by hand, or by a sync under other settings"
        they = "the budgets" if known else "the budgets under today's settings"
        return (
            f"{who}: {self.change.title}: {self.field.name} {self.field.old or 'unset'} was set by"
            f" {self.by.actor} on {at}, not by {they} (they say {self.field.new or 'unset'})"
        )


def find(plan: Plan, log: Iterable[Transaction], wanted_at: Callable[[int], Wants]) -> list[Drift]:
    """Fields of the plan that were changed by hand; `wanted_at(time)` is asked for each write."""
    last: dict[tuple[RowKey, str], Transaction] = {}
    for entry in log:
        for row in entry.rows:
            for name in entry.fields:
                last[row, name] = entry
    out = []
    for change in plan.changes:
        for field in change.fields:
            by = last.get((change.key, field.name))
            if field.old is None or by is None:
                continue
            if wanted_at(by.at).get((change.key, field.name)) != field.old:
                out.append(Drift(change, field, by))
    return out


def since(log: Iterable[Transaction], most: int = 10) -> list[str]:
    """What a log says, for people, a line each."""
    out = []
    for entry in log:
        at = datetime.fromtimestamp(entry.at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        names = sorted(
            row[2] if row[0] != "user" else f"{row[2]} in {row[1]}" for row in entry.rows
        )
        shown = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
        out.append(
            f"{at} {entry.actor}: {entry.action}, {shown}: {', '.join(sorted(entry.fields))}"
        )
    if len(out) > most:
        out[:-most] = [f"{len(out) - most} earlier ones"]
    return out
