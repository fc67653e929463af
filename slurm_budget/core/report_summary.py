"""A month in a dozen lines: what was delivered, how full the cluster was, who waited, what it
cost."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from slurm_budget.core.delivered import Delivered
from slurm_budget.core.report_delivered import GOOD, DeliveredRow
from slurm_budget.core.report_requeues import RequeueRow
from slurm_budget.core.report_waits import ALL, WaitRow

Unit = Literal["gpu-time", "ratio", "count", "seconds", "text"]


@dataclass(frozen=True, slots=True)
class Measure:
    """One figure: `value` in GPU-milliseconds, as a fraction, ...; None where there is none."""

    name: str
    label: str
    unit: Unit
    value: int | float | str | None


def summary(
    found: Delivered,
    period: int,
    teams: Sequence[DeliveredRow],
    waits: Iterable[WaitRow],
    requeues: Sequence[RequeueRow],
) -> list[Measure]:
    """`period` is its seconds, `teams` are the accounts at the bottom, the worst first."""
    # one team's surplus is no comfort to another
    got = sum(min(share.got, share.deserved) for share in found.own.values())
    deserved = sum(share.deserved for share in found.own.values())
    lost = sum(row.lost for row in requeues)
    worst = teams[0] if teams else None
    good = sum((team.delivered or 0) >= GOOD for team in teams)
    by_cause = [
        (cause, sum(row.cause == cause for row in requeues)) for cause in ("owed", "preempted")
    ]
    out = [
        Measure("delivered", "Delivered", "ratio", _part(got, deserved)),
        Measure("teams", "Teams that deserved something", "count", len(teams)),
        Measure("teams_good", f"Teams at {GOOD:.0%} or more", "count", good),
        Measure("worst", "Worst team", "ratio", worst.delivered if worst else None),
        Measure("worst_team", "Worst team, name", "text", worst.account if worst else None),
        Measure("capacity", "GPU-time there was", "gpu-time", found.capacity),
        Measure("occupancy", "Occupancy", "ratio", _part(found.busy, found.capacity)),
        Measure("lent", "Lent to preemptible work", "ratio", _part(found.lent, found.busy)),
        Measure("requeues", "Runs stopped from outside", "count", len(requeues)),
        *(
            Measure(f"requeues_{cause}", f"  {words}", "count", count)
            for (cause, count), words in zip(
                by_cause, ("for a team that was owed", "preempted by Slurm"), strict=True
            )
        ),
        Measure("lost", "Work lost, at most", "gpu-time", lost),
        Measure("lost_part", "  of what ran", "ratio", _part(lost, found.busy)),
        Measure("observed", "Time in which sweeps looked", "ratio", _part(found.seconds, period)),
    ]
    for row in waits:
        size = {ALL: "all sizes", "1": "1 GPU"}.get(row.size, f"{row.size} GPUs")
        for rank, value in (("p50", row.p50), ("p90", row.p90)):
            label = f"Wait of {row.class_}, {size}, {rank}"
            out.append(Measure(f"wait_{row.class_}_{row.size}_{rank}", label, "seconds", value))
    return out


def _part(of: float, whole: float) -> float | None:
    return of / whole if whole else None
