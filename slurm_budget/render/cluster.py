"""`report cluster` as text for people, as `|`-separated text for scripts, and as JSON."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict

from slurm_budget.core.cluster import Holder, Repair, Totals
from slurm_budget.render.report_text import csv_of
from slurm_budget.text.printable import printable
from slurm_budget.text.spoken import spoken

Clock = Callable[[int | None], str]
"""An epoch second as people write it; of None, that there is none."""
TOTALS = (
    *("Nodes", "Usable", "Draining", "Drained", "Down"),
    *("GPUs", "UsableGPUs", "Funded", "Preempt", "Idle"),
)
REPAIRS = (
    *("Node", "State", "Since", "By", "Reason"),
    *("Job", "User", "Account", "Class", "GPUs", "Until", "WaitsFor", "NextSweep"),
)


Lines = list[Sequence[str]]


def for_scripts(totals: Totals, repairs: Sequence[Repair], clock: Clock, *, header: bool) -> Lines:
    """Cells for scripts: the totals, an empty line, a line for each run on a draining node (one
    with empty fields for a node without any)."""
    out: Lines = [TOTALS] if header else []
    out += [[str(figure) for figure in asdict(totals).values()], []]
    out += [REPAIRS] if header else []
    return out + list(_rows(repairs, clock))


def parsable(cells: Lines) -> str:
    """`|` between the fields, as `sreport -P`."""
    return "\n".join("|".join(map(_plain, line)) for line in cells)


def as_csv(cells: Lines) -> str:
    """CSV; the two tables are an empty line apart, the names of columns as in other reports."""
    heads = (TOTALS, REPAIRS)
    return csv_of([cell.lower() for cell in line] if line in heads else line for line in cells)


def _rows(repairs: Sequence[Repair], clock: Clock) -> Iterator[tuple[str, ...]]:
    for one in repairs:
        node = (one.node, one.state, clock(one.since), one.by, one.reason)
        for run in one.holders or [None]:
            yield (*node, *(_cells(run, clock) if run else ("",) * 8))


def _cells(run: Holder, clock: Clock) -> tuple[str, ...]:
    held = "?" if run.gpus is None else str(run.gpus)
    who = (run.job, run.user, run.account, run.class_, held)
    return (*who, clock(run.until), run.waits_for, run.next)


def _plain(cell: str) -> str:
    """The reason is free text."""
    return printable(cell.replace("|", "/").replace("\n", " "))


def text(
    cluster: str,
    totals: Totals,
    repairs: Sequence[Repair],
    clock: Clock,
    now: int,
    *,
    header: bool = True,
) -> str:
    """A few lines and one for each host under repair, with its runs below."""
    it = totals
    lines = [
        *([f"Cluster {cluster}, {clock(now)}"] if header else []),
        f"  nodes  {it.nodes}: {it.usable} usable, {it.draining} draining, {it.drained} drained, "
        f"{it.down} down",
        f"  GPUs   {it.gpus}: {it.usable_gpus} usable; {it.funded} run funded, "
        f"{it.preemptible} preemptible, {it.idle} idle",
    ]
    if not repairs:
        return "\n".join([*lines, "No node is draining."])
    for one in repairs:
        by = f" by {one.by}" if one.by else ""
        why = printable(one.reason) or "-"
        lines += ["", f"{one.node} {one.state} since {clock(one.since)}{by}: {why}"]
        if not one.holders:
            lines.append("  nothing runs on it: it can be repaired")
        lines += [f"  {_run(run, clock, now)}" for run in one.holders]
    return "\n".join(lines)


def _run(run: Holder, clock: Clock, now: int) -> str:
    held = "GPUs" if run.gpus is None else f"{run.gpus} GPU{'' if run.gpus == 1 else 's'}"
    left = run.until - now
    until = f"until {clock(run.until)} (in {spoken(left)})" if left > 0 else "past it"
    return (
        f"job {run.job} of {run.user} ({run.account}, {run.class_}) holds {held}; protection: "
        f"{until}; waits for {run.waits_for}; the next sweep will {_will(run.next)}"
    )


def _will(deed: str) -> str:
    return f"do {deed}" if deed.startswith("nothing") else deed


def as_json(cluster: str, totals: Totals, repairs: Sequence[Repair], now: int) -> str:
    """Version 1 of the report's JSON; times are epoch seconds."""
    return json.dumps(
        {
            "schema": "sbudget-report-cluster-1",
            "cluster": cluster,
            "now": now,
            "totals": asdict(totals),
            "repairs": [asdict(one) for one in repairs],
        },
        indent=2,
    )
