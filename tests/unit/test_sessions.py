"""Which sessions hear that their time is nearly over, what they read, and that it is once."""

from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slurm_budget.core.sessions import due
from slurm_budget.errors import SlurmUnreachable
from slurm_budget.ledger.store import Ledger
from slurm_budget.state.jobs import Deed, Job
from slurm_budget.state.sweep import SweepPolicy
from slurm_budget.usecases.sessions import AT_MOST, warn

POLICY = SweepPolicy(session_warning=600, exempt=1200)
HOUR = 3600
SESSION = Job(
    id=7, label="7", user="ana", account="a", partitions=("gpu",), qos="funded-a",
    state="RUNNING", reason="", submit=0, eligible=0, start=1000, end=1000 + HOUR,
    time_limit=HOUR, gpus={"h100": 1}, nodes=("n1",), num_nodes=1, priority=1, requeue=True,
    batch=False, admin_comment="",
)  # fmt: skip
FREE = replace(SESSION, qos="preemptible")


def said(job: Job, now: int, policy: SweepPolicy = POLICY) -> list[str]:
    return [notice.text for notice in due([job], policy, now)]


def test_a_funded_session_hears_of_its_end_in_the_last_ten_minutes() -> None:
    end = 1000 + HOUR
    assert said(SESSION, end - 601) == []
    assert said(SESSION, end - 600) == [
        "sbudget: this session (7) ends in 10 min, when its time limit is over. Save your work now."
    ]
    assert "ends in 3 min," in said(SESSION, end - 200)[0]
    assert "ends in 20 s," in said(SESSION, end - 20)[0]
    assert said(SESSION, end) == []


def test_a_preemptible_session_hears_that_it_may_be_ended_at_any_moment() -> None:
    over = 1000 + 1200
    assert said(FREE, over - 601) == []
    (text,) = said(FREE, over - 600)
    assert text.startswith(
        "sbudget: in 10 min, this session (7) may be ended at any moment for a funded job"
    )
    assert "--qos=funded" in text
    assert "from now on" in said(FREE, over + 5)[0]
    assert len(said(FREE, 1000 + HOUR - 60)) == 2, "its end comes all the same"


def test_a_session_shorter_than_its_exempt_time_is_not_preempted_and_not_told_so() -> None:
    short = replace(FREE, time_limit=1200, end=2200)
    assert ["ends in" in text for text in said(short, 2100)] == [True]


def test_a_short_session_does_not_open_with_its_warning() -> None:
    short = replace(SESSION, time_limit=300, end=1300)
    assert said(short, 1149) == []
    assert len(said(short, 1150)) == 1


def test_a_session_without_a_limit_has_no_end_to_hear_of() -> None:
    assert said(replace(SESSION, time_limit=None, end=10**9), 10**9 - 1) == []


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"batch": True}, id="a batch job that can be requeued"),
        pytest.param({"state": "PENDING", "start": None}, id="waits"),
        pytest.param({"gpus": {}}, id="no GPU"),
        pytest.param({"qos": "normal"}, id="not ours"),
    ],
)
def test_who_is_no_session_of_ours(changes: dict[str, object]) -> None:
    assert said(replace(SESSION, **changes), 1000 + HOUR - 60) == []  # type: ignore[arg-type]


def test_a_batch_job_that_cannot_be_requeued_is_one() -> None:
    (text,) = said(replace(SESSION, batch=True, requeue=False), 1000 + HOUR - 60)
    assert "this job (7) ends in 1 min" in text


def test_zero_turns_it_off() -> None:
    assert said(SESSION, 1000 + HOUR - 60, replace(POLICY, session_warning=0)) == []


# -- once ----------------------------------------------------------------------------------------


@dataclass
class Terminals:
    """What was written on whose terminal; `answers` overrides the Deed by job, None: unreachable"""

    answers: dict[int, Deed | None] = field(default_factory=dict)
    heard: list[int] = field(default_factory=list)

    def notify(self, job_id: int, text: str) -> Deed:
        deed = self.answers.get(job_id, Deed("done", ""))
        if deed is None:
            raise SlurmUnreachable("no answer", where="scontrol", mend="look")
        if deed.outcome == "done":
            self.heard.append(job_id)
        return deed


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.open(f"sqlite:///{tmp_path / 'ledger.db'}", create=True)


def sweep(
    ledger: Ledger, jobs: list[Job], now: int, terminals: Terminals
) -> tuple[list[int], list[tuple[int, str]]]:
    told = warn(terminals, ledger, "main", jobs, POLICY, now)  # type: ignore[arg-type]
    return told.jobs, told.left


def test_it_is_said_once_whatever_beats_are_skipped(ledger: Ledger) -> None:
    with ledger:
        slurm = Terminals()
        for now in (1000, 4200, 4230, 4599):
            sweep(ledger, [SESSION], now, slurm)
        assert slurm.heard == [7]
        longer = replace(SESSION, time_limit=2 * HOUR, end=1000 + 2 * HOUR)
        assert sweep(ledger, [longer], 1000 + 2 * HOUR - 60, slurm) == ([7], [])


@settings(max_examples=20)
@given(st.lists(st.integers(1000, 1000 + HOUR - 1), max_size=8))
def test_a_session_hears_each_moment_once_in_any_sequence_of_sweeps(moments: list[int]) -> None:
    with Ledger.open("sqlite://", create=True) as ledger:
        slurm = Terminals()
        for now in sorted(moments):
            sweep(ledger, [FREE], now, slurm)
        late = max(moments, default=0)
        assert len(slurm.heard) == (late >= 1000 + 600) + (late >= 1000 + HOUR - 600)


def test_a_sweep_tells_no_more_than_its_bound_and_the_next_goes_on(ledger: Ledger) -> None:
    with ledger:
        jobs = [replace(SESSION, id=n, label=str(n)) for n in range(AT_MOST + 3)]
        slurm = Terminals()
        assert len(sweep(ledger, jobs, 4500, slurm)[0]) == AT_MOST
        assert len(sweep(ledger, jobs, 4530, slurm)[0]) == 3
        assert sorted(slurm.heard) == list(range(AT_MOST + 3))


def test_what_cannot_be_asked_is_tried_again_and_what_is_refused_is_not(ledger: Ledger) -> None:
    with ledger:
        slurm = Terminals({7: None})
        assert sweep(ledger, [SESSION], 4500, slurm) == ([], [])
        slurm.answers = {7: Deed("refused", "no permission")}
        assert sweep(ledger, [SESSION], 4520, slurm) == ([], [(7, "not warned: no permission")])
        slurm.answers = {}
        assert sweep(ledger, [SESSION], 4530, slurm) == ([], [])
