"""The one table model of all reports: columns as data, and the cells that they give.

A column knows its name (in JSON and in `format=`), its header, what kind of figure it holds, and
how to get it from a row. A report is a tuple of columns; renderers know kinds and no reports.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Generic, Literal, TypeVar

from slurm_budget.core.report_summary import Measure
from slurm_budget.errors import BadInput

Row = TypeVar("Row")
Value = int | float | str | Fraction | Measure | None
Kind = Literal["account", "text", "count", "gpu-time", "ratio", "seconds", "moment", "measure"]
"""account: a name that is indented by depth. gpu-time: GPU-milliseconds, shown as `-t` says. ratio:
1 is shown as 100.0%. moment: epoch seconds, shown as local time. measure: a Measure with a unit of
its own."""
NUMBERS = frozenset({"count", "gpu-time", "ratio", "seconds", "measure"})


@dataclass(frozen=True, slots=True)
class Column(Generic[Row]):
    """`shown`: without `format=` too. `doc` is the line in docs/reports.md."""

    name: str
    header: str
    kind: Kind
    value: Callable[[Row], Value]
    doc: str
    shown: bool = True


@dataclass(frozen=True, slots=True)
class Report(Generic[Row]):
    """`whole` is what 100% of a row's GPU-time is; None: of what there was (the capacity)."""

    name: str
    title: str
    columns: tuple[Column[Row], ...]
    whole: Callable[[Row], int | None] | None = None
    depth: Callable[[Row], int] = lambda row: 0


@dataclass(frozen=True, slots=True)
class Field(Generic[Row]):
    """A column that was asked for; `width` 0: as wide as it must be, below 0: to the left."""

    column: Column[Row]
    width: int = 0


def chosen(report: Report[Row], format_: str | None) -> list[Field[Row]]:
    """The columns of `format=account%20,funded`, in any case and cut short, as Slurm takes them."""
    if format_ is None:
        return [Field(column) for column in report.columns if column.shown]
    out = []
    for item in filter(None, (part.strip() for part in format_.split(","))):
        name, _, width = item.partition("%")
        exact = [column for column in report.columns if column.name == name.lower()]
        found = exact or [c for c in report.columns if c.name.startswith(name.lower())]
        names = ", ".join(column.name for column in report.columns)
        if len(found) != 1:
            what = "is not one field" if found else "is no field"
            raise BadInput(f"{name!r} {what} of report {report.name}", mend=f"its fields: {names}")
        if width and not width.removeprefix("-").isdecimal():
            raise BadInput(f"{item!r}: {width!r} is no width", mend="write it like account%20")
        out.append(Field(found[0], int(width or 0)))
    if not out:
        raise BadInput("format= names no field", mend="write it like format=account%20,funded")
    return out


@dataclass(frozen=True, slots=True)
class Table(Generic[Row]):
    """A report with its rows and the columns that were asked for. `capacity` in GPU-milliseconds is
    only needed where GPU-time is shown in per cent. `as_of`: when the last sweep looked; None:
    none has."""

    report: Report[Row]
    rows: Sequence[Row]
    fields: Sequence[Field[Row]]
    cluster: str
    start: int
    end: int
    capacity: int | None = None
    as_of: int | None = None

    def whole(self, row: Row) -> int | None:
        """What 100% of this row's GPU-time is."""
        return self.capacity if self.report.whole is None else self.report.whole(row)
