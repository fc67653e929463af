"""core.choose against brute force, and the promises that hold at any size."""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

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


def run(job: int, on: Mapping[str, int], lost: int = HOUR, **more: object) -> Candidate:
    given = {"account": "over", "user": "bob", "gpu_type": "h100", "started": 0, **more}
    return Candidate(job, gpus_on=on, lost=lost, **given)  # type: ignore[arg-type]


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
        if job.per_node is None:
            return gpus // job.step * job.step
        return gpus if gpus >= job.per_node else 0

    def starts_on(self, job: Demand, names: Sequence[str]) -> bool:
        """Whether it can start on exactly these nodes."""
        ones = [self.nodes[name] for name in names]
        gpus = [self.usable(name, job) for name in names]
        together = any(all(p in one.partitions for one in ones) for p in job.partitions)
        if not all(gpus) or not together or len({one.island for one in ones}) > 1:
            return False
        if job.per_node is not None:
            return len(names) == job.nodes
        if len(names) > (job.most_nodes or len(names)):
            return False
        return len(names) >= job.nodes and sum(gpus) >= job.total >= len(names) * job.step

    def places(self, job: Demand) -> Iterator[tuple[str, ...]]:
        names = [name for name in sorted(self.nodes) if self.usable(name, job)]
        most = job.nodes if job.per_node is not None else (job.most_nodes or len(names))
        for count in range(job.nodes, most + 1):
            yield from (set_ for set_ in combinations(names, count) if self.starts_on(job, set_))

    def could_start(self, job: Demand) -> bool:
        """As `places` finding any, by counting: for clusters with too many sets of nodes."""
        pools: dict[tuple[str, str], list[int]] = {}
        for name, one in self.nodes.items():
            if gpus := self.usable(name, job):
                for partition in job.partitions & one.partitions:
                    pools.setdefault((partition, one.island), []).append(gpus)
        total = 0 if job.per_node is not None else job.total
        return any(
            len(pool) >= job.nodes and sum(sorted(pool, reverse=True)[: job.most_nodes]) >= total
            for pool in pools.values()
        )

    def start(self, job: Demand, names: Sequence[str]) -> None:
        assert self.starts_on(job, names), (job, names)
        rest = job.total - len(names) * job.step
        for name in sorted(
            names, key=lambda n: (-self.usable(n, job), self.nodes[n].switches[::-1], n)
        ):
            free = self.free[name]
            if job.per_node is not None:
                left = job.per_node
            else:
                left = job.step + min(rest, self.usable(name, job) - job.step)
                rest -= left - job.step
            cpus = self.cpus[name]
            if job.exclusive:
                free.clear()
                self.cpus[name] = None if cpus is None else 0
                continue
            self.cpus[name] = None if cpus is None else cpus - job.cpus_per_node
            kinds = (
                [job.gpu_type]
                if job.gpu_type
                else sorted(free, key=lambda kind: (kind != UNSURE, -free[kind], kind))
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
    exact: bool,
) -> None:
    """Play the answers: a job is left only if nothing helps it; else it starts, and each victim may
    go, is needed, and goes once. `exact`: and there is no better choice."""
    world, left = World.of(nodes), list(runs)
    assert [answer.job_id for answer in answers] == [job.job_id for job in demands]
    for answer, job in zip(answers, demands, strict=True):
        allowed = [one for one in left if may_yield(one, job)]
        if isinstance(answer, Leave):
            assert not world.without(allowed).could_start(job), answer.reason
            assert not exact or best_key(world, job, allowed) is None, answer.reason
            continue
        assert all(one in allowed for one in answer.victims)
        for one in answer.victims:
            fewer = [other for other in answer.victims if other is not one]
            assert not world.without(fewer).could_start(job), f"{one} is not needed"
        if exact:
            assert key(world, job, answer.victims, answer.nodes) == best_key(world, job, allowed)
        world = world.without(answer.victims)
        world.start(job, answer.nodes)
        left = [one for one in left if one not in answer.victims]


# ---- Small clusters, drawn -----------------------------------------------------------------


@st.composite
def small(draw: st.DrawFn) -> tuple[dict[str, NodeSpace], list[Candidate], list[Demand]]:
    """Up to 4 nodes, 8 runs and 3 demands. The first of each list of samples is the plain case."""

    def pick(plain: Any, *odd: Any) -> Any:
        return draw(st.sampled_from([plain] * 6 + list(odd)))

    few = st.integers(0, 3)
    nodes: dict[str, NodeSpace] = {}
    room: dict[str, dict[str, int]] = {}
    with_cpus, with_islands, with_types = (
        draw(st.booleans()),
        draw(st.booleans()),
        draw(st.booleans()),
    )
    for i in range(draw(st.integers(2, 4))):
        kinds = pick(("a",), ("b",), ("a", "b"), ("a", "b"), ("",)) if with_types else ("a",)
        total = {kind: draw(st.integers(2, 4)) for kind in kinds}
        room[f"n{i}"] = dict(total)
        leaf = draw(st.sampled_from(["l0", "l1"]))
        nodes[f"n{i}"] = NodeSpace(
            f"n{i}",
            total,
            {},
            pick(frozenset("pq"), frozenset("p"), frozenset("q")),
            draw(st.sampled_from([(leaf, "top"), (f"x{leaf}", "other"), ()])),
            cpus_free=draw(few) if with_cpus else None,
            features=pick(frozenset("f"), frozenset(), frozenset("fg")),
            cpus_total=pick(None, 4),
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
        count = draw(st.integers(1, 3))
        per_node = draw(st.sampled_from([None, None, 1, 2, 2, 3]))
        step = pick(1, 2) if per_node is None else 1
        in_all = count * (per_node or 1)
        if per_node is None:
            in_all = draw(st.integers(count, 7 // step if step > 1 else 7)) * step
        demands.append(
            Demand(
                job,
                f"d{job % 2}",
                "v",
                pick(frozenset("pq"), frozenset("p")),
                draw(st.sampled_from(["a", "a", "b", ""])) if with_types else "a",
                in_all,
                count,
                per_node,
                draw(st.integers(0, 2)) if with_cpus else 0,
                pick(False, True),
                pick((), (frozenset("f"),), (frozenset("g"), frozenset("h"))),
                draw(st.sampled_from([None, count, count + 1])) if per_node is None else None,
                step,
            )
        )
    return nodes, runs, demands


@settings(max_examples=400, deadline=None)
@given(small(), st.randoms(use_true_random=False))
def test_small_clusters_equal_brute_force(
    case: tuple[dict[str, NodeSpace], list[Candidate], list[Demand]], chance: random.Random
) -> None:
    nodes, runs, demands = case
    denied = {(one.job_id, job.job_id) for one in runs for job in demands if chance.random() < 0.2}

    def may_yield(one: Candidate, job: Demand) -> bool:
        return (one.job_id, job.job_id) not in denied

    check(decide(demands, nodes, runs, may_yield), demands, nodes, runs, may_yield, exact=True)


# ---- Clusters filled by chance -------------------------------------------------------------


def filled(
    chance: random.Random, count: int, size: int = 8, spread: float = 0.3, kept: float = 0.2
) -> tuple[dict[str, NodeSpace], list[Candidate]]:
    """`count` nodes of `size` GPUs under leaves of 4, nearly full: a part `spread` of the runs has
    several nodes, a part `kept` is protected."""
    names = [f"n{i:05}" for i in range(count)]
    free = dict.fromkeys(names, size)
    runs: list[Candidate] = []
    for name in names:
        while free[name] and chance.random() < 0.97:
            gpus = min(free[name], chance.choice([1, 1, 2, 4, size, size]))
            on = {name: gpus}
            if chance.random() < spread:
                others = [other for other in names if free[other] >= gpus and other != name]
                most = chance.choice([1, 1, 2, 3])
                on |= dict.fromkeys(chance.sample(others, min(most, len(others))), gpus)
            for used, held in on.items():
                free[used] -= held
            if chance.random() >= kept:
                lost, started = chance.randrange(8 * HOUR), chance.randrange(10**6)
                account = f"team{chance.randrange(5)}"
                lost *= sum(on.values())
                runs.append(run(len(runs), on, lost, started=started, account=account))
    nodes = {
        name: node(name, size, left, switches=(f"leaf{int(name[1:]) // 4}", "spine"))
        for name, left in free.items()
    }
    return nodes, runs


def asked(chance: random.Random, count: int, size: int = 8) -> Demand:
    """A job for half of so many nodes at most."""
    if chance.random() < 0.3:
        total = chance.randint(1, count * size // 2)
        return loose(total, chance.randint(1, min(total, max(1, count // 2))))
    return gang(chance.randint(1, max(1, count // 2)), chance.choice([1, 2, 4, size, size]))


def by_team(run: Candidate, job: Demand) -> bool:
    return run.account != f"team{job.job_id % 5}"


@settings(max_examples=40, deadline=None)
@given(st.randoms(use_true_random=False), st.integers(5, 40))
def test_every_choice_is_enough_and_none_of_it_in_vain(chance: random.Random, count: int) -> None:
    nodes, runs = filled(chance, count)
    demands = [replace(asked(chance, count), job_id=job) for job in range(8)]
    answers = decide(demands, nodes, runs, by_team)
    check(answers, demands, nodes, runs, by_team, exact=False)


@settings(max_examples=40, deadline=None)
@given(st.randoms(use_true_random=False), st.integers(1, 12))
def test_the_order_of_nodes_and_runs_makes_no_difference(chance: random.Random, count: int) -> None:
    nodes, runs = filled(chance, count)
    runs = [replace(one, lost=one.lost // HOUR) for one in runs]  # many are equal
    demands = [replace(asked(chance, count), job_id=job) for job in range(5)]
    before = decide(demands, nodes, runs, by_team, max_gpus=16)
    names = list(nodes)
    chance.shuffle(names)
    chance.shuffle(runs)
    assert decide(demands, {n: nodes[n] for n in names}, runs, by_team, max_gpus=16) == before


@settings(max_examples=20, deadline=None)
@given(st.randoms(use_true_random=False), st.integers(1, 12))
def test_by_owner_answers_the_same(chance: random.Random, count: int) -> None:
    nodes, runs = filled(chance, count)
    owners = [f"team{job}" for job in range(5)] * 2
    demands = [replace(asked(chance, count), job_id=n, account=a) for n, a in enumerate(owners)]

    def others(run: Candidate, job: Demand) -> bool:
        return run.account > job.account

    one_by_one = choose(demands, nodes, runs, others, max_gpus=10**6)
    assert choose(demands, nodes, runs, others, max_gpus=10**6, by_owner=True) == one_by_one


def test_the_drafts_alone_are_near_the_best(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the search over all sets, which makes clusters of this size exact."""
    monkeypatch.setattr("slurm_budget.core.choose_search.SHORT", 0)
    ratios = []
    for seed in range(300):
        chance = random.Random(seed)
        nodes, runs = filled(chance, 6, size=4, kept=0.1)
        runs, job = runs[:14], asked(chance, 6, size=4)
        [answer] = decide(job, nodes, runs)
        if isinstance(answer, Choice) and answer.victims:
            best = best_key(World.of(nodes), job, runs)
            assert best is not None
            ratios.append(sum(one.lost for one in answer.victims) / best[0])
    assert len(ratios) > 250
    assert min(ratios) >= 1
    assert sum(ratios) / len(ratios) < 1.005
    assert max(ratios) < 1.3


# ---- One rule at a time --------------------------------------------------------------------


def test_an_owed_gang_gets_exactly_two_whole_nodes() -> None:
    nodes = cluster(*(node(f"n{i}") for i in range(4)))
    halves = [run(10 * i + j, {f"n{i}": 4}, HOUR * (1 + i)) for i in range(4) for j in (1, 2)]
    [answer] = decide(gang(2, 8), nodes, halves)
    assert victims(answer) == [1, 2, 11, 12]
    assert answer == Choice(100, tuple(halves[:4]), ("n0", "n1"))


def test_crumbs_on_many_nodes_do_not_make_a_node() -> None:
    nodes = cluster(*(node(f"n{i}") for i in range(4)))
    [answer] = decide(gang(2, 8), nodes, [run(i, {f"n{i}": 4}) for i in range(4)])
    assert isinstance(answer, Leave)
    assert answer.reason == "needs 2 nodes x 8 h100 GPUs; free or yielding: 4 nodes x 4"


def test_gpus_on_two_nodes_may_lie_unevenly_but_on_no_third() -> None:
    """`-N2 --gpus=10`: 8 and 2 do, 4 and 4 and 2 do not."""
    job = loose(10, 2, most_nodes=2)
    nodes = cluster(node("n1", free=8), node("n2", free=2))
    (answer,) = decide(job, nodes, [])
    assert (victims(answer), answer.nodes) == ([], ("n1", "n2"))  # type: ignore[union-attr]
    crumbs = cluster(*(node(f"n{i}", free=4) for i in (1, 2, 3)))
    (answer,) = decide(job, crumbs, [run(1, {"n3": 1}), run(2, {"n3": 3}, lost=9 * HOUR)])
    assert victims(answer) == [2], "one run of 3 makes 7 with 4 elsewhere; one of 1 does not do"
    (answer,) = decide(job, crumbs, [run(1, {"n3": 1})])
    assert isinstance(answer, Leave)
    assert "needs 10 h100 GPUs on 2 nodes; free or yielding: 13 GPUs on 3 nodes" in answer.reason


def test_gpus_by_task_come_two_by_two() -> None:
    """`-n3 --gpus-per-task=2`: 3 and 3 free GPUs are room for two tasks alone."""
    job = loose(6, step=2)
    (answer,) = decide(job, cluster(node("n1", free=3), node("n2", free=3)), [run(1, {"n1": 1})])
    assert victims(answer) == [1]
    (answer,) = decide(job, cluster(node("n1", free=3), node("n2", free=3)), [])
    assert isinstance(answer, Leave)
    assert answer.reason.startswith("needs 6 h100 GPUs on 1 node or more, 2 by 2; free")


def test_a_run_that_may_not_go_never_goes_however_cheap() -> None:
    nodes = cluster(node("n1"), node("n2"))
    cheap, dear = run(1, {"n1": 8}, 0), run(2, {"n2": 8}, 9 * HOUR)
    [answer] = decide(gang(1, 8), nodes, [cheap, dear], lambda run, job: run != cheap)
    assert victims(answer) == [2]


def test_a_run_of_several_nodes_counts_once_and_frees_all_of_them() -> None:
    nodes = cluster(*(node(f"n{i}") for i in range(4)))
    wide = run(1, {"n0": 8, "n1": 8}, 5 * HOUR)
    alone = [run(2, {"n2": 8}, 3 * HOUR), run(3, {"n3": 8}, 3 * HOUR)]
    [answer] = decide(gang(2, 8), nodes, [wide, *alone])
    assert victims(answer) == [1]
    [answer] = decide(gang(1, 8), nodes, [wide, *alone])
    assert victims(answer) == [2]


def test_what_is_left_over_serves_those_behind() -> None:
    nodes = cluster(node("n0"), node("n1"))
    wide = run(1, {"n0": 8, "n1": 8})
    first, second, third = decide([gang(1, 8, 1), gang(1, 8, 2), gang(1, 8, 3)], nodes, [wide])
    assert victims(first) == [1]
    assert second == Choice(2, (), ("n1",))
    assert isinstance(third, Leave)


def test_free_space_is_taken_by_those_that_fit_before_others_count_on_it() -> None:
    nodes = cluster(node("n0", free=8), node("n1"))
    first, second = decide([gang(1, 8, 1), gang(1, 8, 2)], nodes, [run(1, {"n1": 8})])
    assert first == Choice(1, (), ("n0",))
    assert victims(second) == [1]


def test_a_job_that_cannot_start_takes_nothing_from_those_behind() -> None:
    nodes = cluster(node("n0"), node("n1"))
    first, second = decide([gang(2, 8, 1), gang(1, 8, 2)], nodes, [run(1, {"n0": 8})])
    assert isinstance(first, Leave)
    assert victims(second) == [1]


def test_types_count_and_an_untyped_run_on_a_mixed_node_is_good_for_any_type_only() -> None:
    mixed = NodeSpace("n0", {"a100": 4, "h100": 4}, {}, GPU)
    untyped = run(1, {"n0": 4}, gpu_type="")
    for wanted, helped in (("h100", False), ("a100", False), ("", True)):
        [answer] = decide(gang(1, 4, gpu_type=wanted), cluster(mixed), [untyped])
        assert isinstance(answer, Choice) is helped
    [answer] = decide(gang(1, 4), cluster(node("n0", 4)), [untyped])
    assert victims(answer) == [1]


def test_a_gang_stays_in_one_partition_and_on_one_island() -> None:
    parted = cluster(
        node("n0", free=8, partitions=frozenset("p")), node("n1", free=8, partitions=frozenset("q"))
    )
    [answer] = decide(gang(2, 8, partitions=frozenset("pq")), parted, [])
    assert isinstance(answer, Leave)
    islands = cluster(node("n0", free=8, island="a"), node("n1", free=8, island="b"))
    assert isinstance(decide(gang(2, 8), islands, [])[0], Leave)
    assert isinstance(decide(loose(9), islands, [])[0], Leave)


def test_cpus_bind_where_they_are_known() -> None:
    short = cluster(node("n0", free=8, cpus_free=4))
    small = run(1, {"n0": 0}, cpus_on={"n0": 12})
    assert isinstance(decide(gang(1, 8, cpus_per_node=16), short, [])[0], Leave)
    assert victims(decide(gang(1, 8, cpus_per_node=16), short, [small])[0]) == [1]
    unknown = cluster(node("n0", free=8))
    assert victims(decide(gang(1, 8, cpus_per_node=16), unknown, [])[0]) == []
    [left] = decide(gang(1, 8, cpus_per_node=16), short, [])
    assert isinstance(left, Leave)
    assert left.reason == (
        "needs 1 node x 8 h100 GPUs with 16 CPUs each; free or yielding: none "
        "(1 node with enough GPUs lacks CPUs)"
    )


def test_an_exclusive_job_wants_the_whole_node() -> None:
    nodes = cluster(node("n0", free=4, cpus_free=64, cpus_total=128))
    rest = run(1, {"n0": 4}, cpus_on={"n0": 64})
    assert victims(decide(gang(1, 4), nodes, [rest])[0]) == []
    assert victims(decide(gang(1, 4, exclusive=True), nodes, [rest])[0]) == [1]
    part = replace(rest, cpus_on={"n0": 32})  # somebody without GPUs is there too
    assert isinstance(decide(gang(1, 4, exclusive=True), nodes, [part])[0], Leave)


def test_features_are_alternatives_of_sets() -> None:
    nodes = cluster(node("n0", free=8, features=frozenset("ab")), node("n1", free=8))
    wish = (frozenset("ac"), frozenset("b"))
    [answer] = decide(gang(1, 8, features=wish), nodes, [])
    assert answer == Choice(100, (), ("n0",))


def test_equal_work_fewer_runs_first() -> None:
    nodes = cluster(node("n0"), node("n1"))
    two = [run(1, {"n0": 4}, 1), run(2, {"n0": 4}, 1)]
    [answer] = decide(gang(1, 8), nodes, [*two, run(3, {"n1": 8}, 2)])
    assert victims(answer) == [3]


def test_equal_runs_the_fitting_hole_before_a_whole_node() -> None:
    nodes = cluster(node("n0"), node("n1"))
    [answer] = decide(gang(1, 4), nodes, [run(1, {"n0": 8}), run(2, {"n1": 4})])
    assert victims(answer) == [2]
    nodes = cluster(node("n0", free=8), node("n1", free=4))
    assert decide(gang(1, 4), nodes, [])[0] == Choice(100, (), ("n1",))


@pytest.mark.parametrize(
    "paths",
    [
        {"n0": ("leaf0", "core"), "n1": ("leaf1", "core"), "n2": ("leaf1", "core")},
        {"n0": ("block0",), "n1": ("block1",), "n2": ("block1",)},
        {"n0": ("a", "s0", "c"), "n1": ("b", "s1", "c"), "n2": ("d", "s1", "c")},
    ],
    ids=["tree", "block", "spines"],
)
def test_equal_places_the_nearest(paths: dict[str, tuple[str, ...]]) -> None:
    nodes = cluster(*(node(name, switches=path) for name, path in paths.items()))
    [answer] = decide(gang(2, 8), nodes, [run(i, {name: 8}) for i, name in enumerate(paths)])
    assert isinstance(answer, Choice)
    assert answer.nodes == ("n1", "n2")


def test_many_equal_nodes_the_gang_goes_under_one_switch() -> None:
    nodes = cluster(*(node(f"n{i:02}", switches=(f"leaf{i // 7}", "core")) for i in range(49)))
    runs = [run(i, {name: 8}, 0) for i, name in enumerate(nodes) if i >= 4]
    [answer] = decide(gang(7, 8), nodes, runs)
    assert isinstance(answer, Choice)
    assert len({nodes[name].switches for name in answer.nodes}) == 1


def test_equal_places_the_youngest_then_the_lowest_job_id() -> None:
    nodes = cluster(node("n0"), node("n1"), node("n2"))
    runs = [run(1, {"n0": 8}), run(2, {"n1": 8}, started=9), run(3, {"n2": 8}, started=9)]
    [answer] = decide(gang(1, 8), nodes, runs)
    assert victims(answer) == [2]


def test_the_reason_counts_the_sizes_of_nodes_and_the_spread_of_gpus() -> None:
    nodes = cluster(node("n0", free=8), *(node(f"n{i}", free=i) for i in (1, 2, 3)), node("n4"))
    runs = [run(1, {"n1": 3}), run(2, {"n2": 2}), run(3, {"n3": 1})]
    [left] = decide(gang(2, 8), nodes, runs)
    assert isinstance(left, Leave)
    assert left.reason == "needs 2 nodes x 8 h100 GPUs; free or yielding: 1 node x 8 and 3 x 4"
    [left] = decide(loose(30, 2), nodes, runs)
    assert isinstance(left, Leave)
    assert left.reason == (
        "needs 30 h100 GPUs on 2 nodes or more; free or yielding: 20 GPUs on 4 nodes"
    )
    [left] = decide(gang(1, 16), nodes, runs)
    assert isinstance(left, Leave)
    assert left.reason == "needs 1 node x 16 h100 GPUs; no usable node of partition gpu has them"
    [left] = decide(gang(6, 8), nodes, runs)
    assert isinstance(left, Leave)
    assert left.reason == (
        "needs 6 nodes x 8 h100 GPUs; only 5 usable nodes of partition gpu can have them"
    )


# ---- The cap -------------------------------------------------------------------------------

FOUR = cluster(*(node(f"n{i}") for i in range(4)))
ONE_EACH = [run(i, {f"n{i}": 8}, HOUR * (i + 1)) for i in range(4)]


def test_the_job_over_the_cap_is_left_and_nobody_passes_it() -> None:
    jobs = [gang(1, 8, 1), gang(2, 8, 2), gang(1, 8, 3)]
    first, second, third = decide(jobs, FOUR, ONE_EACH, max_gpus=16)
    assert victims(first) == [0]
    assert second == Leave(
        2,
        "needs 2 nodes x 8 h100 GPUs, for which runs with 16 GPUs would go; "
        "8 of at most 16 are freed in this sweep already",
    )
    assert third == Leave(
        3,
        "needs 1 node x 8 h100 GPUs; no more is freed in this sweep, since job 2 ahead of it "
        "would exceed max_gpus 16",
    )


def test_behind_the_cap_jobs_that_need_nobody_still_start() -> None:
    nodes = {**FOUR, "n9": node("n9", free=1)}
    jobs = [gang(1, 8, 1), gang(2, 8, 2), gang(1, 1, 3)]
    assert decide(jobs, nodes, ONE_EACH, max_gpus=16)[2] == Choice(3, (), ("n9",))


def test_a_gang_larger_than_the_cap_starts_when_it_is_first() -> None:
    first, second = decide([gang(3, 8, 1), gang(1, 8, 2)], FOUR, ONE_EACH, max_gpus=16)
    assert victims(first) == [0, 1, 2]
    assert isinstance(second, Leave)


def test_runs_that_fit_under_the_cap_are_taken_before_it_is_exceeded() -> None:
    wide = run(9, {"n2": 8, "n3": 8}, 1)
    [answer] = decide(gang(1, 8), FOUR, [*ONE_EACH[:2], wide], max_gpus=8)
    assert victims(answer) == [0]
    [answer] = decide(gang(1, 8), FOUR, [*ONE_EACH[:2], wide], max_gpus=16)
    assert victims(answer) == [9]


def test_a_cap_of_zero_frees_nothing() -> None:
    [answer] = decide(gang(1, 8), FOUR, ONE_EACH, max_gpus=0)
    assert isinstance(answer, Leave)
    assert answer.reason == (
        "needs 1 node x 8 h100 GPUs and does not fit; max_gpus 0 lets nothing be freed"
    )


@settings(max_examples=50, deadline=None)
@given(st.randoms(use_true_random=False), st.integers(1, 64))
def test_a_sweep_frees_the_cap_or_what_one_job_needs(chance: random.Random, cap: int) -> None:
    nodes, runs = filled(chance, 10)
    demands = [replace(asked(chance, 6), job_id=job) for job in range(8)]
    answers = decide(demands, nodes, runs, max_gpus=cap)
    helped = [one for one in answers if isinstance(one, Choice) and one.victims]
    freed = sum(sum(gone.gpus_on.values()) for one in helped for gone in one.victims)
    assert freed <= cap or len(helped) == 1
