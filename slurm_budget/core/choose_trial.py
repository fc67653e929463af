"""A trial: what a job would find if certain runs were gone.

`Trial.add` and `Trial.drop` keep count of what the job can use, each in the time that the run has
nodes; nothing of the Space changes.
"""

from collections.abc import Callable, Iterable, Sequence
from heapq import nlargest
from itertools import islice

from slurm_budget.core.choose_ground import Ground, Want
from slurm_budget.core.choose_space import ANY

Price = tuple[int, tuple[int, ...]]
"""(ranks, or parts of ranks, that go; the runs)."""


def cover(parts: Iterable[tuple[int, int, int, int]], gpus: int, cpus: int) -> Price | None:
    """The cheapest of (GPUs, CPUs, cost, run) that together have so many GPUs and CPUs, as (cost,
    runs); None if all of them have not.

    >>> cover([(4, 16, 50, 1), (2, 8, 20, 2), (2, 8, 25, 3)], gpus=4, cpus=0)
    (45, (2, 3))
    """
    gpus, cpus = max(0, gpus), max(0, cpus)
    best: dict[tuple[int, int], Price] = {(0, 0): (0, ())}
    for more_gpus, more_cpus, cost, run in parts:
        for (have_gpus, have_cpus), (spent, runs) in list(best.items()):
            have = min(gpus, have_gpus + more_gpus), min(cpus, have_cpus + more_cpus)
            if have not in best or spent + cost < best[have][0]:
                best[have] = (spent + cost, (*runs, run))
    return best.get((gpus, cpus))


class Trial:
    """`want` on `ground` with the runs in `chosen` gone. `idle` are the nodes that are of use
    anyway."""

    def __init__(self, ground: Ground, want: Want, idle: Sequence[int]):
        self.ground = ground
        self.want = want
        self.idle = idle
        self.chosen: dict[int, None] = {}
        self.gone: dict[int, tuple[int, int]] = {}
        """(GPUs, CPUs) that the chosen runs give back, by node."""
        offers = [(self._offer(n), n) for n in idle]
        self.units = sum(offer for offer, _ in offers)
        self.places = len(idle)
        self._best_idle = sorted(offers, reverse=True) if want.most is not None else []

    def enough(self) -> bool:
        """Whether the job starts."""
        units = self.units if self.want.most is None else self._within(self.want.most)
        return units >= self.want.units and self.places >= self.want.places

    def _within(self, most: int) -> int:
        """GPUs on the best nodes, so many at most."""
        offers = [self._offer(n) for n in self.gone]
        idle = (offer for offer, n in self._best_idle if n not in self.gone)
        return sum(nlargest(most, [*offers, *islice(idle, most)]))

    def gpus(self, n: int) -> int:
        """Free GPUs of a node, as the ground's lens counts them."""
        return self.ground.lens.free[n] + self.gone.get(n, (0, 0))[0]

    def serves(self, n: int) -> bool:
        """Whether the node is of use now."""
        return self._offer(n) > 0

    def ranks(self) -> int:
        """What the chosen runs cost."""
        return sum(self.ground.space.ranks[run] for run in self.chosen)

    def add(self, run: int) -> None:
        self.chosen[run] = None
        self._change(run, 1)

    def drop(self, run: int) -> None:
        del self.chosen[run]
        self._change(run, -1)

    def price(
        self, n: int, yields: bytes, parts: Callable[[int], int], at_least: int = 0
    ) -> Price | None:
        """The cheapest runs on a node that make it of use, with `at_least` so many GPUs. A run
        counts with one of `parts(run)` parts of its rank: others of its nodes are hoped to be of
        use too."""
        ground = self.ground
        space = ground.space
        gpus, cpus = ground.goal(n)
        gpus = max(gpus, at_least)
        back_gpus, back_cpus = self.gone.get(n, (0, 0))
        there = [
            (g, c, space.ranks[run] // parts(run), run)
            for g, c, run in ground.lens.parts[n]
            if yields[run] and run not in self.chosen
        ]
        return cover(
            there, gpus - ground.lens.free[n] - back_gpus, cpus - space.cpus[n] - back_cpus
        )

    def prune(self) -> None:
        """Drop what the job can do without, what is dearest first. What is left is all needed."""
        for run in sorted(self.chosen, reverse=True, key=lambda run: self.ground.space.ranks[run]):
            self.drop(run)
            if not self.enough():
                self.add(run)

    def _offer(self, n: int) -> int:
        gpus, cpus = self.gone.get(n, (0, 0))
        ground = self.ground
        return ground.offer(n, ground.lens.free[n] + gpus, ground.space.cpus[n] + cpus)

    def _change(self, run: int, sign: int) -> None:
        ground = self.ground
        lens_type = ground.lens.gpu_type
        for n, kind, held_gpus, held_cpus in ground.space.holds[run]:
            if not ground.member[n]:
                continue
            before = self._offer(n)
            gpus, cpus = self.gone.get(n, (0, 0))
            if lens_type in (ANY, kind):
                gpus += sign * held_gpus
            self.gone[n] = gpus, cpus + sign * held_cpus
            after = self._offer(n)
            self.units += after - before
            self.places += (after > 0) - (before > 0)
