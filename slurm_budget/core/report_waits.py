"""How long runs waited for their start: by class and size, in percentiles.

A wait is from when the run could have started (its eligible time: not held, no dependency, its
begin time past) to its start. A requeued job waits anew. *debug* are funded runs that the fast lane
is for: GPUs x time limit at most `fast_lane_gpu_time`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from slurm_budget.core.admission_job import is_small
from slurm_budget.core.weights import rate
from slurm_budget.state.report import Start

CLASSES = ("debug", "funded", "preemptible")
SIZES = ((1, "1"), (8, "2-8"), (64, "9-64"))
LARGEST = "65+"
ALL = "all"


@dataclass(frozen=True, slots=True)
class WaitRow:
    """Runs of one class and size (in GPUs) that started; seconds."""

    class_: str
    size: str
    runs: int
    p50: int
    p90: int
    longest: int


def percentile(sorted_values: Sequence[int], per_cent: int) -> int:
    """The smallest value that so many per cent of all are not above (nearest rank)."""
    rank = -(-len(sorted_values) * per_cent // 100)
    return sorted_values[max(rank, 1) - 1]


def wait_rows(
    starts: Iterable[Start], weights: Mapping[str, int], fast_lane_gpu_time: int
) -> list[WaitRow]:
    """Every class that had a run, with its sizes and, where it has several, all of them."""
    waits: dict[tuple[str, str], list[int]] = {}
    for start in starts:
        class_ = "funded" if start.funded else "preemptible"
        if start.funded and start.time_limit is not None:
            gpus = rate(start.gpus, weights)
            if is_small(gpus, start.time_limit, 1, fast_lane_gpu_time):
                class_ = "debug"
        waits.setdefault((class_, _size(start)), []).append(start.waited)
    out = []
    for class_ in CLASSES:
        sizes = [
            size for size in (*(name for _, name in SIZES), LARGEST) if (class_, size) in waits
        ]
        out += [_row(class_, size, waits[class_, size]) for size in sizes]
        if len(sizes) > 1:
            out.append(_row(class_, ALL, [w for size in sizes for w in waits[class_, size]]))
    return out


def _size(start: Start) -> str:
    gpus = sum(start.gpus.values())
    return next((name for most, name in SIZES if gpus <= most), LARGEST)


def _row(class_: str, size: str, waits: list[int]) -> WaitRow:
    waits.sort()
    return WaitRow(
        class_, size, len(waits), percentile(waits, 50), percentile(waits, 90), waits[-1]
    )
