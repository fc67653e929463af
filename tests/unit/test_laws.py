"""The check that follows every test on a real Slurm can fail, and for the right rows alone."""

from dataclasses import replace

import laws
import pytest

from slurm_budget.core.marker import Marker
from slurm_budget.state.intent import Intent

MARK = str(Marker("funded", "funded", 10, "fits"))
ROW = laws.Row(7, "REQUEUED", "funded-vision", 100, 112, 600, MARK)
INTENT = Intent(1, "main", 7, 100, "vision", 9, "language", 8, "done", "language is owed", 99, 112)


def test_what_is_in_order_is_not_complained_of() -> None:
    assert (
        laws.broken([ROW, replace(ROW, state="COMPLETED", start=120, end=121)], [INTENT], 60) == []
    )


@pytest.mark.parametrize("state", ["REQUEUED", "PREEMPTED"])
def test_an_end_inside_the_protection(state: str) -> None:
    assert laws.broken([replace(ROW, state=state, end=109)], [INTENT], 60) == [
        f"job 7 in funded-vision was {state} 9 s after its start, inside its protection of 10 s"
    ]


def test_the_marker_of_another_run_of_the_job_will_do_and_else_the_sites_default() -> None:
    forgotten = replace(ROW, admin_comment="", end=150)
    known = replace(ROW, state="COMPLETED", start=200, end=201)
    assert laws.broken([forgotten, known], [INTENT], 60) == []
    assert "protection of 60 s" in laws.broken([forgotten], [INTENT], 60)[0]
    assert laws.broken([replace(forgotten, time_limit=40)], [INTENT], 60) == []


def test_preemptible_runs_have_no_protection_but_are_requeued_for_a_reason_too() -> None:
    free = replace(ROW, qos="preemptible", end=101)
    assert laws.broken([replace(free, state="PREEMPTED")], [], 60) == []
    assert laws.broken([free], [], 60) == ["job 7 was requeued, and no intent says for whom"]


@pytest.mark.parametrize("state", ["NODE_FAIL", "CANCELLED by 0", "TIMEOUT", "FAILED", "COMPLETED"])
def test_other_ends_are_nobodys_requeue(state: str) -> None:
    assert laws.broken([replace(ROW, state=state, end=101)], [], 60) == []


@pytest.mark.parametrize(
    "intent",
    [
        replace(INTENT, run_start=50),
        replace(INTENT, job_id=8),
        replace(INTENT, step="left"),
        replace(INTENT, step="planned"),
        replace(INTENT, for_job=None, reason=""),
    ],
)
def test_a_requeue_that_the_ledger_does_not_know(intent: Intent) -> None:
    assert laws.broken([ROW], [intent], 60) == ["job 7 was requeued, and no intent says for whom"]


def test_a_repair_is_a_reason() -> None:
    repair = replace(INTENT, for_job=None, reason="node n1 is draining")
    assert laws.broken([ROW], [repair], 60) == []


def test_rows_of_sacct() -> None:
    text = (
        f"7|REQUEUED|funded-vision|100|112|10|{MARK}\n"
        "8|RUNNING|preemptible|100|Unknown|UNLIMITED|JS1:a|b\n"
        "9|PENDING|preemptible|Unknown|Unknown|10|\n"
    )
    assert laws.rows(text) == [
        ROW,
        laws.Row(8, "RUNNING", "preemptible", 100, None, None, "JS1:a|b"),
    ]
