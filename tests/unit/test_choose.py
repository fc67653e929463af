"""core.choose against brute force, and the promises that hold at any size."""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slurm_budget.core.choose import choose
from slurm_budget.state.choose import Candidate, Choice, Demand, Leave, NodeSpace

HOUR = 3_600_000
GPU = frozenset({"gpu"})
UNSURE = "?"


def node(name: str, total: int = 8, free: int = 0, kind: str = "h100", **more: object) -> NodeSpace:
    given = {"partitions": GPU, **more}
    return NodeSpace(name, {kind: total}, {kind: free}, **given)  # type: ignore[arg-type]


def cluster(*nodes: NodeSpace) -> dict[str, NodeSpace]:
    return {one.name: one for one in nodes}


def run(job: int, lost: int = HOUR, started: int = 0, kind: str = "h100", **on: int) -> Candidate:
    return Candidate(job, "over", "bob", on, kind, started, lost)


def gang(nodes: int, per_node: int, job: int = 100, **more: object) -> Demand:
    given = {"partitions": GPU, "gpu_type": "h100", "total": nodes * per_node, **more}
    return Demand(job, "owed", "ann", nodes=nodes, per_node=per_node, **given)  # type: ignore[arg-type]


def loose(total: int, nodes: int = 1, job: int = 100, **more: object) -> Demand:
    given = {"partitions": GPU, "gpu_type": "h100", **more}
    return Demand(job, "owed", "ann", total=total, nodes=nodes, per_node=None, **given)  # type: ignore[arg-type]


def anyone(run: Candidate, job: Demand) -> bool:
    return True


def decide(
    demands: Sequence[Demand] | Demand,
    nodes: Mapping[str, NodeSpace],
    runs: Sequence[Candidate],
    may_yield: Callable[[Candidate, Demand], bool] = anyone,
    max_gpus: int = 10**6,
) -> list[Choice | Leave]:
    asked = [demands] if isinstance(demands, Demand) else demands
    return choose(asked, nodes, runs, may_yield, max_gpus=max_gpus)


def victims(answer: Choice | Leave) -> list[int]:
    assert isinstance(answer, Choice), answer
    return [run.job_id for run in answer.victims]


# ---- The rules, played by hand -------------------------------------------------------------


@dataclass
class World:
    """What is free, by node and type; the rules of starting a job, written as plainly as can be."""

    nodes: Mapping[str, NodeSpace]
    free: dict[str, dict[str, int]] = field(default_factory=dict)
    cpus: dict[str, int | None] = field(default_factory=dict)

    @classmethod
    def of(cls, nodes: Mapping[str, NodeSpace]) -> "World":
        return cls(
            nodes,
            {name: dict(one.free) for name, one in nodes.items()},
            {name: one.cpus_free for name, one in nodes.items()},
        )

    def without(self, runs: Sequence[Candidate]) -> "World":
        after = World(self.nodes, {n: dict(f) for n, f in self.free.items()}, dict(self.cpus))
        for gone in runs:
            for name, count in gone.gpus_on.items():
                if name in self.nodes:
                    types = self.nodes[name].total
                    kind = gone.gpu_type
                    if kind not in types:
                        kind = next(iter(types)) if len(types) == 1 else UNSURE
                    after.free[name][kind] = after.free[name].get(kind, 0) + count
            for name, count in gone.cpus_on.items():
                have = after.cpus.get(name)
                if have is not None:
                    after.cpus[name] = have + count
        return after

    def usable(self, name: str, job: Demand) -> int:
        """GPUs that the job could use there; 0 if the node is of no use to it."""
        one, free, cpus = self.nodes[name], self.free[name], self.cpus[name]
        wanted = job.gpu_type
        gpus = free.get(wanted, 0) if wanted else sum(free.values())
        if cpus is not None and cpus < job.cpus_per_node:
            return 0
        if job.exclusive:
            whole = sum(free.values()) == sum(one.total.values())
            if not whole or (cpus is not None and cpus < (one.cpus_total or 0)):
                return 0
            gpus = one.total.get(wanted, 0) if wanted else sum(one.total.values())
        if job.features and not any(wish <= one.features for wish in job.features):
            return 0
        return gpus if gpus >= (job.per_node or 1) else 0

    def starts_on(self, job: Demand, names: Sequence[str]) -> bool:
        """Whether it can start on exactly these nodes."""
        ones = [self.nodes[name] for name in names]
        gpus = [self.usable(name, job) for name in names]
        together = any(all(p in one.partitions for one in ones) for p in job.partitions)
        if not all(gpus) or not together or len({one.island for one in ones}) > 1:
            return False
        if job.per_node is not None:
            return len(names) == job.nodes
        return len(names) >= job.nodes and sum(gpus) >= job.total >= len(names)

    def places(self, job: Demand) -> Iterator[tuple[str, ...]]:
        names = [name for name in sorted(self.nodes) if self.usable(name, job)]
        most = job.nodes if job.per_node is not None else len(names)
        for count in range(job.nodes, most + 1):
            yield from (set_ for set_ in combinations(names, count) if self.starts_on(job, set_))

    def start(self, job: Demand, names: Sequence[str]) -> None:
        assert self.starts_on(job, names), (job, names)
        rest = job.total - len(names)
        for name in sorted(
            names, key=lambda n: (-self.usable(n, job), self.nodes[n].switches[::-1], n)
        ):
            free = self.free[name]
            if job.per_node is not None:
                left = job.per_node
            else:
                left = 1 + min(rest, self.usable(name, job) - 1)
                rest -= left - 1
            cpus = self.cpus[name]
            if job.exclusive:
                free.clear()
                self.cpus[name] = None if cpus is None else 0
                continue
            self.cpus[name] = None if cpus is None else cpus - job.cpus_per_node
            kinds = [job.gpu_type] if job.gpu_type else sorted(
                free, key=lambda kind: (kind != UNSURE, -free[kind], kind)
            )
            for kind in kinds:
                part = min(left, free[kind])
                free[kind] -= part
                left -= part
            assert left == 0


Key = tuple[int, int, int, int, int, int]


def key(before: World, job: Demand, gone: Sequence[Candidate], names: Sequence[str]) -> Key:
    """The objective: lost, runs, nodes, GPUs left over, switches, age."""
    after = before.without(gone)
    left = sum(sum(one.gpus_on.values()) for one in gone)
    for name in names:
        kinds = [job.gpu_type] if job.gpu_type and not job.exclusive else [*after.free[name]]
        kinds = sorted({*kinds, *before.free[name]} if not job.gpu_type or job.exclusive else kinds)
        was = sum(before.free[name].get(kind, 0) for kind in kinds)
        now = sum(after.free[name].get(kind, 0) for kind in kinds)
        left += (0 if job.exclusive else now) - (now - was)
    if not job.exclusive:
        left -= job.total
    switches = {switch for name in names for switch in before.nodes[name].switches}
    age = sum(10**6 - one.started for one in gone)
    return sum(one.lost for one in gone), len(gone), len(names), left, len(switches), age


def best_key(before: World, job: Demand, runs: Sequence[Candidate]) -> Key | None:
    """The least key of all sets of runs and all sets of nodes."""
    sets = (set_ for count in range(len(runs) + 1) for set_ in combinations(runs, count))
    best: Key | None = None
    for gone in sorted(sets, key=lambda s: (sum(one.lost for one in s), len(s))):
        if best is not None and (sum(one.lost for one in gone), len(gone)) > best[:2]:
            break
        for names in before.without(gone).places(job):
            one = key(before, job, gone, names)
            best = one if best is None else min(best, one)
    return best


def check(
    answers: Sequence[Choice | Leave],
    demands: Sequence[Demand],
    nodes: Mapping[str, NodeSpace],
    runs: Sequence[Candidate],
    may_yield: Callable[[Candidate, Demand], bool],
    exact: bool = True,
) -> None:
    """Play the answers: each job starts, each victim may go and is needed, none goes twice."""
    world, left = World.of(nodes), list(runs)
    assert [answer.job_id for answer in answers] == [job.job_id for job in demands]
    for answer, job in zip(answers, demands, strict=True):
        allowed = [one for one in left if may_yield(one, job)]
        if isinstance(answer, Leave):
            assert exact is False or best_key(world, job, allowed) is None, answer.reason
            assert next(world.without(allowed).places(job), None) is None, answer.reason
            continue
        assert all(one in allowed for one in answer.victims)
        for one in answer.victims:
            fewer = [other for other in answer.victims if other is not one]
            assert next(world.without(fewer).places(job), None) is None, f"{one} is not needed"
        if exact:
            assert key(world, job, answer.victims, answer.nodes) == best_key(world, job, allowed)
        world = world.without(answer.victims)
        world.start(job, answer.nodes)
        left = [one for one in left if one not in answer.victims]


# ---- Small clusters, drawn -----------------------------------------------------------------


@st.composite
def small(draw: st.DrawFn) -> tuple[dict[str, NodeSpace], list[Candidate], list[Demand]]:
    """Up to 4 nodes, 8 runs and 3 demands. The first of each list of samples is the plain case."""

    def pick(plain: object, *odd: object) -> object:
        return draw(st.sampled_from([plain] * 6 + list(odd)))

    few = st.integers(0, 3)
    nodes: dict[str, NodeSpace] = {}
    room: dict[str, dict[str, int]] = {}
    with_cpus, with_islands, with_types = draw(st.booleans()), draw(st.booleans()), draw(st.booleans())
    for i in range(draw(st.integers(2, 4))):
        kinds = pick(("a",), ("b",), ("a", "b"), ("a", "b"), ("",)) if with_types else ("a",)
        total = {kind: draw(st.integers(2, 4)) for kind in kinds}  # type: ignore[attr-defined]
        room[f"n{i}"] = dict(total)
        leaf = draw(st.sampled_from(["l0", "l1"]))
        nodes[f"n{i}"] = NodeSpace(
            f"n{i}",
            total,
            {},
            pick(frozenset("pq"), frozenset("p"), frozenset("q")),  # type: ignore[arg-type]
            draw(st.sampled_from([(leaf, "top"), (f"x{leaf}", "other"), ()])),
            cpus_free=draw(few) if with_cpus else None,
            features=pick(frozenset("f"), frozenset(), frozenset("fg")),  # type: ignore[arg-type]
            cpus_total=pick(None, 4),  # type: ignore[arg-type]
            island=draw(st.sampled_from("sst")) if with_islands else "",
        )
    runs = []
    for job in range(draw(st.integers(0, 8))):
        kind = draw(st.sampled_from(["a", "a", "b", ""])) if with_types else "a"
        gpus: dict[str, int] = {}
        for name in draw(st.lists(st.sampled_from(sorted(nodes)), max_size=3, unique=True)):
            of = kind if kind in room[name] else max(room[name], key=lambda k: room[name][k])
            count = min(room[name][of], draw(st.integers(1, 4)))
            if count:
                gpus[name] = count
                room[name][of] -= count
        if gpus:
            cpus = {name: draw(few) for name in gpus} if with_cpus else {}
            lost, started = draw(st.integers(0, 6)), draw(st.integers(0, 3))
            runs.append(Candidate(job, f"o{job % 2}", "u", gpus, kind, started, lost, cpus))
    for name, left in room.items():
        free = {kind: draw(st.integers(0, count)) for kind, count in left.items()}
        nodes[name] = replace(nodes[name], free=free)
    demands = []
    for job in range(draw(st.integers(1, 3))):
        count, per_node = draw(st.integers(1, 3)), draw(st.sampled_from([None, None, 1, 2, 2, 3]))
        total = draw(st.integers(count, 7)) if per_node is None else count * per_node
        demands.append(
            Demand(
                job,
                f"d{job % 2}",
                "v",
                pick(frozenset("pq"), frozenset("p")),  # type: ignore[arg-type]
                draw(st.sampled_from(["a", "a", "b", ""])) if with_types else "a",
                total,
                count,
                per_node,
                draw(st.integers(0, 2)) if with_cpus else 0,
                pick(False, True),  # type: ignore[arg-type]
                pick((), (frozenset("f"),), (frozenset("g"), frozenset("h"))),  # type: ignore[arg-type]
            )
        )
    return nodes, runs, demands


@settings(max_examples=400, deadline=None)
@given(small(), st.randoms(use_true_random=False))
def test_small_clusters_equal_brute_force(
    case: tuple[dict[str, NodeSpace], list[Candidate], list[Demand]], chance: random.Random
) -> None:
    nodes, runs, demands = case
    denied = {
        (one.job_id, job.job_id) for one in runs for job in demands if chance.random() < 0.2
    }

    def may_yield(one: Candidate, job: Demand) -> bool:
        return (one.job_id, job.job_id) not in denied

    check(decide(demands, nodes, runs, may_yield), demands, nodes, runs, may_yield)


# ---- Clusters filled by chance -------------------------------------------------------------


def filled(
    chance: random.Random, count: int, size: int = 8, spread: float = 0.3, kept: float = 0.2
) -> tuple[dict[str, NodeSpace], list[Candidate]]:
    """`count` nodes of `size` GPUs under leaves of 4, nearly full: a part `spread` of the runs has
    several nodes, a part `kept` is protected."""
    free = {f"n{i:05}": size for i in range(count)}
    runs: list[Candidate] = []
    for name in free:
        while free[name] and chance.random() < 0.97:
            gpus = min(free[name], chance.choice([1, 1, 2, 4, size, size]))
            on = {name: gpus}
            if chance.random() < spread:
                others = [other for other in free if free[other] >= gpus and other != name]
                most = chance.choice([1, 1, 2, 3])
                on |= dict.fromkeys(chance.sample(others, min(most, len(others))), gpus)
            for used, held in on.items():
                free[used] -= held
            if chance.random() >= kept:
                lost, started = chance.randrange(8 * HOUR), chance.randrange(10**6)
                runs.append(run(len(runs), sum(on.values()) * lost, started, **on))
    nodes = {
        name: node(name, size, left, switches=(f"leaf{int(name[1:]) // 4}", "spine"))
        for name, left in free.items()
    }
    return nodes, runs


def asked(chance: random.Random, count: int, size: int = 8) -> Demand:
    if chance.random() < 0.3:
        total = chance.randint(1, count * size // 2)
        return loose(total, chance.randint(1, min(total, max(1, count // 2))))
    return gang(chance.randint(1, max(1, count // 2)), chance.choice([1, 2, 4, size, size]))
