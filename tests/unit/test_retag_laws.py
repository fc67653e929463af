"""What holds of retagging in any sequence of sweeps: nothing is promised twice, nothing flaps, and
a sweep sends a bounded number of commands, in order."""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from slurm_budget.core import live
from slurm_budget.core.marker import Marker
from slurm_budget.core.retag import HOLDS, Verdicts, verdicts
from slurm_budget.core.standing import Standing
from slurm_budget.errors import SlurmUnreachable
from slurm_budget.state.budget import Amount, BudgetNode, BudgetTree
from slurm_budget.state.jobs import Deed, Job
from slurm_budget.state.sweep import SweepPolicy
from slurm_budget.usecases.deciding import Decision
from slurm_budget.usecases.moving import move_classes
from slurm_budget.usecases.swept import Swept

HOUR = 3_600_000
POLICY = SweepPolicy(fast_lane=0.1, fast_lane_gpu_time=7200)
ACCOUNTS = ("a", "b")
# the children may have more than their parent, so that each of the three budgets can bind
TREE = BudgetTree(
    "main",
    {
        "top": BudgetNode("top", None, Amount("gpus", 20), overcommit=True),
        "a": BudgetNode("a", "top", Amount("gpus", 12)),
        "b": BudgetNode("b", "top", Amount("gpus", 12)),
    },
)
DEEDS = {
    "done": Deed("done", ""),
    "gone": Deed("gone", "the job has started"),
    "refused": Deed("refused", "no permission"),
    "unreachable": None,
}


def pending(number: int, account: str, qos: str, gpus: int, **more: Any) -> Job:
    class_ = live.class_of_qos(qos)
    base = Job(
        id=number, label=str(number), user="ann", account=account, partitions=("gpu",), qos=qos,
        state="PENDING", reason="Priority", submit=number, eligible=0, start=None, end=None,
        time_limit=36000, gpus={"": gpus}, nodes=(), num_nodes=1, priority=1, requeue=True,
        batch=True, admin_comment=str(Marker(class_, "funded", 3600, "fits")),
    )  # fmt: skip
    return replace(base, **more)


@st.composite
def queues(draw: st.DrawFn) -> list[Job]:
    out = []
    for number in range(draw(st.integers(1, 9))):
        account = draw(st.sampled_from(ACCOUNTS))
        qos = draw(st.sampled_from(["preemptible", live.funded_qos(account)]))
        job = pending(number, account, qos, draw(st.integers(1, 8)))
        user, limit = draw(st.sampled_from(["ann", "bob"])), draw(st.sampled_from([900, 36000]))
        reason = draw(st.sampled_from(["Priority", "Priority", "JobHeldUser"]))
        tasks = draw(st.sampled_from([1, 1, 2]))
        out.append(
            replace(job, user=user, time_limit=limit, reason=reason, tasks=3 * tasks, at_once=tasks)
        )
    return out


STATES = st.fixed_dictionaries(
    {name: st.tuples(st.integers(0, 24), st.integers(0, 30)) for name in ("top", *ACCOUNTS)}
)
"""For each account what is charged and what was used, in GPU-hours."""
USES = st.fixed_dictionaries(
    {(name, user): st.integers(0, 9) for name in ACCOUNTS for user in ("ann", "bob")}
)


def standings(state: dict[str, tuple[int, int]]) -> dict[str, Standing]:
    """Budgets of an hour's window."""
    budgets = {"top": 20 * HOUR, "a": 12 * HOUR, "b": 12 * HOUR}
    return {
        name: Standing(name, budgets[name], charge * HOUR, 0, use * HOUR)
        for name, (charge, use) in state.items()
    }


def decided(jobs: Iterable[Job], state: dict[str, Any], use: dict[Any, int]) -> Verdicts:
    return verdicts(jobs, TREE, standings(state), {}, use, POLICY)


def promised(jobs: Iterable[Job], state: dict[str, Any]) -> dict[str, int]:
    """Charge and what funded jobs that wait will cost, by account with all below it."""
    out = {name: standing.charge for name, standing in standings(state).items()}
    for job in jobs:
        if live.class_of(job) == "funded":
            for node in TREE.ancestors(job.account):
                out[node.name] += live.cost(job, POLICY)
    return out


class Port:
    """Takes classes as scontrol does, with drawn answers."""

    def __init__(self, jobs: Iterable[Job], answers: Iterable[str] = ()) -> None:
        self.jobs = {job.id: job for job in jobs}
        self.answers = iter(answers)
        self.asked: list[str] = []

    def retag(self, job: str, qos: str, admin_comment: str) -> Deed:
        self.asked.append(job)
        deed = DEEDS[next(self.answers, "done")]
        if deed is None:
            raise SlurmUnreachable("timed out")
        number = int(job.partition("_")[0])
        if deed.outcome == "done":
            self.jobs[number] = replace(self.jobs[number], qos=qos, admin_comment=admin_comment)
        return deed

    def release(self, job: str) -> Deed:
        return Deed("done", "")


def move(port: Port, found: Verdicts, policy: SweepPolicy = POLICY) -> Swept:
    world: Any = SimpleNamespace(jobs=[], bad_rows=0, lost=[])
    out = Swept(world, Decision(found, [], [], [], frozenset()), cast(Any, SimpleNamespace()))
    with suppress(SlurmUnreachable):
        move_classes(cast(Any, port), out, policy)
    return out


@given(
    queues(),
    st.lists(STATES, min_size=1, max_size=4),
    USES,
    st.integers(0, 4),
    st.lists(st.sampled_from(sorted(DEEDS)), max_size=30),
)
def test_no_sweep_promises_more_than_budget_and_fast_lane(
    jobs: list[Job], states: list[Any], use: dict[Any, int], most: int, answers: list[str]
) -> None:
    """Whatever Slurm answers, however few commands a sweep may send, and whatever comes between."""
    port = Port(jobs, answers)
    for state in states:
        before = promised(port.jobs.values(), state)
        found = decided(port.jobs.values(), state, use)
        move(port, found, replace(POLICY, max_updates=most))
        after = promised(port.jobs.values(), state)
        for name, standing in standings(state).items():
            limit = (standing.budget or 0) * 11 // 10
            assert after[name] <= max(limit, before[name]), name


@given(queues(), STATES, USES)
def test_nothing_flaps_while_nothing_changes(
    jobs: list[Job], state: dict[str, Any], use: dict[Any, int]
) -> None:
    """A job that a sweep left funded is funded at all later ones, and soon no job moves at all.

    A job that its user holds may lose its place to those that could start.
    """
    port = Port(jobs)
    kept: set[int] = set()
    for _ in range(len(jobs) + 2):
        found = decided(port.jobs.values(), state, use)
        move(port, found)
        funded = {job.id for job in port.jobs.values() if live.class_of(job) == "funded"}
        assert {job for job in kept if port.jobs[job].reason not in HOLDS} <= funded
        kept = funded
    assert decided(port.jobs.values(), state, use).retags == []


@given(queues(), STATES, USES, STATES)
def test_a_funded_verdict_outlasts_a_change_of_standings(
    jobs: list[Job], state: dict[str, Any], use: dict[Any, int], other: dict[str, Any]
) -> None:
    """Standings move with every second; as long as the balance is there, funded jobs stay so."""
    port = Port([job for job in jobs if job.reason not in HOLDS])
    move(port, decided(port.jobs.values(), state, use))
    moved = {name: (state[name][0], other[name][1]) for name in state}
    found = decided(port.jobs.values(), moved, {key: 9 - amount for key, amount in use.items()})
    assert [retag.job.id for retag in found.retags if retag.class_ == "preemptible"] == []


# -- commands ------------------------------------------------------------------------------------


def waiting(count: int) -> list[Job]:
    return [pending(n, "a", "preemptible", 1, time_limit=900) for n in range(1, count + 1)]


STATE = {"top": (0, 0), "a": (0, 0), "b": (0, 0)}


def test_a_sweep_sends_so_many_commands_in_order_and_says_what_is_left() -> None:
    jobs = waiting(8)
    port = Port(jobs)
    out = move(port, decided(jobs, STATE, {}), replace(POLICY, max_updates=3))
    assert port.asked == ["1", "2", "3"]
    assert out.later == 5
    out = move(port, decided(port.jobs.values(), STATE, {}), replace(POLICY, max_updates=3))
    assert port.asked[3:] == ["4", "5", "6"]
    assert out.later == 2


def test_an_array_with_holes_is_one_command_for_the_tasks_that_wait() -> None:
    array = replace(waiting(1)[0], label="1_[0,3-5,9-20:2%2]", tasks=10, at_once=2)
    port = Port([array])
    move(port, decided([array], STATE, {}), replace(POLICY, max_updates=1))
    assert port.asked == ["1_[0,3-5,9-20:2]"]


def test_what_a_budget_gives_up_comes_first_and_what_it_gives_waits_for_it() -> None:
    """Job 1 has lost its place to nobody: its budget shrank. While it could not be moved (it may
    have started), nothing else is given the little that is left."""
    state = {"top": (0, 0), "a": (10, 0), "b": (0, 0)}
    jobs = [pending(1, "a", "funded-a", 8), pending(2, "b", "preemptible", 1, time_limit=900)]
    port = Port(jobs, ["gone"])
    move(port, decided(jobs, state, {}))
    assert port.asked == ["1"]
    move(port, decided(jobs, state, {}))
    assert port.asked == ["1", "1", "2"]
