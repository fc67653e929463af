"""Figures as text. One place, so that text, CSV and -P say the same."""

from math import inf, isinf
from typing import Literal

from slurm_budget.core.report_summary import Measure
from slurm_budget.errors import BadInput
from slurm_budget.render.table import Kind, Row, Table, Value
from slurm_budget.text import moments
from slurm_budget.text.gputime import gpu_hours

Time = Literal["hours", "minutes", "seconds", "percent"]
TIMES: tuple[Time, ...] = ("hours", "minutes", "seconds", "percent")
_MS = {"minutes": 60_000, "seconds": 1_000}


def time_of(text: str) -> Time:
    """`-t` as sreport takes it: in any case, cut short."""
    found = [name for name in TIMES if text and name.startswith(text.lower())]
    if len(found) != 1:
        raise BadInput(f"-t {text!r} is no format of time", mend=f"one of {', '.join(TIMES)}")
    return found[0]


def gpu_time(ms: int, time: Time, whole: int | None) -> str:
    """GPU-milliseconds: hours as everywhere, minutes and seconds whole, per cent of `whole`."""
    if time == "percent":
        return "" if whole is None else ratio(ms / whole if whole else (inf if ms else 0.0), 2)
    if time == "hours":
        return gpu_hours(ms, grouped=False)
    return f"{ms / _MS[time]:.0f}"


def ratio(value: float, decimals: int = 1) -> str:
    """1 is 100.0%."""
    return "inf" if isinf(value) else f"{value * 100:.{decimals}f}%"


def seconds(value: int) -> str:
    """As Slurm writes times that have passed: [D-]HH:MM:SS."""
    days, left = divmod(value, 86400)
    clock = f"{left // 3600:02}:{left // 60 % 60:02}:{left % 60:02}"
    return f"{days}-{clock}" if days else clock


def cell(kind: Kind, value: Value, time: Time, whole: int | None) -> str:
    """One figure as text; empty for none."""
    if isinstance(value, Measure):
        return cell(value.unit, value.value, time, whole)
    if value is None:
        return ""
    if isinstance(value, str):
        # nobody's name may write to the terminal or break a line
        return "".join(c if c.isprintable() else "?" for c in value)
    if kind == "gpu-time":
        return gpu_time(int(value), time, whole)
    if kind == "ratio":
        return ratio(float(value))
    if kind == "seconds":
        return seconds(int(value))
    if kind == "moment":
        return moments.shown(int(value))
    return str(value)


def texts(table: Table[Row], time: Time, *, tree: bool) -> list[list[str]]:
    """Every row as text; `tree` indents accounts, one space a level, as sreport does."""
    out = []
    for row in table.rows:
        line = [
            cell(field.column.kind, field.column.value(row), time, table.whole(row))
            for field in table.fields
        ]
        if tree:
            for place, field in enumerate(table.fields):
                if field.column.kind == "account":
                    line[place] = " " * table.report.depth(row) + line[place]
        out.append(line)
    return out
