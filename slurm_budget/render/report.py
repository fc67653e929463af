"""Reports as tables for people, as `|`-separated text for scripts, and as JSON."""

import json
from collections.abc import Sequence
from math import inf

from rich.box import SIMPLE_HEAD
from rich.table import Table

from slurm_budget.core.report import BudgetRow

MS_PER_HOUR = 3_600_000
COLUMNS = ("Account", "Budget", "Funded", "Preempt", "Charged", "Left", "Standing")
TITLE = "GPU-hours in the window"


def hours(ms: int | None) -> str:
    """GPU-hours with one decimal, two below 10; empty where there is no budget."""
    if ms is None:
        return ""
    value = ms / MS_PER_HOUR
    return f"{value:.2f}" if abs(value) < 10 else f"{value:.1f}"


def standing(row: BudgetRow) -> str:
    """Use as per cent of the budget."""
    if row.standing is None:
        return ""
    return "inf" if row.standing == inf else f"{float(row.standing) * 100:.1f}%"


def cells(row: BudgetRow, *, indent: bool) -> tuple[str, ...]:
    name = "  " * row.depth + row.account if indent else row.account
    figures = (row.budget, row.funded, row.preemptible, row.charge, row.left)
    return (name, *(hours(figure) for figure in figures), standing(row))


def table(rows: Sequence[BudgetRow], cluster: str) -> Table:
    """A table for a terminal; the tree is shown by indentation."""
    out = Table(title=f"{TITLE}, cluster {cluster}", box=SIMPLE_HEAD, title_justify="left")
    for column in COLUMNS:
        out.add_column(column, justify="left" if column == "Account" else "right", no_wrap=True)
    for row in rows:
        out.add_row(*cells(row, indent=True))
    return out


def parsable(rows: Sequence[BudgetRow], *, header: bool) -> str:
    """`|` between the fields, as `sreport -P`."""
    lines = ["|".join(COLUMNS)] if header else []
    lines += ["|".join(cells(row, indent=False)) for row in rows]
    return "\n".join(lines)


def plain(rows: Sequence[BudgetRow], *, header: bool) -> str:
    """Columns in plain text, for a pipe."""
    body = [cells(row, indent=True) for row in rows]
    every = ([COLUMNS] if header else []) + body
    widths = [max((len(line[i]) for line in every), default=0) for i in range(len(COLUMNS))]
    lines = [
        "  ".join(
            text.ljust(width) if i == 0 else text.rjust(width)
            for i, (text, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in every
    ]
    if header:
        lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(lines)


def as_json(rows: Sequence[BudgetRow], cluster: str, now: int) -> str:
    """Version 1 of the report's JSON: GPU-milliseconds as integers, null where no budget is."""
    return json.dumps(
        {
            "schema": "sbudget-report-budgets-1",
            "cluster": cluster,
            "now": now,
            "unit": "GPU-milliseconds",
            "accounts": [
                {
                    "account": row.account,
                    "depth": row.depth,
                    "budget": row.budget,
                    "funded": row.funded,
                    "preemptible": row.preemptible,
                    "charge": row.charge,
                    "left": row.left,
                    "standing": None
                    if row.standing is None or row.standing == inf
                    else round(float(row.standing), 6),
                }
                for row in rows
            ],
        },
        indent=2,
    )
