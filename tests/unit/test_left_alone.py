"""What is left alone because Slurm, or the job itself, has it otherwise than the ordinary case."""

from dataclasses import replace

import pytest
from test_sweep_rules import NODES, POLICY, WAITING, job, running

from slurm_budget.core import gang, live, owed
from slurm_budget.core.choose import choose
from slurm_budget.core.exempt import NOT_OBSERVED
from slurm_budget.core.repairs import repairs
from slurm_budget.state.choose import Choice, Leave
from slurm_budget.state.intent import Intent
from slurm_budget.state.jobs import Job


def asked(*jobs: Job) -> tuple[int, list[str]]:
    """How many demands, and why jobs are none."""
    found = owed.owed(list(jobs), NODES, {}, POLICY, 9000)
    return len(found.demands), [leave.reason for leave in found.left]


def intent(run: int, for_job: int) -> Intent:
    return Intent(run, "main", run, 0, "a", for_job, "b", 8, "signalled", "", 0, 0)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"label": "9+1"}, "part of a het job, which starts as a whole"),
        ({"names_nodes": True}, "asks for nodes by name"),
        ({"gpus": {"a100": 4, "h100": 4}}, "asks for GPUs of several types"),
    ],
)
def test_nobody_makes_way_for_what_we_cannot_place(given: dict[str, object], why: str) -> None:
    assert asked(WAITING) == (1, [])
    assert asked(replace(WAITING, **given)) == (0, [why])  # type: ignore[arg-type]


def test_nobody_makes_way_on_a_node_that_the_owed_job_excludes() -> None:
    runs = [running(1, 0), running(2, 0, nodes=("n2",), gpus_on={"n2": 8})]
    found, _ = owed.candidates(runs, {}, POLICY, 9000)

    def answer(*excluded: str) -> Choice | Leave:
        demands = owed.owed([replace(WAITING, excluded=excluded)], NODES, {}, POLICY, 9000).demands
        space = owed.space(NODES, runs, [], POLICY, 9000)
        return choose(demands, space, found, lambda run, job: True, max_gpus=64)[0]

    for excluded, victim in (("n1", 2), ("n2", 1)):
        chosen = answer(excluded)
        assert isinstance(chosen, Choice)
        assert [run.job_id for run in chosen.victims] == [victim]
    assert isinstance(answer("n1", "n2"), Leave)


def test_what_is_free_on_an_excluded_node_is_not_free_for_the_job() -> None:
    (demand,) = owed.owed([replace(WAITING, excluded=("n1",))], NODES, {}, POLICY, 9000).demands
    busy = running(2, 0, nodes=("n2",), gpus_on={"n2": 8})
    space = owed.space(NODES, [busy], [], POLICY, 9000)
    (left,) = choose([demand], space, [], lambda run, job: True, max_gpus=64)
    assert isinstance(left, Leave)


def test_of_an_array_the_tasks_that_can_start_still_get_what_they_need() -> None:
    """Three tasks of 8 GPUs; the run that was to go for the third stays."""
    nodes = [replace(NODES[0], name=f"n{i}") for i in (1, 2, 3)]
    jobs = [running(i, 0, nodes=(f"n{i}",), gpus_on={f"n{i}": 8}) for i in (1, 2, 3)]
    array = replace(WAITING, id=87, label="87_[1-3]", tasks=3, at_once=3)
    seen = ([*jobs, array], nodes, POLICY, 9000, NOT_OBSERVED)
    going = [intent(1, 87), intent(2, 87)]
    assert gang.in_vain(87, going, [], *seen) == []
    wide = replace(array, num_nodes=2, gpus={"h100": 16}, at_once=1)
    seen = ([*jobs, wide], *seen[1:])
    assert gang.in_vain(87, going, [], *seen) == []
    assert gang.in_vain(87, going[:1], [], *seen) == going[:1]
    assert gang.in_vain(87, going[:1], [3], *seen) == [], "3 holds its GPUs, but not for long"
    spare = [*going, intent(3, 87)]
    assert len(gang.in_vain(87, spare, [], *seen)) == 1, "two do"


def test_of_an_array_with_a_limit_those_that_run_count() -> None:
    waits = replace(WAITING, id=87, label="87_[1-3%2]", tasks=3, at_once=2)
    assert asked(waits)[0] == 2
    assert asked(waits, running(88, 0, array=87))[0] == 1
    assert asked(waits, running(88, 0, array=87), running(89, 0, array=87))[0] == 0
    unlimited = replace(waits, label="87_[1-3]", at_once=3)
    assert asked(unlimited, running(88, 0, array=87))[0] == 3


def test_a_component_of_a_het_job_never_makes_way() -> None:
    part = running(7, 0, label="7+0")
    runs, left = owed.candidates([part], {}, POLICY, 9000)
    assert runs == []
    assert left == [Leave(7, "part of a het job, which is requeued as a whole")]
    draining = [replace(NODES[0], flags=frozenset({"DRAIN"})), NODES[1]]
    assert repairs([part], draining, {}, POLICY, 9000) == []


def test_a_job_in_a_qos_that_is_not_ours_stays_on_a_draining_node() -> None:
    draining = [replace(NODES[0], flags=frozenset({"DRAIN"})), NODES[1]]
    house = running(7, 0, qos="house", admin_comment="")
    assert repairs([house], draining, {}, POLICY, 9000) == []
    ours = replace(house, qos=POLICY.preemptible_qos)
    assert [run.id for run, _ in repairs([ours], draining, {}, POLICY, 9000)] == [7]


def test_suspension_is_none_of_the_protection() -> None:
    run = live.with_suspension(running(7, 1000, used=600), 3000)
    assert run.suspended == 1400
    assert live.protected_until(run, POLICY) == 1000 + 1400 + 3600
    assert owed.candidates([run], {}, POLICY, 5000)[0] == []
    steady = live.with_suspension(running(7, 1000, used=1997), 3000)
    assert live.protected_until(steady, POLICY) == 1000 + 3600, "seconds of looking are none"
    unknown = running(7, 1000)
    assert live.with_suspension(unknown, 3000) == unknown


def test_a_waiting_job_is_no_part_of_an_array_of_its_own() -> None:
    assert not live.is_part(job(1, label="1_[2-5%2]"))
    assert live.is_part(job(1, label="1+0"))
