"""A first set of runs for one job, found fast: node by node, or run by run.

Both add runs to a trial until the job starts, and return the runs that looked good (those that were
taken and others), for the search to try in all combinations.
"""

from bisect import insort
from collections.abc import Callable, Iterator
from heapq import heapify, heappop, heappush, nsmallest

from slurm_budget.core.choose_ground import Reach
from slurm_budget.core.choose_place import lightest
from slurm_budget.core.choose_space import ANY, heads
from slurm_budget.core.choose_trial import Price, Trial

SPARE = 8
"""Nodes that are priced beyond those that are needed."""
KNAPSACK = 128
"""Missing GPUs beyond which no knapsack is tried."""


def by_node(trial: Trial, reach: Reach, parts: Callable[[int], int]) -> list[int]:
    """Add the runs of the cheapest nodes until there are enough nodes (or, without the `barred`
    runs, no more to be had). Returns the runs of all nodes that were priced, those of the cheapest
    node first. `share`: into how many parts the price of a run of several nodes is split at most.
    """
    space = trial.ground.space
    missing = trial.want.places - trial.places
    prices = _prices(trial, reach, parts)
    order = sorted(prices, key=lambda n: (prices[n][0], n))
    likely = [run for n in order for run in prices[n][1]]

    # Where the last of the nodes cost the same, the ones near the others go first.
    edge = heads(prices[order[missing - 1]][0])
    sure = [n for n in prices if heads(prices[n][0]) < edge]
    equals = sorted(n for n in prices if heads(prices[n][0]) == edge)
    over = {n: trial.gpus(n) + sum(space.sizes[run] for run in prices[n][1]) for n in equals}
    near = lightest(space, [*trial.idle, *sure], equals, over, missing - len(sure))
    favoured = frozenset(near)

    heap = [(heads(cost), n not in favoured, cost, n) for n, (cost, _) in prices.items()]
    heapify(heap)
    while trial.places < trial.want.places:
        _, last, cost, n = heappop(heap)
        price = _price(trial, n, reach, parts)
        if price is None:
            continue
        if price[0] != cost:  # others have gone since that count here too
            heappush(heap, (heads(price[0]), last, price[0], n))
            continue
        for run in price[1]:
            trial.add(run)
        for m in {held[0] for run in price[1] for held in space.holds[run]} - {n}:
            if price := _price(trial, m, reach, parts):
                heappush(heap, (heads(price[0]), m not in favoured, price[0], m))
    return likely


def _prices(trial: Trial, reach: Reach, parts: Callable[[int], int]) -> dict[int, Price]:
    """The prices of the cheapest nodes, and of some more."""
    missing = trial.want.places - trial.places
    prices: dict[int, Price] = {}
    costs: list[int] = []
    for floor, _, n in trial.ground.by_price():
        if len(costs) >= missing + SPARE:
            beyond = heads(floor) > heads(costs[missing - 1])
            if beyond or len(costs) >= 4 * missing + 64:
                break
        if price := _price(trial, n, reach, parts):
            prices[n] = price
            insort(costs, price[0])
    return prices


def _price(trial: Trial, n: int, reach: Reach, parts: Callable[[int], int]) -> Price | None:
    """What makes a node of use that is not; None if nothing does."""
    if not reach.offers[n] or trial.serves(n):
        return None
    return trial.price(n, reach.yields, parts)


def by_run(trial: Trial, reach: Reach) -> list[int]:
    """Add runs until the GPUs suffice, wherever they are. Returns runs that were looked at."""
    space = trial.ground.space
    short = trial.want.units - trial.units
    usable = (run for run in yielding(reach) if run not in trial.chosen)
    likely: list[int] = []
    if 0 < short <= KNAPSACK:
        best: list[tuple[int, tuple[int, ...]] | None] = [(0, ()), *[None] * short]
        room = [0, *(-(-short // gpus) for gpus in range(1, short + 1))]
        for run in usable:
            whole = best[short]
            if whole is not None and heads(space.ranks[run])[0] > heads(whole[0])[0]:
                break
            gain = min(short, _gain(trial, run))
            if not gain or not room[gain]:
                continue  # as many of this size as could be of use are in, all of them cheaper
            room[gain] -= 1
            likely.append(run)
            for have in range(short, 0, -1):
                before = best[max(0, have - gain)]
                if before is None:
                    continue
                cost = before[0] + space.ranks[run]
                now = best[have]
                if now is None or cost < now[0]:
                    best[have] = cost, (*before[1], run)
        for run in (best[short] or (0, ()))[1]:
            trial.add(run)
    if not trial.enough():
        rest = [run for run in yielding(reach) if run not in trial.chosen]
        each = {
            run: (not (gain := _gain(trial, run)), space.ranks[run] // max(1, gain), run)
            for run in rest
        }
        for run in sorted(rest, key=each.__getitem__):
            if trial.enough():
                break
            trial.add(run)
            likely.append(run)
    return likely


def evenly(trial: Trial, reach: Reach, most: int) -> list[int]:
    """Add runs so that the cheapest `most` nodes have equal parts of the GPUs, then by run. Returns
    runs that were looked at."""
    ground, each = trial.ground, -(-trial.want.units // most)
    floors = (
        (floor, n)
        for n in ground.members
        if (floor := ground.lens.floor(n, max(0, each - ground.lens.free[n]))) is not None
    )
    prices = [
        (price, n)
        for _, n in nsmallest(most + SPARE, floors)
        if (price := trial.price(n, reach.yields, lambda run: 1, each)) is not None
    ]
    cheapest = nsmallest(most, prices)
    for run in {run for (_, runs), _ in cheapest for run in runs}:
        trial.add(run)
    return [run for (_, runs), _ in prices for run in runs] + by_run(trial, reach)


def _gain(trial: Trial, run: int) -> int:
    """GPUs that a run has on the ground."""
    lens_type = trial.ground.lens.gpu_type
    return sum(
        gpus
        for n, kind, gpus, _ in trial.ground.space.holds[run]
        if trial.ground.member[n] and lens_type in (ANY, kind)
    )


def yielding(reach: Reach) -> Iterator[int]:
    """The runs that may go, in the order of lost work."""
    here = reach.ground.space.here
    return (run for run, may in enumerate(reach.yields) if may and here[run])
