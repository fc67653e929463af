"""The cluster as the choice sees it: what is free on each node, and which runs could free more.

`Space` is the only thing here that changes: `release` lets a run go, `take` starts a job. Nodes and
runs are numbered: nodes in the order of the topology (so that neighbours have near numbers), runs
by lost work.

A run's `rank` packs (lost work, one run, age) into one integer, so that sums of ranks compare like
the tuples of their sums:

    >>> cheap, dear = rank(0, age=9), rank(5, age=0)
    >>> 3 * cheap < dear and spell(3 * cheap + dear) == (5, 4, 27)
    True
"""

from collections.abc import Iterable, Mapping

from slurm_budget.state.choose import Candidate, NodeSpace

ANY = ""
"""The type that a job asks for when any will do."""
UNSURE = "?"
"""The type of GPUs that an untyped run holds on a node of several types: good for ANY alone."""
ENDLESS = 1 << 60
"""CPUs of a node on which they do not bind."""

_AGE_BITS, _COUNT_BITS = 44, 20

Held = tuple[int, str, int, int]
"""(node, GPU type, GPUs, CPUs) that one run has."""
Part = tuple[int, int, int]
"""(GPUs of the type in question, CPUs, run): what one run has on one node."""


def rank(lost: int, age: int) -> int:
    """(GPU-milliseconds lost, 1 run, seconds of age) as one integer that can be added up."""
    return (lost << (_AGE_BITS + _COUNT_BITS)) + (1 << _AGE_BITS) + age


def spell(ranks: int) -> tuple[int, int, int]:
    """(lost, runs, age) of a sum of ranks."""
    heads = ranks >> _AGE_BITS
    return heads >> _COUNT_BITS, heads & ((1 << _COUNT_BITS) - 1), ranks & ((1 << _AGE_BITS) - 1)


def heads(ranks: int) -> tuple[int, int]:
    """(lost, runs) of a sum of ranks: what is compared before the place is."""
    return spell(ranks)[:2]


class Space:
    """Nodes and runs by number. What is free changes by `release` and `take` alone."""

    def __init__(self, nodes: Mapping[str, NodeSpace], candidates: Iterable[Candidate]):
        self.nodes = sorted(nodes.values(), key=lambda node: (node.switches[::-1], node.name))
        self.runs = sorted(candidates, key=lambda run: (max(run.lost, 0), run.job_id))
        self.free = [dict(node.free) for node in self.nodes]
        self.cpus = [ENDLESS if n.cpus_free is None else n.cpus_free for n in self.nodes]
        self.here = bytearray(b"\1" * len(self.runs))
        newest = max((run.started for run in self.runs), default=0)
        self.ranks = [rank(max(run.lost, 0), newest - run.started) for run in self.runs]
        self.sizes = [sum(run.gpus_on.values()) for run in self.runs]
        numbers = {node.name: n for n, node in enumerate(self.nodes)}
        self.holds = [self._holdings(run, numbers) for run in self.runs]
        self.on: list[list[tuple[str, int, int, int]]] = [[] for _ in self.nodes]
        for run, held in enumerate(self.holds):
            for n, kind, gpus, cpus in held:
                self.on[n].append((kind, gpus, cpus, run))
        self.changed: list[int] = []
        """Every change of a node, oldest first; what is derived from nodes catches up from here."""
        self.releases = 0
        """Runs that have been let go; until the next one, what is free grows less alone."""
        self._lenses: dict[str, Lens] = {}

    def _holdings(self, run: Candidate, numbers: Mapping[str, int]) -> list[Held]:
        """What a run has on the nodes that we know."""
        out = []
        for name in sorted({*run.gpus_on, *run.cpus_on} & numbers.keys()):
            total = self.nodes[numbers[name]].total
            if run.gpu_type in total:
                kind = run.gpu_type
            else:  # not said, or said otherwise than the node says it: sure only where there is one
                kind = next(iter(total)) if len(total) == 1 else UNSURE
            cpus = run.cpus_on.get(name, 0)
            out.append((numbers[name], kind, run.gpus_on.get(name, 0), cpus))
        return out

    def lens(self, gpu_type: str) -> "Lens":
        """Everything measured in GPUs of one type."""
        if gpu_type not in self._lenses:
            self._lenses[gpu_type] = Lens(self, gpu_type)
        return self._lenses[gpu_type]

    def release(self, run: int) -> None:
        """Let a run go: what it holds is free."""
        self.here[run] = 0
        self.releases += 1
        for n, kind, gpus, cpus in self.holds[run]:
            self.on[n] = [part for part in self.on[n] if part[-1] != run]
            self._add(n, kind, gpus, cpus)

    def take(self, n: int, gpu_type: str, gpus: int, cpus: int, whole: bool) -> None:
        """Start a job on a node. One that takes any type gets first what only such jobs can have,
        then of the type of which most is free."""
        free = self.free[n]
        if whole:
            for kind in free:
                self._add(n, kind, -free[kind], 0)
            cpus = self.cpus[n]
        elif gpu_type != ANY:
            self._add(n, gpu_type, -gpus, 0)
        else:
            for kind in sorted(free, key=lambda kind: (kind != UNSURE, -free[kind], kind)):
                part = min(free[kind], gpus)
                self._add(n, kind, -part, 0)
                gpus -= part
        self._add(n, ANY, 0, -cpus)

    def _add(self, n: int, kind: str, gpus: int, cpus: int) -> None:
        if gpus:
            self.free[n][kind] = self.free[n].get(kind, 0) + gpus
        if self.nodes[n].cpus_free is not None:
            self.cpus[n] += cpus
        for lens in self._lenses.values():
            lens.read(n)
        self.changed.append(n)


class Lens:
    """A Space in GPUs of one type: what is free, what each run has, the least that more costs."""

    def __init__(self, space: Space, gpu_type: str):
        self.space = space
        self.gpu_type = gpu_type
        self.free = [0] * len(space.nodes)
        self.parts: list[list[Part]] = [[] for _ in space.nodes]
        self._floors: list[list[int] | None] = [None] * len(space.nodes)
        for n in range(len(space.nodes)):
            self.read(n)
        self.first_parts = [(n, *part) for n, parts in enumerate(self.parts) for part in parts]
        """(node, GPUs, CPUs, run) of all runs that were here when the lens was made."""

    def read(self, n: int) -> None:
        """Look at a node again."""
        free = self.space.free[n]
        wanted = self.gpu_type
        self.free[n] = sum(free.values()) if wanted == ANY else free.get(wanted, 0)
        self.parts[n] = [
            (gpus if wanted in (ANY, kind) else 0, cpus, run)
            for kind, gpus, cpus, run in self.space.on[n]
        ]
        self._floors[n] = None

    def floor(self, n: int, gpus: int) -> int | None:
        """No less than this sum of ranks goes when so many more GPUs get free on a node, whoever
        may yield; None: so many cannot. A run of several nodes weighs on each by its part only."""
        low = self._floors[n]
        if low is None:
            low = self._floors[n] = self._floor(n)
        return low[gpus] if gpus < len(low) else None

    def _floor(self, n: int) -> list[int]:
        low = [0]
        for gpus, _, run in self.parts[n]:
            cost = self.space.ranks[run] // len(self.space.holds[run])
            before = len(low)
            low += [low[max(0, more - gpus)] + cost for more in range(before, before + gpus)]
            for more in range(before - 1, 0, -1):
                low[more] = min(low[more], low[max(0, more - gpus)] + cost)
        return low
