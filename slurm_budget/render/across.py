"""`report across` as columns for people, as `|`-separated text for scripts, and as JSON."""

import json
from collections.abc import Sequence
from dataclasses import asdict

from slurm_budget.core.across import Row
from slurm_budget.render.budgets import columns
from slurm_budget.render.cells import gpu_time

COLUMNS = ("Account", "Cluster", "Budget", "Charged", "Left", "Use")
ALL = "(all)"


def hours(ms: int | None) -> str:
    """Empty where there is no budget."""
    return "" if ms is None else gpu_time(ms, "hours", None)


def cells(row: Row) -> tuple[str, ...]:
    figures = (row.budget, row.charge, row.left, row.use)
    return (row.account, row.cluster or ALL, *map(hours, figures))


def text(rows: Sequence[Row], *, header: bool) -> list[str]:
    """Lines in columns, GPU-hours."""
    lines = columns([COLUMNS, *map(cells, rows)], right=range(2, 6))
    return lines if header else lines[1:]


def parsable(rows: Sequence[Row], *, header: bool) -> list[str]:
    """`|` between the fields, as `sreport -P`."""
    return ["|".join(line) for line in ([COLUMNS] if header else []) + list(map(cells, rows))]


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
