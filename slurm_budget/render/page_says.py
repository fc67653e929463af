"""What the page says in words: the tiles at its top, and a sentence for each plot."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from slurm_budget.core.report_delivered import GOOD
from slurm_budget.core.report_summary import Measure
from slurm_budget.core.report_waits import CLASSES, WaitRow
from slurm_budget.core.series import Piece
from slurm_budget.render.cells import cell, ratio
from slurm_budget.text import moments
from slurm_budget.text.spoken import spoken


@dataclass(frozen=True, slots=True)
class Tile:
    """One figure of the summary, with what it is of."""

    title: str
    figure: str
    words: str


def moment(at: int) -> str:
    """A moment to the minute."""
    return moments.shown(at)[:16].replace("T", " ")


def as_of(swept: int | None, end: int) -> str:
    """That the figures end before the period does; empty where they do not."""
    if swept is None or swept >= end:
        return ""
    return f" As of the sweep of {moment(swept)}."


def tiles(measures: Iterable[Measure]) -> list[Tile]:
    """The summary's figures that a manager asks for first."""
    found = {measure.name: measure for measure in measures}

    def text(name: str) -> str:
        measure = found.get(name)
        value = "" if measure is None else cell("measure", measure, "hours", None)
        return value or "-"

    return [
        Tile(
            "Delivered",
            text("delivered"),
            "of what teams deserved, surplus not counted",
        ),
        Tile("Good teams", f"{text('teams_good')} of {text('teams')}", f"got {GOOD:.0%} or more"),
        Tile("Worst team", text("worst"), text("worst_team")),
        Tile("Occupancy", text("occupancy"), "of the GPUs that could be used"),
        Tile("Lent", text("lent"), "of what ran was preemptible"),
        Tile("Stopped runs", text("requeues"), f"{text('requeues_owed')} for a team that was owed"),
        Tile("Work lost", text("lost_part"), "of what ran, at most"),
        Tile("Seen", text("observed"), "of the time by sweeps"),
    ]


def use(pieces: Sequence[Piece]) -> str:
    """What the plot of use shows."""
    whole = pieces[-1].end - pieces[0].start

    def gpus(ms: int) -> str:
        return f"{ms / whole / 1000:.1f}"

    out = (
        f"On average {gpus(sum(p.used for p in pieces))} GPUs ran:"
        f" {gpus(sum(p.funded for p in pieces))} funded and"
        f" {gpus(sum(p.preemptible for p in pieces))} preemptible."
    )
    promised = [p.budget for p in pieces if p.budget is not None]
    if promised:
        out += f" The budgets promise {gpus(sum(promised))}."
    seen = sum(p.seen for p in pieces)
    if seen:
        out += (
            f" There were {sum(p.capacity for p in pieces) / seen / 1000:.1f} that could be used."
        )
    return out


def occupancy(pieces: Sequence[Piece]) -> str:
    """What the plot of occupancy shows."""
    known = [(p.occupancy, p) for p in pieces if p.occupancy is not None]
    if not known:
        return "There were no GPUs that could be used."
    whole = sum(p.busy for p in pieces) / sum(p.capacity for p in pieces)
    low, high = (pick(known, key=lambda one: one[0]) for pick in (min, max))
    return (
        f"{ratio(whole)} on the whole; lowest {ratio(low[0])} ({moment(low[1].start)}),"
        f" highest {ratio(high[0])} ({moment(high[1].start)})."
    )


def waits(rows: Sequence[WaitRow]) -> str:
    """What the plot of waits shows: of each class its last row, which has all sizes."""
    last = {row.class_: row for row in rows}
    return " ".join(
        f"{class_.capitalize()} runs: half waited no longer than {spoken(last[class_].p50)},"
        f" nine of ten no longer than {spoken(last[class_].p90)}."
        for class_ in CLASSES
        if class_ in last
    )
