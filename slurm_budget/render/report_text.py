"""Reports as text: a table on a terminal, columns in a pipe, `|` or CSV for scripts."""

import csv
import io
import re
from collections.abc import Iterable, Sequence

from rich.box import SIMPLE_HEAD
from rich.table import Table as RichTable
from rich.text import Text

from slurm_budget.render.cells import Time, texts
from slurm_budget.render.table import NUMBERS, Field, Row, Table
from slurm_budget.text import moments

CUT = "+"
"""Ends a text that was cut to its width, as in sacct."""
NARROWEST = 8
"""No name is cut shorter for a narrow terminal."""
_FIGURE = re.compile(r"-?\d+(\.\d+)?%?|-", re.ASCII)
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def title(table: Table[Row], time: Time) -> str:
    """What the report is of: cluster, period and unit."""
    kinds = {field.column.kind for field in table.fields}
    unit = {"percent": "per cent"}.get(time, f"GPU-{time}")
    words = f", {unit}" if kinds & {"gpu-time", "measure"} else ""
    period = f"{moments.shown(table.start)} - {moments.shown(table.end)}"
    return f"{table.report.title} of {table.cluster}, {period}{words}"


def _headers(table: Table[Row]) -> list[str]:
    return [field.column.header for field in table.fields]


def _right(field: Field[Row]) -> bool:
    return field.column.kind in NUMBERS if not field.width else field.width > 0


def _fitted(text: str, width: int, *, right: bool) -> str:
    if len(text) > width:
        text = text[: max(width - 1, 0)] + CUT
    return text.rjust(width) if right else text.ljust(width)


def plain(table: Table[Row], time: Time, *, tree: bool, header: bool) -> str:
    """Columns as wide as they must be, or as `format=` says."""
    body = texts(table, time, tree=tree)
    every = ([_headers(table)] if header else []) + body
    widths = [
        abs(field.width) or max((len(line[i]) for line in every), default=0)
        for i, field in enumerate(table.fields)
    ]
    lines = [
        "  ".join(
            _fitted(text, width, right=_right(field))
            for text, width, field in zip(line, widths, table.fields, strict=True)
        ).rstrip()
        for line in every
    ]
    if header:
        lines.insert(1, "  ".join("-" * width for width in widths))
        lines.insert(0, title(table, time))
    return "\n".join(lines)


def parsable(table: Table[Row], time: Time, *, tree: bool, header: bool) -> str:
    """`|` between the fields, as `sreport -P`; widths count for nothing."""
    lines = ([_headers(table)] if header else []) + texts(table, time, tree=tree)
    return "\n".join("|".join(line) for line in lines)


def as_csv(table: Table[Row], time: Time, *, tree: bool, header: bool) -> str:
    """CSV by RFC 4180, save for its line ends. The first line is the columns' names.

    A text that a spreadsheet would take for a formula gets a `'` before it; a figure
    below zero is none.
    """
    names = [[field.column.name for field in table.fields]] if header else []
    return csv_of([*names, *texts(table, time, tree=tree)])


def csv_of(lines: Iterable[Sequence[str]]) -> str:
    """Lines of cells as CSV, as above."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    for line in lines:
        writer.writerow(map(_harmless, line))
    return out.getvalue().removesuffix("\n")


def _harmless(text: str) -> str:
    if text.lstrip(" ").startswith(_FORMULA) and not _FIGURE.fullmatch(text):
        return "'" + text
    return text


def rich(
    table: Table[Row], time: Time, *, tree: bool, header: bool, width: int
) -> tuple[RichTable, int]:
    """For a terminal `width` columns wide, and the width that it takes; the title is not in it,
    since rich would break it to the table's width.

    Where a terminal is too narrow, names are cut and figures never: rich would leave out columns,
    so the widths are settled here.
    """
    body = texts(table, time, tree=tree)
    lines = [_headers(table), *body] if header else body
    widths = [
        abs(field.width) or max((len(line[i]) for line in lines), default=0)
        for i, field in enumerate(table.fields)
    ]
    names = [i for i, field in enumerate(table.fields) if field.column.kind in ("account", "text")]
    taken = sum(widths) + 2 * len(widths)  # two between columns, one at each side
    while names and taken > width:
        widest = max(names, key=lambda i: widths[i])
        if widths[widest] <= NARROWEST:
            break
        widths[widest] -= 1
        taken -= 1
    out = RichTable(
        box=SIMPLE_HEAD,
        show_header=header,
        padding=(0, 1, 0, 0),
        pad_edge=False,
    )
    for field, columns in zip(table.fields, widths, strict=True):
        out.add_column(
            Text(field.column.header),
            justify="right" if _right(field) else "left",
            no_wrap=True,
            overflow="ellipsis",
            width=columns,
        )
    for line in body:
        out.add_row(*(Text(text) for text in line))
    return out, max(taken, width)
