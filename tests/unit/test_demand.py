"""What a sweep writes down as waiting, and as there to be used."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_budget.core.demand import changed, levels
from slurm_budget.state.budget import BudgetNode, BudgetTree
from slurm_budget.state.jobs import Job, Node

TREE = BudgetTree("main", {"vision": BudgetNode("vision", aliases=("seeing",))})
NODE = Node("n1", "MIXED", frozenset(), {"h100": 8}, ("gpu",))


def job(**given_: object) -> Job:
    base = Job(
        id=1, label="1", user="ana", account="vision", partitions=("gpu",), qos="funded-vision",
        state="PENDING", reason="Resources", submit=0, eligible=0, start=None, end=None,
        time_limit=36000, gpus={"h100": 8}, nodes=(), num_nodes=1, priority=1, requeue=True,
        batch=True, admin_comment="",
    )  # fmt: skip
    return replace(base, **given_)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "given_", [{}, {"reason": "Priority"}, {"reason": ""}, {"account": "seeing"}]
)
def test_a_funded_job_that_waits_for_gpus_alone_is_demand(given_: dict[str, object]) -> None:
    assert levels([job(**given_)], [], TREE) == {("vision", "h100"): 8}


@pytest.mark.parametrize(
    "given_",
    [
        {"qos": "preemptible"},
        {"reason": "Dependency"},
        {"reason": "JobHeldUser"},
        {"reason": "BeginTime"},
        {"reason": "QOSGrpGRES"},
        {"state": "RUNNING", "reason": ""},
        {"account": "nobodys"},
        {"gpus": {}},
    ],
)
def test_a_job_that_holds_depends_or_hit_a_limit_is_none(given_: dict[str, object]) -> None:
    assert levels([job(**given_)], [], TREE) == {}


def test_of_an_array_the_tasks_that_may_run_at_once_are_demand() -> None:
    assert levels([job(tasks=50, at_once=4)], [], TREE) == {("vision", "h100"): 32}
    assert levels([job(tasks=2, at_once=4), job(id=2)], [], TREE) == {("vision", "h100"): 24}


def test_drained_and_dead_nodes_are_no_capacity() -> None:
    nodes = [
        NODE,
        replace(NODE, name="n2", gpus={"a100": 4}),
        replace(NODE, name="n3", flags=frozenset({"DRAIN"})),
        replace(NODE, name="n4", state="DOWN"),
    ]
    assert levels([], nodes, TREE) == {(None, "h100"): 8, (None, "a100"): 4}


levels_of = st.dictionaries(
    st.tuples(st.sampled_from([None, "a", "b"]), st.sampled_from(["", "h100"])), st.integers(0, 3)
)


@given(before=levels_of, now=levels_of)
def test_what_changed_leads_from_one_to_the_other(
    before: dict[tuple[str | None, str], int], now: dict[tuple[str | None, str], int]
) -> None:
    found = before | changed(before, now)
    assert {k: v for k, v in found.items() if v} == {k: v for k, v in now.items() if v}
    assert changed(now, now) == {}
