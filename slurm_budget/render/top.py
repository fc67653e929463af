"""`sbudget top`: all teams and the last sweeps, as plain text or for a terminal.

Names and sentences hold text of users; none of it is read as markup, and control characters are
shown as `?`.
"""

from collections.abc import Callable
from math import inf

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from slurm_budget.core.overview import Load, Team
from slurm_budget.text.gputime import gpu_hours
from slurm_budget.text.printable import printable
from slurm_budget.text.spoken import spoken
from slurm_budget.usecases.overview import Overview

COLUMNS = ("Account", "Budget h", "Left h", "Standing", "Running", "Waiting", "Owed")
NOTE = "Running, Waiting: GPUs, funded + preemptible. Owed: GPUs of owed jobs. Empty: not known."
Clock = Callable[[int], str]


def cells(team: Team) -> tuple[str, ...]:
    return (
        "  " * team.depth + printable(team.account),
        _hours(team.budget),
        _hours(team.left),
        _standing(team),
        *_load(team.load),
    )


def _hours(ms: int | None) -> str:
    return "" if ms is None else gpu_hours(ms)


def _standing(team: Team) -> str:
    if team.standing is None:
        return ""
    return "inf" if team.standing == inf else f"{float(team.standing) * 100:.0f}%"


def _load(load: Load | None) -> tuple[str, str, str]:
    if load is None:
        return "", "", ""
    return (
        f"{load.funded_gpus} + {load.preemptible_gpus}",
        f"{load.waiting_funded_gpus} + {load.waiting_preemptible_gpus}",
        str(load.owed_gpus) if load.owed_gpus else "",
    )


def headline(seen: Overview, clock: Clock) -> str:
    """One line: the cluster, the time, its GPUs, when the last sweep was."""
    parts = [f"{printable(seen.cluster)}  {clock(seen.now)}"]
    if seen.gpus is not None:
        parts.append(f"{seen.gpus.held} of {seen.gpus.total} GPUs held")
        if seen.gpus.unusable:
            parts.append(f"{seen.gpus.unusable} on nodes that are down or drained")
    last = seen.sweeps[0].at if seen.sweeps else seen.observed_at
    if last is not None:
        parts.append(f"last sweep {spoken(max(seen.now - last, 0))} ago")
    if seen.paused:
        parts.append(f"paused: {printable(seen.paused)}")
    return "; ".join(parts)


def unread(seen: Overview) -> list[str]:
    return [f"(not read: {name}: {printable(bad.what)})" for name, bad in seen.failed.items()]


def sweeps(seen: Overview, clock: Clock) -> list[str]:
    return [f"{clock(one.at)}  {printable(one.sentence)}" for one in seen.sweeps or ()]


def plain(seen: Overview, clock: Clock) -> str:
    """For a pipe, and for `--once`."""
    rows = [COLUMNS, *(cells(team) for team in seen.teams)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(COLUMNS))]
    lines = [headline(seen, clock), *unread(seen), ""]
    for row in rows:
        first, *rest = zip(row, widths, strict=True)
        line = [first[0].ljust(first[1]), *(text.rjust(width) for text, width in rest)]
        lines.append("  ".join(line).rstrip())
    return "\n".join([*lines, NOTE, "", *sweeps(seen, clock)]).rstrip()


def live(seen: Overview, clock: Clock) -> RenderableType:
    """For a terminal."""
    table = Table(box=SIMPLE_HEAD, caption=NOTE, caption_justify="left", pad_edge=False)
    for column in COLUMNS:
        table.add_column(column, justify="left" if column == "Account" else "right", no_wrap=True)
    for team in seen.teams:
        owed = team.load is not None and team.load.owed_gpus
        table.add_row(*map(Text, cells(team)), style="bold yellow" if owed else "")
    return Group(
        Text(headline(seen, clock), style="bold"),
        *(Text(line, style="red") for line in unread(seen)),
        table,
        *(Text(line, style="dim" if n else "") for n, line in enumerate(sweeps(seen, clock))),
        Text("q leaves", style="dim"),
    )
