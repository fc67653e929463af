"""Who stopped a run, as `report requeues` says it."""

import pytest

from slurm_budget.core.report_requeues import requeue_rows
from slurm_budget.state.intent import GONE, Intent, Step
from slurm_budget.state.jobs import Run


def run(state: str) -> Run:
    return Run(
        cluster="main", job_id=7, start=100, end=400, submit=90, state=state, account="vision",
        user="ana", qos="funded-vision", partition="gpu", gpus={"h100": 2}, num_nodes=1,
        class_="funded", min_runtime=60,
    )  # fmt: skip


def intent(step: Step, detail: str, warned: bool = True, run_start: int = 100) -> Intent:
    return Intent(
        1, "main", 7, run_start, "vision", 9, "language", 2, step, "for job 9", 300, 390,
        grace_until=310 if warned else None, detail=detail,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("state", "found", "cause"),
    [
        ("REQUEUED", intent("done", "the run is over (the job is PENDING)"), "owed"),
        ("REQUEUED", intent("requeued", "scontrol requeue Incomplete"), "owed"),
        # its user cancelled it while it waited for its next run, before the next sweep looked
        ("REQUEUED", intent("left", GONE), "owed"),
        ("PREEMPTED", intent("left", GONE), "preempted"),
        ("REQUEUED", intent("left", "no permission"), "by-hand"),
        ("REQUEUED", intent("left", GONE, warned=False), "by-hand"),
        ("REQUEUED", intent("done", "", run_start=50), "by-hand"),
        ("REQUEUED", None, "by-hand"),
        ("NODE_FAIL", None, "node-failed"),
    ],
)
def test_who_stopped_a_run(state: str, found: Intent | None, cause: str) -> None:
    (row,) = requeue_rows([run(state)], [found] if found else [], {})
    assert row.cause == cause
    assert (row.for_account == "language") == (cause == "owed")
    assert (row.ran, row.lost) == (300, 2 * 300 * 1000)
