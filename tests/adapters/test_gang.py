"""A gang for which two runs make way: both go, or what lets it start."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from .fake_slurm import NODE
from .test_sweep_decisions import HOUR, MARK, NOW, REQUEUE, Stage, row


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    one = Stage(tmp_path)
    with one.ledger:
        yield one


def show_gang(stage: Stage, *others: str, **second: str) -> None:
    """Runs 7 and 8 hold a node each, and job 9 waits for both."""
    stage.slurm.says("nodes", NODE + NODE.replace("n1", "n2"))
    size = {"tres-alloc": "cpu=16,node=2,gres/gpu=16", "NumNodes": "2", "NumCPUs": "16"}
    runs = row(7, "vision", "RUNNING")
    if second.get("State") != "gone":
        runs += row(8, "vision", "RUNNING", **({"NodeList": "n2"} | second))
    stage.slurm.says("jobs", runs + "".join(others) + row(9, "language", "PENDING", **size))


def warned_gang(stage: Stage) -> None:
    show_gang(stage)
    assert "signalled jobs 7, 8" in stage.sweep(grace=30).sentence()


def requeues(stage: Stage) -> list[str]:
    return [deed for deed in stage.slurm.deeds() if "requeue" in deed]


IN_VAIN = "left job 7: job 9 would not start by it"


def test_both_runs_of_a_gang_make_way(stage: Stage) -> None:
    warned_gang(stage)
    assert "requeued jobs 7, 8 (16 GPUs)" in stage.sweep(NOW + 30, grace=30).sentence()


def test_where_one_of_a_gang_got_protected_the_other_is_left_alone(stage: Stage) -> None:
    warned_gang(stage)
    longer = MARK.replace(f"m={HOUR}", f"m={8 * HOUR}")
    show_gang(stage, admin_comment=longer)
    said = stage.sweep(NOW + 30, grace=30).sentence()
    assert "left job 8: the run is protected" in said
    assert IN_VAIN in said
    assert requeues(stage) == []
    assert stage.steps() == ["left", "left"]


def test_where_one_of_a_gang_has_ended_the_other_makes_way_for_what_can_start(
    stage: Stage,
) -> None:
    warned_gang(stage)
    show_gang(stage, State="gone")
    assert "requeued job 7" in stage.sweep(NOW + 30, grace=30).sentence()


def test_where_another_took_what_one_of_a_gang_left_the_other_is_left_alone(stage: Stage) -> None:
    warned_gang(stage)
    taken = row(10, "language", "RUNNING", NodeList="n2", StartTime=str(NOW + 20))
    show_gang(stage, taken, State="gone")
    assert IN_VAIN in stage.sweep(NOW + 30, grace=30).sentence()
    assert requeues(stage) == []


def test_one_that_completes_still_is_as_good_as_gone(stage: Stage) -> None:
    warned_gang(stage)
    show_gang(stage, State="COMPLETING")
    assert "requeued job 7" in stage.sweep(NOW + 30, grace=30).sentence()


def test_where_slurm_refuses_the_first_of_a_gang_the_second_is_not_asked(stage: Stage) -> None:
    warned_gang(stage)
    stage.slurm.says("refusal", "Requested operation is presently disabled for job 7")
    said = stage.sweep(NOW + 30, grace=30).sentence()
    assert "left job 7: not requeueable" in said
    assert IN_VAIN.replace("left job 7", "left job 8") in said
    assert requeues(stage) == [REQUEUE]


def test_a_sweep_killed_behind_the_one_that_stays_leaves_no_other_to_go_in_vain(
    stage: Stage,
) -> None:
    warned_gang(stage)
    first, second = stage.ledger.open_intents("main")
    stage.ledger.advance_intent(second.id, "left", NOW + 29, "the run is protected")
    show_gang(stage, admin_comment=MARK.replace(f"m={HOUR}", f"m={8 * HOUR}"))
    said = stage.sweep(NOW + 30, grace=30).sentence()
    assert (first.job_id, IN_VAIN in said, requeues(stage)) == (7, True, [])


def test_where_the_second_cannot_be_warned_the_first_is_no_longer_asked_to_go(
    stage: Stage,
) -> None:
    show_gang(stage)
    stage.slurm.script("scancel", '[ "$2" != 8 ] || { echo Access/permission denied >&2; exit 1; }')
    said = stage.sweep(grace=30).sentence()
    assert "left job 8: no permission" in said
    assert IN_VAIN in said
    assert "in grace" not in said
    show_gang(stage)
    stage.sweep(NOW + 30, grace=30)
    assert requeues(stage) == []
