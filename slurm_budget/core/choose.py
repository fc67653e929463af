"""Which runs make way, so that jobs that are owed GPUs start.

Four nodes of 8 GPUs, all taken. Each run that may be requeued has lost work: what it has computed
since its last checkpoint, in GPU-milliseconds. Below in GPU-hours:

    n1   a: 8 GPUs, 2 h                      n3, n4   d: 8 GPUs on each, 5 h
    n2   b: 4 GPUs, 1 h   c: 4 GPUs, 6 h

A gang needs 2 nodes x 8 GPUs. `a` alone would not do, nor `a` with `b`: 12 GPUs are free then, but
only 8 on one node. `a`, `b` and `c` would do for 9 h. `d` alone does for 5 h: it has two nodes, is
counted once, and frees both.

    >>> def full(name):
    ...     return NodeSpace(name, total={"h100": 8}, free={}, partitions=frozenset({"gpu"}))
    >>> nodes = {name: full(name) for name in ("n1", "n2", "n3", "n4")}
    >>> def run(job, hours, **gpus_on):
    ...     return Candidate(job, "acct", "user", gpus_on, "h100", 0, hours * 3_600_000)
    >>> a, b = run(1, 2, n1=8), run(2, 1, n2=4)
    >>> c, d = run(3, 6, n2=4), run(4, 5, n3=8, n4=8)
    >>> gang = Demand(50, "owed", "ann", frozenset({"gpu"}), "h100", 16, 2, per_node=8)
    >>> def by_job(victims):
    ...     return [victim.job_id for victim in victims]
    >>> [choice] = choose([gang], nodes, [a, b, c, d], lambda run, job: True, max_gpus=64)
    >>> by_job(choice.victims), choice.nodes
    ([4], ('n3', 'n4'))

A second gang behind it finds n3 and n4 taken; what is left for it is dear, but it can start:

    >>> choices = choose([gang, gang], nodes, [a, b, c, d], lambda run, job: True, max_gpus=64)
    >>> by_job(choices[1].victims), choices[1].nodes
    ([1, 2, 3], ('n1', 'n2'))

If `c` did not yield to it, nothing would be requeued for it, and the reason said:

    >>> _, left = choose([gang, gang], nodes, [a, b, c, d], lambda run, job: run != c, max_gpus=64)
    >>> left.reason
    'needs 2 nodes x 8 h100 GPUs; free or yielding: 1 node x 8 and 1 x 4'

**What is best.** Of all sets of runs with which a job starts: the least lost work; then the fewest
runs; then the place (`choose_place`: fewest nodes, least left over, fewest switches above); then
the youngest runs; then the lowest job ids. Work is compared to the millisecond, so a caller to whom
a minute is no reason to prefer a far node rounds `lost`.

**In order.** Each job is decided with what those ahead of it have left: the GPUs that they take are
gone, what their runs free beyond that is there. A job that cannot start takes nothing and stops
nobody. A choice never relies on the runs of a later one, even where those would have spared it one:
if they turn out to have ended, its own would have gone in vain.

**The cap.** `max_gpus` bounds what one sweep frees, so that a mistake costs no more than that. A
job that would exceed it is first tried with runs that fit in what is left, be they dearer. If that
fails it is left, and *no job behind it gets runs in this sweep*: they would take its nodes, be
protected there, and the gang would wait on while small jobs pass it. In the next sweep it is in
front, unless jobs of higher priority are. The first job of a sweep that needs runs gets them
even above the cap, or a gang larger than the cap would never start; so a sweep frees at most
`max_gpus`, or what one job needs. A cap of 0 frees nothing, not even for the first.

**How it is found** is told in `choose_search`: exact while at most 12 runs could matter, else by
node prices, knapsack and a bounded search. What comes out is always enough, and never more: no run
of it can stay. What it does not know: memory, licenses, reservations, `--nodelist`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from slurm_budget.core import choose_words as words
from slurm_budget.core.choose_ground import Ground, Need, Reach, Want
from slurm_budget.core.choose_place import shares
from slurm_budget.core.choose_search import Found, fits, leaner, search
from slurm_budget.core.choose_space import Space
from slurm_budget.state.choose import Candidate, Choice, Demand, Leave, NodeSpace

MayYield = Callable[[Candidate, Demand], bool]

_KEPT = 5_000_000
"""Nodes of all reaches that are kept; each node costs 24 bytes."""


def choose(
    demands: Sequence[Demand],
    nodes: Mapping[str, NodeSpace],
    candidates: Sequence[Candidate],
    may_yield: MayYield,
    *,
    max_gpus: int,
    by_owner: bool = False,
) -> list[Choice | Leave]:
    """One answer for each of `demands`, which come in order of priority, in that order.

    `may_yield(run, job)` says whether a run may go for a job. With `by_owner` it promises to look
    at nothing but account and user of both; then it is asked once for each pair of owners, which
    a cluster of thousands of nodes wants. `max_gpus` are whole GPUs. Job ids of candidates are
    unique. The order of `nodes` and `candidates` makes no difference.
    """
    sweep = _Sweep(nodes, candidates, may_yield, by_owner)
    out: list[Choice | Leave] = []
    freed = 0
    stopped_by: Demand | None = None
    for demand in demands:
        grounds = sweep.grounds(demand)
        found = _best(fits(ground, Want.of(demand)) for ground in grounds)
        if found is None and max_gpus <= 0:
            out.append(Leave(demand.job_id, words.nothing_may_go(demand, max_gpus)))
            continue
        if found is None and stopped_by is not None:
            out.append(Leave(demand.job_id, words.behind(demand, stopped_by, max_gpus)))
            continue
        if found is None:
            reaches = sweep.reaches(demand, grounds)
            found = _cheapest(demand, reaches)
            if found is None:
                out.append(Leave(demand.job_id, words.out_of_reach(demand, reaches)))
                continue
            if freed + found.gpus > max_gpus:
                small = sweep.reaches(demand, grounds, at_most=max_gpus - freed)
                within = _cheapest(demand, small)
                if within is not None and freed + within.gpus <= max_gpus:
                    found = within
                elif freed:
                    stopped_by = demand
                    why = words.over_cap(demand, found.gpus, freed, max_gpus)
                    out.append(Leave(demand.job_id, why))
                    continue
            freed += found.gpus
        out.append(sweep.apply(demand, found))
    return out


def _best(results: Iterable[Found | None]) -> Found | None:
    return min(
        (result for result in results if result is not None),
        key=lambda result: result.key,
        default=None,
    )


def _cheapest(demand: Demand, reaches: Sequence[Reach]) -> Found | None:
    want = Want.of(demand)
    best = _best(search(reach.ground, want, reach) for reach in reaches)
    if best is not None and len(reaches) > 1:
        best = _best([best, *(leaner(best, reach.ground, want) for reach in reaches)])
    return best


class _Sweep:
    """What is kept from one demand to the next."""

    def __init__(
        self,
        nodes: Mapping[str, NodeSpace],
        candidates: Sequence[Candidate],
        may_yield: MayYield,
        by_owner: bool,
    ):
        self.space = Space(nodes, candidates)
        self.may_yield = may_yield
        self.by_owner = by_owner
        self._among: dict[tuple[str, str], list[int]] = {}
        for n, node in enumerate(self.space.nodes):
            for partition in node.partitions:
                self._among.setdefault((partition, node.island), []).append(n)
        self._grounds: dict[tuple[object, ...], list[Ground]] = {}
        self._reaches: dict[tuple[Ground, bytes], Reach] = {}
        self._yields: dict[tuple[str, str], bytes] = {}
        owners = {(run.account, run.user): run for run in self.space.runs}
        self._samples = list(owners.values())
        numbers = {owner: number for number, owner in enumerate(owners)}
        self._owner_of = [numbers[run.account, run.user] for run in self.space.runs]

    def grounds(self, demand: Demand) -> list[Ground]:
        """Where the job could run: one ground for each partition and island."""
        need = Need.of(demand)
        key = (demand.partitions, frozenset(demand.features), demand.excluded, need)
        if key not in self._grounds:
            grounds: dict[tuple[int, ...], Ground] = {}
            for place in sorted(self._among):
                if place[0] in demand.partitions:
                    among = [n for n in self._among[place] if self._may_have(n, demand)]
                    ground = Ground(self.space, among, need, place[0])
                    grounds.setdefault(tuple(ground.members), ground)
            self._grounds[key] = list(grounds.values())
        return self._grounds[key]

    def reaches(
        self, demand: Demand, grounds: Sequence[Ground], at_most: int | None = None
    ) -> list[Reach]:
        """What each ground offers if all went that may; only runs of so many GPUs if given."""
        yields = self._yielding(demand)
        if at_most is not None:
            sizes = self.space.sizes
            yields = bytes(may and size <= at_most for may, size in zip(yields, sizes, strict=True))
            return [Reach(ground, yields) for ground in grounds]
        if not self.by_owner:
            return [Reach(ground, yields) for ground in grounds]
        out = []
        for ground in grounds:
            reach = self._reaches.pop((ground, yields), None) or Reach(ground, yields)
            self._reaches[ground, yields] = reach  # the one that was asked for last stands last
            out.append(reach.refresh())
        while len(self._reaches) * len(self.space.nodes) > _KEPT:
            del self._reaches[next(iter(self._reaches))]
        return out

    def apply(self, demand: Demand, found: Found) -> Choice:
        """Let the runs go and start the job."""
        space, need = self.space, Need.of(demand)
        takes = shares(found.trial, found.nodes)  # as long as the trial still is one
        for run in found.runs:
            space.release(run)
        for n, gpus in takes:
            space.take(n, need.gpu_type, gpus, need.cpus, need.whole)
        return Choice(
            demand.job_id,
            tuple(space.runs[run] for run in found.runs),
            tuple(sorted(space.nodes[n].name for n in found.nodes)),
        )

    def _may_have(self, n: int, demand: Demand) -> bool:
        node = self.space.nodes[n]
        if node.name in demand.excluded:
            return False
        return not demand.features or any(wanted <= node.features for wanted in demand.features)

    def _yielding(self, demand: Demand) -> bytes:
        """For each run whether it may go for this job."""
        if not self.by_owner:
            return bytes(self.may_yield(run, demand) for run in self.space.runs)
        owner = demand.account, demand.user
        if owner not in self._yields:
            verdicts = [self.may_yield(sample, demand) for sample in self._samples]
            self._yields[owner] = bytes(map(verdicts.__getitem__, self._owner_of))
        return self._yields[owner]
