"""The verdict at submission: what a user asks for, and what becomes of it."""

import hookcases
import pytest
from hookcases import CASES, GPU_HOUR, IDS, NOW

from slurm_budget.core import admission
from slurm_budget.core import request as requests
from slurm_budget.core.admission import Promises
from slurm_budget.core.admission_text import gpu_hours, quoted
from slurm_budget.errors import BadInput


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_the_table(case):
    expect = case["expect"]
    try:
        request = requests.read(case["job_desc"])
    except BadInput:
        # What then becomes of the job is the business of its caller; see test_admit.
        assert "gpus" not in expect
        return
    verdict = admission.decide(
        request, hookcases.snapshot_of(case), NOW, hookcases.promised_of(case)
    )
    assert dict(request.gpus) == expect["gpus"]
    assert dict(verdict.changes) == hookcases.expected_changes(case)
    assert verdict.reject == (expect["code"] == "REFUSED")
    if "says" in expect:
        assert list(verdict.messages) == expect["says"]


def ask(**fields):
    job = {"account": "vision", "qos": "funded", "script": "#!", "time_limit": 600}
    return requests.read({**job, "tres_per_node": "gres/gpu:1", **fields})


def submit_many(snapshot, count, **fields):
    """How many of `count` submissions in one second are funded."""
    promises, funded = Promises(), 0
    for _ in range(count):
        verdict = admission.decide(ask(**fields), snapshot, NOW, promises.total())
        promises = promises.plus(NOW, verdict.promise)
        funded += verdict.class_ == "funded"
    return funded


def test_a_thousand_submissions_cannot_all_spend_the_same_hour():
    assert submit_many(hookcases.with_budget("vision", 10), 1000) == 10


def test_the_fast_lane_holds_as_many_more_as_it_is_wide():
    base = hookcases.with_budget("vision", 10, fast_lane_gpu_time=7200)
    accounts = dict(base.accounts)
    accounts["vision"] = accounts["vision"]._replace(fast=13 * GPU_HOUR)
    snapshot = base._replace(accounts=accounts)
    assert submit_many(snapshot, 100, time_limit=60) == 13
    assert submit_many(snapshot, 100, time_limit=600) == 10


def test_a_promise_is_taken_off_the_whole_tree():
    verdict = admission.decide(ask(), hookcases.snapshot(), NOW)
    assert verdict.promise == {"vision": GPU_HOUR, "org": GPU_HOUR}
    own = admission.decide(ask(user_name="alice"), hookcases.snapshot(), NOW)
    assert own.promise == {"vision/alice": GPU_HOUR, "vision": GPU_HOUR, "org": GPU_HOUR}


def test_a_new_snapshot_takes_over_what_was_promised_before_it():
    promises = Promises().plus(100, {"vision": 1}).plus(110, {"vision": 2}).plus(111, {"org": 4})
    assert promises.total() == {"vision": 3, "org": 4}
    assert promises.since(110).total() == {"vision": 2, "org": 4}
    assert promises.since(112).total() == {}


def test_a_budget_that_counts_none_of_the_gpus_is_no_bound():
    base = hookcases.snapshot()
    accounts = dict(base.accounts)
    accounts["org"] = accounts["org"]._replace(gres="gres/gpu:h200", balance=-1, fast=-1)
    verdict = admission.decide(
        ask(tres_per_node="gres/gpu:h100:1"), base._replace(accounts=accounts), NOW
    )
    assert verdict.class_ == "funded"
    assert verdict.promise == {"vision": GPU_HOUR}


def test_accounts_in_a_loop_end():
    base = hookcases.snapshot()
    accounts = dict(base.accounts)
    accounts["org"] = accounts["org"]._replace(parent="vision")
    assert admission.decide(ask(), base._replace(accounts=accounts), NOW).class_ == "funded"


@pytest.mark.parametrize(
    ("ms", "up", "text"),
    [
        (2688 * GPU_HOUR, False, "2,688"),
        (1234567 * GPU_HOUR + 360_000, False, "1,234,567.1"),
        (312 * GPU_HOUR + 1_800_000, False, "312.5"),
        (64 * GPU_HOUR - 1, False, "63.9"),
        (64 * GPU_HOUR - 1, True, "64"),
        (9_600_000, False, "2.66"),
        (9_600_000, True, "2.67"),
        (10 * GPU_HOUR - 1, False, "9.99"),
        (10 * GPU_HOUR - 1, True, "10"),
        (2 * GPU_HOUR + 1_800_000, False, "2.5"),
        (3600, False, "0.001"),
        (GPU_HOUR - 1, False, "0.999"),
        (GPU_HOUR - 1, True, "1"),
        (0, False, "0"),
        (-5 * GPU_HOUR, False, "0"),
    ],
)
def test_gpu_hours_never_make_a_refusal_look_wrong(ms, up, text):
    assert gpu_hours(ms, up=up) == text


def test_a_users_words_cannot_steer_a_terminal():
    assert quoted("4h\x1b[2J\nü") == '"4h?[2J???"'
    assert quoted("x" * 99) == '"' + "x" * 24 + '"'
