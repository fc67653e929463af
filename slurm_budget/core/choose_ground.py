"""Where one kind of job could run, what stands there, and what could at best.

A `Need` is what a job asks of one node. A `Ground` is the nodes that one job may use together (one
partition, one island) and that could ever meet a need; it is kept for all demands of that kind. A
`Reach` is what each of its nodes offers once every run has gone that yields to a certain owner: no
search is begun for what is out of reach.
"""

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import nlargest

from slurm_budget.core.choose_space import ANY, ENDLESS, Space
from slurm_budget.state.choose import Demand


@dataclass(frozen=True, slots=True)
class Need:
    """What a job asks of each node that it takes. `gpus` None: any multiple of `step`."""

    gpu_type: str
    gpus: int | None
    cpus: int
    whole: bool
    step: int

    @classmethod
    def of(cls, demand: Demand) -> "Need":
        step = 1 if demand.per_node is not None else demand.step
        return cls(demand.gpu_type, demand.per_node, demand.cpus_per_node, demand.exclusive, step)


@dataclass(frozen=True, slots=True)
class Want:
    """How much a job asks in all: `units` (nodes, or GPUs where they may spread) on `places` nodes
    at least, and on `most` nodes (None: any number)."""

    units: int
    places: int
    most: int | None = None

    @classmethod
    def of(cls, demand: Demand) -> "Want":
        places = max(1, demand.nodes)
        if demand.per_node is not None:
            return cls(places, places)
        most = None if demand.most_nodes is None else max(demand.most_nodes, places)
        return cls(max(demand.total, places * demand.step), places, most)


class Ground:
    """The nodes of `among` that could meet `need`, and what they would ask for it."""

    def __init__(self, space: Space, among: Sequence[int], need: Need, name: str):
        self.space = space
        self.need = need
        self.name = name
        self.lens = space.lens(ANY if need.whole else need.gpu_type)
        self.least = need.step if need.gpus is None else need.gpus
        self.members = [n for n in among if self.owns(n) >= self.least]
        self.member = bytearray(len(space.nodes))
        for n in self.members:
            self.member[n] = 1
        self._keys = {n: key for n in self.members if (key := self._key(n)) is not None}
        self._order = sorted(self._keys.values())
        self._seen = len(space.changed)
        self.too_much: dict[Want, int] = {}
        """What did not fit, and how many runs had been let go then."""

    def owns(self, n: int) -> int:
        """GPUs of the right type that a node has, whoever holds them."""
        total = self.space.nodes[n].total
        wanted = self.need.gpu_type
        return sum(total.values()) if wanted == ANY else total.get(wanted, 0)

    def goal(self, n: int) -> tuple[int, int]:
        """(GPUs as the lens counts them, CPUs) that must be free on a node before it is of use."""
        if not self.need.whole:
            return self.least, self.need.cpus
        node = self.space.nodes[n]
        return sum(node.total.values()), max(self.need.cpus, node.cpus_total or 0)

    def offer(self, n: int, gpus: int, cpus: int) -> int:
        """What a node with so much free adds to a job: 1 (a node), or GPUs if they may spread."""
        least, least_cpus = self.goal(n)
        if gpus < least or cpus < least_cpus:
            return 0
        if self.need.gpus is not None:
            return 1
        return self.steps(self.owns(n) if self.need.whole else gpus)

    def steps(self, gpus: int) -> int:
        """What of so many GPUs a job can use whose GPUs may spread."""
        return gpus - gpus % self.need.step

    def offers(self, gpus: Sequence[int], cpus: Sequence[int]) -> list[int]:
        """`offer` of every node at once, in the same order; 0 for one that is no member."""
        rows = zip(self.member, gpus, cpus, strict=True)
        least, least_cpus = self.least, self.need.cpus
        if self.need.whole:
            return [self.offer(n, g, c) if in_it else 0 for n, (in_it, g, c) in enumerate(rows)]
        if self.need.gpus is None:
            step = self.need.step
            return [
                g - g % step if in_it and g >= least and c >= least_cpus else 0
                for in_it, g, c in rows
            ]
        return [1 if in_it and g >= least and c >= least_cpus else 0 for in_it, g, c in rows]

    def idle(self) -> Iterator[int]:
        """Nodes that can be used as they are. First come those on which least would be left over:
        with the fewest free GPUs, or with the most for a job that takes all of them."""
        order = self.by_price()
        end = bisect_left(order, (1, 0, 0))
        for _, _, n in order[:end] if self.need.gpus is not None else order[:end][::-1]:
            if self.offer(n, self.lens.free[n], self.space.cpus[n]):
                yield n

    def by_price(self) -> list[tuple[int, int, int]]:
        """(ranks that must go at least before it is of use, free GPUs, node), cheapest first."""
        for n in set(self.space.changed[self._seen :]):
            if not self.member[n]:
                continue
            old, new = self._keys.pop(n, None), self._key(n)
            if old is not None:
                del self._order[bisect_left(self._order, old)]
            if new is not None:
                self._keys[n] = new
                insort(self._order, new)
        self._seen = len(self.space.changed)
        return self._order

    def _key(self, n: int) -> tuple[int, int, int] | None:
        free = self.lens.free[n]
        floor = self.lens.floor(n, max(0, self.goal(n)[0] - free))
        return None if floor is None else (floor, free, n)


class Reach:
    """What each node of a ground offers once all runs have gone that may (`yields`, by run)."""

    def __init__(self, ground: Ground, yields: bytes):
        self.ground = ground
        self.yields = yields
        space = ground.space
        self.gpus = ground.lens.free.copy()
        self.cpus = space.cpus.copy()
        for n, gpus, cpus, run in ground.lens.first_parts:
            if yields[run] and space.here[run]:
                self.gpus[n] += gpus
                self.cpus[n] += cpus
        self.offers = ground.offers(self.gpus, self.cpus)
        self.units = sum(self.offers)
        self.places = len(self.offers) - self.offers.count(0)
        self._seen = len(space.changed)
        self._sizes: tuple[Counter[int], int] | None = None

    def refresh(self) -> "Reach":
        """Catch up with what has changed."""
        space = self.ground.space
        for n in set(space.changed[self._seen :]):
            if not self.ground.member[n]:
                continue
            parts = [part for part in self.ground.lens.parts[n] if self.yields[part[-1]]]
            self.gpus[n] = self.ground.lens.free[n] + sum(part[0] for part in parts)
            self.cpus[n] = space.cpus[n] + sum(part[1] for part in parts)
            self._count(n)
            self._sizes = None
        self._seen = len(space.changed)
        return self

    def holds(self, want: Want) -> bool:
        """Whether the job could start if all went that may."""
        units = self.units if want.most is None else sum(nlargest(want.most, self.offers))
        return units >= want.units and self.places >= want.places

    def sizes(self) -> tuple[Counter[int], int]:
        """(nodes by their GPUs, where CPUs suffice; nodes with enough GPUs and too few CPUs)."""
        if self._sizes is None:
            ground, least_cpus = self.ground, self.ground.need.cpus
            rows = zip(ground.member, self.gpus, self.cpus, strict=True)
            counts = Counter(g for in_it, g, c in rows if in_it and c >= least_cpus)
            with_any_cpus = ground.offers(self.gpus, [ENDLESS] * len(self.gpus))
            short = len(with_any_cpus) - with_any_cpus.count(0) - self.places
            self._sizes = counts, short
        return self._sizes

    def _count(self, n: int) -> None:
        offer = self.ground.offer(n, self.gpus[n], self.cpus[n])
        self.places += (offer > 0) - (self.offers[n] > 0)
        self.units += offer - self.offers[n]
        self.offers[n] = offer
