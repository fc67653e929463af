"""`report across` as a table, and as JSON of its own version."""

import json
from collections.abc import Sequence
from dataclasses import asdict

from slurm_budget.core.across import Row
from slurm_budget.render.table import Column, Report, Table, chosen

ALL = "(all)"

ACROSS: Report[Row] = Report(
    "across",
    "Budgets",
    (
        Column("account", "Account", "text", lambda r: r.account, "with all accounts below it"),
        Column("cluster", "Cluster", "text", lambda r: r.cluster or ALL, f"`{ALL}`: all together"),
        Column("budget", "Budget", "gpu-time", lambda r: r.budget, "what it is owed per window"),
        Column(
            "charge", "Charged", "gpu-time", lambda r: r.charge,
            "the protected part of its funded runs in the window",
        ),
        Column(
            "left", "Left", "gpu-time", lambda r: r.left,
            "budget less charge; of a budget that is one for all, in the row of all",
        ),
        Column(
            "use", "Use", "gpu-time", lambda r: r.use,
            "funded runs, whole, and a tenth of the preemptible ones",
        ),
    ),
    whole=lambda r: r.budget,
)  # fmt: skip


def table(rows: Sequence[Row], clusters: str, start: int, end: int) -> Table[Row]:
    """The rows of the window [start, end); `clusters` are those that the title names."""
    return Table(ACROSS, rows, chosen(ACROSS, None), clusters, start, end)


def as_json(rows: Sequence[Row], now: int) -> str:
    """Version 1 of the report's JSON; `cluster` is empty for all clusters together."""
    return json.dumps(
        {
            "schema": "sbudget-report-across-1",
            "now": now,
            "unit": "GPU-milliseconds",
            "rows": [asdict(row) | {"left": row.left} for row in rows],
        },
        indent=2,
    )
