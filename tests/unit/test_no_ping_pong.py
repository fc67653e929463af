"""Jobs are not thrown back and forth: the laws of docs/no-ping-pong.md, in a cluster in memory.

Each drawn case lives through a thousand sweeps with teams whose demand comes and goes.
"""

import random
from collections import defaultdict
from itertools import pairwise

from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from simcluster import SimCluster

from slurm_budget.core import live
from slurm_budget.core.window import Window
from slurm_budget.state.budget import Amount, BudgetNode, BudgetTree
from slurm_budget.state.sweep import SweepPolicy

GPUS = 32
WINDOW = Window(length=12 * 3600)
POLICY = SweepPolicy(patience=60, grace=60, cooldown=900, exempt=1200, margin=0.05)
TEAMS = ("a", "b", "c", "d")


def tree(**gpus: int) -> BudgetTree:
    """top = a, b and a programme that holds c and d; figures in GPUs."""
    amounts = {name: Amount("gpus", count) for name, count in gpus.items()}
    parents = {"a": "top", "b": "top", "programme": "top", "c": "programme", "d": "programme"}
    nodes = {"top": BudgetNode("top")}
    for name, parent in parents.items():
        if name == "programme" or name in amounts:
            nodes[name] = BudgetNode(name, parent, amounts.get(name))
    return BudgetTree("sim", nodes)


def live_through(sim: SimCluster, chance: random.Random, sweeps: int = 1000) -> None:
    """Each team is busy or idle for hours; a busy one keeps some jobs waiting, gangs among them."""
    busy_until = dict.fromkeys(TEAMS, (False, sim.now))
    for _ in range(sweeps):
        for team in TEAMS:
            busy, until = busy_until[team]
            if until <= sim.now:
                busy_until[team] = (not busy, sim.now + chance.randrange(3600, 4 * 3600))
            waiting = sum(j.pending for j in sim.queue.values() if j.account == team)
            if busy and waiting < 3:
                sim.submit(
                    team,
                    work=chance.randrange(600, 6 * 3600),
                    declared=chance.choice([60, 600, 1800, 3600]),
                    gpus=chance.choice([1, 2, 4, 8, 8]),
                    nodes=chance.choice([1, 1, 1, 2]),
                    user=chance.choice(["ann", "bob"]),
                    asked=chance.choice(["funded", "funded", "preemptible"]),
                )
        sim.step()


def top_of(team: str, other: str, teams: BudgetTree) -> str:
    """The account above `team` at which it is compared with `other`."""
    theirs = {node.name for node in teams.ancestors(other)}
    return [node.name for node in teams.ancestors(team) if node.name not in theirs][-1]


def check_jobs(sim: SimCluster) -> None:
    """At most one requeue of a job per max(cooldown, protection), none inside its protection."""
    last: dict[int, int] = {}
    for end in sim.requeues():
        run = end.job
        protected = live.protected_until(run, sim.policy) - (run.start or 0)
        assert end.at - (run.start or 0) >= protected, "requeued inside its protection"
        if run.id in last:
            assert end.at - last[run.id] >= max(sim.policy.cooldown, protected)
        last[run.id] = end.at
    for end in sim.ended:
        assert end.why != "preempted" or live.class_of(end.job) == "preemptible"


def check_pairs(sim: SimCluster) -> int:
    """Time between a yield of A to B and the next of B to A; returns how often it turned."""
    users = {end.job.id: end.job.user for end in sim.ended}
    users |= {job.id: job.user for job in sim.jobs()}
    budgets = {name: (standing.budget or 0) for name, standing in sim.accounts.items()}
    yields = defaultdict(list)
    for intent in sim.ledger.intents:
        one, other = intent.victim_account, intent.for_account
        if one == other:
            key = ((one, users[intent.job_id]), (one, users[intent.for_job or 0]))
        else:
            key = ((top_of(one, other, sim.tree), ""), (top_of(other, one, sim.tree), ""))
        yields[frozenset(key)].append((intent.created, key))
    turns = 0
    for found in yields.values():
        for (at, way), (later, back) in pairwise(found):
            if way != back:
                turns += 1
                one, other = budgets[way[0][0]], budgets[way[1][0]]
                # in milliseconds of GPU-time: two margins, at most GPUS gained and GPUS lost
                gap = 2 * POLICY.margin / (GPUS * 1000 * (1 / one + 1 / other))
                assert later - at >= gap - 1, (way, at, later, gap)
    return turns


@settings(max_examples=3, deadline=None, phases=[Phase.explicit, Phase.generate])
@given(
    st.integers(0, 2**32),
    st.tuples(st.integers(2, 12), st.integers(2, 8), st.integers(1, 8), st.integers(1, 4)),
)
def test_a_thousand_sweeps_without_ping_pong(seed: int, gpus: tuple[int, int, int, int]) -> None:
    """One step of acting in twenty is the last of its sweep, and the next sweep goes on."""
    chance = random.Random(seed)
    sim = SimCluster(tree(**dict(zip(TEAMS, gpus, strict=True))), POLICY, WINDOW)
    sim.ledger.kill = lambda: chance.random() < 0.05
    live_through(sim, chance)
    check_jobs(sim)
    check_pairs(sim)
    meant = {(i.job_id, i.run_start) for i in sim.ledger.intents if i.for_job and i.step != "left"}
    assert {(end.job.id, end.job.start) for end in sim.requeues()} <= meant


def test_the_laws_are_not_empty() -> None:
    """In a cluster that the laws are held against, runs are requeued, and pairs do turn."""
    sim = SimCluster(tree(a=8, b=8, c=8, d=8), POLICY, WINDOW)
    live_through(sim, random.Random(0))
    check_jobs(sim)
    assert check_pairs(sim) >= 1
    assert len(sim.requeues()) >= 20


def rivals(declared: int) -> SimCluster:
    """Two equal teams with as much to do; `tiny` declares so many seconds, `hour` an hour."""
    amount = Amount("gpus", 16)
    nodes = [
        BudgetNode("top"),
        BudgetNode("tiny", "top", amount),
        BudgetNode("hour", "top", amount),
    ]
    sim = SimCluster(BudgetTree("sim", {node.name: node for node in nodes}), POLICY, WINDOW)
    chance = random.Random(2)
    for _ in range(700):
        for team, seconds in (("tiny", declared), ("hour", 3600)):
            if sum(job.pending for job in sim.queue.values() if job.account == team) < 3:
                sim.submit(team, chance.randrange(3600, 8 * 3600), seconds, chance.choice([4, 8]))
        sim.step()
    return sim


def test_declaring_little_gains_nothing() -> None:
    """Standing counts use, so its runs go more readily than an hour's would, and it gets no more.

    Nobody yields while two standings are within the margin, so that is how exact "no more" can be.
    """
    tiny, same = rivals(60), rivals(3600)
    assert len(tiny.requeues("tiny")) >= len(same.requeues("tiny"))
    assert tiny.requeues("tiny")
    assert tiny.delivered("tiny") <= tiny.delivered("hour") * (1 + POLICY.margin)
