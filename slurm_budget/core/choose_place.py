"""On which nodes a job starts, of all that could take it.

In this order: the fewest nodes; the fewest GPUs left over on them (whole nodes stay whole, and what
is freed is used); the fewest switches above them. A node with the path ("leaf1", "spine") has two
switches above it, one with the path ("block1",) has one block; so two nodes under one leaf beat two
under one spine, in a tree as in blocks.

All sets are compared while there are at most 500; else the job goes to the smallest switch that has
room for it, and inside that to the fullest switches first.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import combinations
from math import comb

from slurm_budget.core.choose_space import Space
from slurm_budget.core.choose_trial import Trial

SETS = 500

Placement = tuple[tuple[int, int, int], tuple[int, ...]]
"""((nodes, GPUs left over, switches), the nodes in the order of the topology)."""


def switches(space: Space, nodes: Iterable[int]) -> int:
    """How many switches (or blocks) stand above these nodes."""
    return len({switch for n in nodes for switch in space.nodes[n].switches})


def place(trial: Trial) -> Placement:
    """The best nodes for a job that starts in `trial`."""
    space, need, want = trial.ground.space, trial.ground.need, trial.want
    usable = sorted({*trial.idle, *(n for n in trial.gone if trial.serves(n))})
    # What a run frees where the job does not go is left over too: count all of it, then take off
    # what is freed on the job's nodes, so that one sum over the nodes decides.
    freed = sum(space.sizes[run] for run in trial.chosen)
    over = {n: (0 if need.whole else trial.gpus(n)) - trial.gone.get(n, (0, 0))[0] for n in usable}
    if need.gpus is not None:
        nodes = lightest(space, (), usable, over, want.places)
        used = 0 if need.whole else want.places * need.gpus
    else:
        nodes = _fewest(trial, usable, over)
        used = 0 if need.whole else want.units
    left = freed + sum(over[n] for n in nodes) - used
    return (len(nodes), left, switches(space, nodes)), tuple(sorted(nodes))


def shares(trial: Trial, nodes: Sequence[int]) -> list[tuple[int, int]]:
    """(node, GPUs) that the job takes there."""
    if trial.ground.need.gpus is not None:
        return [(n, trial.ground.need.gpus) for n in nodes]
    step = trial.ground.need.step
    rest = trial.want.units - len(nodes) * step
    out = []
    for n in sorted(nodes, key=lambda n: (-_gives(trial, n), n)):
        more = min(rest, _gives(trial, n) - step)
        rest -= more
        out.append((n, step + more))
    return out


def _gives(trial: Trial, n: int) -> int:
    ground = trial.ground
    return ground.steps(ground.owns(n) if ground.need.whole else trial.gpus(n))


def lightest(
    space: Space, home: Sequence[int], options: Sequence[int], over: Mapping[int, int], count: int
) -> tuple[int, ...]:
    """`count` of `options` with the least left over; of equals those near each other and `home`."""
    edge = sorted(over[n] for n in options)[count - 1]
    fixed = [n for n in options if over[n] < edge]
    equals = [n for n in options if over[n] == edge]
    return (*fixed, *nearest(space, [*home, *fixed], equals, count - len(fixed)))


def _fewest(trial: Trial, usable: Sequence[int], over: Mapping[int, int]) -> tuple[int, ...]:
    """As few nodes as hold all the GPUs."""
    units = trial.want.units
    gives = {n: _gives(trial, n) for n in usable}
    by_size = sorted(usable, key=lambda n: (-gives[n], over[n], n))
    count, held = 0, 0
    while count < trial.want.places or held < units:
        held += gives[by_size[count]]
        count += 1
    if comb(len(usable), count) <= SETS:
        fitting = (s for s in combinations(usable, count) if sum(gives[n] for n in s) >= units)
        return min(
            fitting,
            key=lambda s: (sum(over[n] for n in s), switches(trial.ground.space, s), s),
        )
    most = by_size[: count - 1]
    rest = units - sum(gives[n] for n in most)
    last = min(
        (n for n in by_size[count - 1 :] if gives[n] >= rest),
        key=lambda n: (over[n], switches(trial.ground.space, (*most, n)), n),
    )
    return (*most, last)


def nearest(
    space: Space, fixed: Collection[int], options: Sequence[int], count: int
) -> tuple[int, ...]:
    """`count` of `options` that, together with `fixed`, stand under the fewest switches."""
    if count >= len(options) or not count:
        return tuple(options[:count])
    if comb(len(options), count) <= SETS:
        return min(combinations(options, count), key=lambda s: (switches(space, (*fixed, *s)), s))
    home = {switch for n in fixed for switch in space.nodes[n].switches}
    room = Counter(switch for n in options for switch in space.nodes[n].switches)
    fitting = [switch for switch, nodes in room.items() if nodes >= count]
    if fitting:
        best = min(fitting, key=lambda switch: (switch not in home, room[switch], switch))
        options = [n for n in options if best in space.nodes[n].switches]
    room = Counter(switch for n in options for switch in space.nodes[n].switches)

    def fullest(n: int) -> tuple[list[tuple[bool, int, str]], int]:
        path = reversed(space.nodes[n].switches)
        return [(switch not in home, -room[switch], switch) for switch in path], n

    return tuple(sorted(options, key=fullest)[:count])
