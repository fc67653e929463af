"""Reports as JSON, version 1; docs/report-schema.json describes it.

Exact figures whatever `-t` says: GPU-milliseconds, seconds and epoch seconds as whole numbers,
ratios as fractions of 1, null where there is no figure. A new field may come; one that is there
keeps its name, unit and meaning for as long as the version stays.
"""

import json
from fractions import Fraction
from math import isinf

from slurm_budget.core.report_summary import Measure
from slurm_budget.render.table import Row, Table, Value

SCHEMA = "sbudget-report-1"


def plain_value(value: Value) -> int | float | str | None:
    """A figure as JSON has it; infinity is null."""
    if isinstance(value, Measure):
        return plain_value(value.value)
    if isinstance(value, Fraction | float):
        return None if isinf(value) else round(float(value), 6)
    return value


def as_json(table: Table[Row]) -> str:
    """The whole document."""
    return json.dumps(
        {
            "schema": SCHEMA,
            "report": table.report.name,
            "cluster": table.cluster,
            "start": table.start,
            "end": table.end,
            "as_of": table.as_of,
            "columns": [
                {"name": field.column.name, "unit": field.column.kind} for field in table.fields
            ],
            "rows": [
                {field.column.name: plain_value(field.column.value(row)) for field in table.fields}
                | {"depth": table.report.depth(row)}
                for row in table.rows
            ],
        },
        indent=2,
    )
