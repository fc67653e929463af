"""Use over time: what ran, what was promised and what there was, in equal pieces of a period. Pure.

GPU-milliseconds everywhere. What there was is known only while sweeps looked, so occupancy is of
that part alone, as in the summary; what ran is known for all of it.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from slurm_budget.core.division import CLUSTER, Change
from slurm_budget.state.budget import BudgetTree

MOST = 93
"""Pieces of a period at most: the days of a quarter."""
STEPS = (1, 10, 60, 600, 3600, 6 * 3600, 86400, 7 * 86400, 28 * 86400)


@dataclass(slots=True)
class Piece:
    """[start, end). `seen` of its seconds a sweep looked; `capacity` and `busy` are of those.
    `budget` None: nobody had one."""

    start: int
    end: int
    budget: int | None = None
    funded: int = 0
    preemptible: int = 0
    seen: int = 0
    capacity: int = 0
    busy: int = 0

    @property
    def used(self) -> int:
        return self.funded + self.preemptible

    @property
    def there(self) -> int | None:
        """What there was, None where no sweep looked."""
        return self.capacity if self.seen else None

    @property
    def occupancy(self) -> float | None:
        return self.busy / self.capacity if self.capacity else None


def marks(start: int, end: int) -> list[int]:
    """Where the pieces of a period begin, and its end: hours, days, weeks, `MOST` at most."""
    length = end - start
    step = next((one for one in STEPS if length <= one * MOST), -(-length // MOST))
    return [*range(start, end, step), end]


def promised(tree: BudgetTree, budgets: Mapping[str, int | None]) -> int | None:
    """What the accounts at the top have together; None where none has a budget."""
    tops = [budgets.get(node.name) for node in tree.nodes.values() if node.parent is None]
    given = [ms for ms in tops if ms is not None]
    return sum(given) if given else None


def series(
    pieces: Sequence[int], looked: Iterable[tuple[int, int]], changes: Iterable[Change]
) -> list[Piece]:
    """The pieces between `marks`, without budgets. `looked` are the stretches in which sweeps
    looked, in order; `changes` come in any order, those before the start say what held then."""
    out = [Piece(since, until) for since, until in pairwise(pieces)]
    stretches = list(looked)
    cuts = sorted({*pieces, *(at for one in stretches for at in one)})
    cuts = [at for at in cuts if pieces[0] <= at <= pieces[-1]]
    begins = [since for since, _ in stretches]
    steps = sorted(changes, key=lambda step: step.at)
    place = funded = preemptible = capacity = 0
    for since, until in pairwise(cuts):
        piece = out[bisect_right(pieces, since) - 1]
        nearest = bisect_right(begins, since) - 1
        seen = nearest >= 0 and since < stretches[nearest][1]
        last = since
        while last < until:
            while place < len(steps) and steps[place].at <= last:
                step = steps[place]
                place += 1
                if step.account == CLUSTER:
                    capacity += step.waiting
                elif step.account is None:
                    preemptible += step.running
                else:
                    funded += step.running
            following = min(steps[place].at, until) if place < len(steps) else until
            seconds, last = following - last, following
            piece.funded += funded * seconds
            piece.preemptible += preemptible * seconds
            if seen:
                piece.seen += seconds
                piece.capacity += capacity * seconds
                piece.busy += (funded + preemptible) * seconds
    return out
