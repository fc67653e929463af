"""The tables of the page for managers: columns of the reports in text, put together anew."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from slurm_budget.core.report import BudgetRow
from slurm_budget.core.report_delivered import DeliveredRow
from slurm_budget.core.report_requeues import RequeueRow
from slurm_budget.core.series import Piece
from slurm_budget.render.reports import BUDGETS, DELIVERED
from slurm_budget.render.table import Column, Report, Row


@dataclass(frozen=True, slots=True)
class Account:
    """One account in both reports; it may be missing in one of them."""

    name: str
    depth: int
    budget: BudgetRow | None
    delivered: DeliveredRow | None


def accounts(budgets: Sequence[BudgetRow], delivered: Sequence[DeliveredRow]) -> list[Account]:
    """Every account of either report: the tree, then those that are gone."""
    found = {row.account: row for row in delivered}
    out = [Account(row.account, row.depth, row, found.pop(row.account, None)) for row in budgets]
    return out + [Account(row.account, row.depth, None, row) for row in found.values()]


def _lifted(columns: Iterable[Column[Row]], part: Callable[[Account], Row | None]) -> Any:
    for column in columns:
        value = column.value

        def lifted(row: Account, value: Callable[[Row], Any] = value) -> Any:
            found = part(row)
            return None if found is None else value(found)

        yield Column(column.name, column.header, column.kind, lifted, column.doc)


_NAME: Column[Account] = Column(
    "account", "Account", "account", lambda r: r.name, "with all accounts below it"
)
_OF_BUDGETS = tuple(_lifted(BUDGETS.columns[1:], lambda r: r.budget))
_DESERVED, _GOT, _SHARE = _lifted(
    (c for c in DELIVERED.columns if c.name in ("deserved", "got", "delivered")),
    lambda r: r.delivered,
)

TREE: Report[Account] = Report(
    "tree",
    "Budgets and what was delivered",
    (_NAME, _SHARE, *_OF_BUDGETS, _DESERVED, _GOT),
    depth=lambda r: r.depth,
)
TREE_UNSEEN: Report[Account] = Report(
    "tree", "Budgets", (_NAME, *_OF_BUDGETS), depth=lambda r: r.depth
)

PIECES: Report[Piece] = Report(
    "pieces",
    "Use over time",
    (
        Column("start", "From", "moment", lambda r: r.start, "when the piece of time begins"),
        Column("funded", "Funded", "gpu-time", lambda r: r.funded, "what ran in a funded QOS"),
        Column(
            "preemptible", "Preempt", "gpu-time", lambda r: r.preemptible, "what ran in any other"
        ),
        Column(
            "budget", "Budget", "gpu-time", lambda r: r.budget,
            "of the accounts at the top, for this time",
        ),
        Column(
            "there", "There was", "gpu-time", lambda r: r.there,
            "GPU-time that could be used while sweeps looked",
        ),
        Column("occupancy", "Occupancy", "ratio", lambda r: r.occupancy, "what of it ran"),
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Cause:
    """Runs that were stopped for one cause; `lost` GPU-milliseconds."""

    cause: str
    runs: int
    lost: int


_WORDS = {
    "owed": "for a team that was owed",
    "repair": "to put a plan right",
    "preempted": "preempted by Slurm",
    "node-failed": "a node failed",
    "by-hand": "by hand",
}


def causes(requeues: Iterable[RequeueRow]) -> list[Cause]:
    """Every cause that there was."""
    found: dict[str, list[int]] = {}
    for row in requeues:
        found.setdefault(row.cause, []).append(row.lost)
    return [
        Cause(words, len(found[cause]), sum(found[cause]))
        for cause, words in _WORDS.items()
        if cause in found
    ]


CAUSES: Report[Cause] = Report(
    "causes",
    "Runs that were stopped from outside",
    (
        Column("cause", "Cause", "text", lambda r: r.cause, "who stopped it, and what for"),
        Column("runs", "Runs", "count", lambda r: r.runs, "runs that were stopped"),
        Column("lost", "Lost", "gpu-time", lambda r: r.lost, "their whole time: the most"),
    ),
)
