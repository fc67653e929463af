"""Runs without an end that are over by what the queue says."""

from dataclasses import replace

from answers_world import NOW, job
from hypothesis import given
from hypothesis import strategies as st

from slurm_budget.core.over import over
from slurm_budget.slurm.squeue import LIVE
from slurm_budget.state.jobs import Ended, Queue, Run

ENDED = ("COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL", "PREEMPTED", "OUT_OF_MEMORY")


def open_run(number: int = 7, start: int = NOW - 300) -> Run:
    return Run(
        "main", number, start, None, start - 5, "ana", "vision", "funded-vision", "gpu", "RUNNING",
        {"h100": 8}, 1, 0, "funded", 60,
    )  # fmt: skip


def lives(**given: object) -> Queue:
    return Queue([job(7, **{"submit": NOW - 310, **given})], [])


def has_ended(state: str = "COMPLETED", start: int = NOW - 300, submit: int = NOW - 310) -> Queue:
    return Queue([], [Ended(7, state, submit, start, NOW - 200)])


def told(queue: Queue) -> list[Run]:
    """What is ended of the one run that waits."""
    found = over([open_run()], queue, NOW, None)
    assert found.lost == []
    return found.told


def test_an_ended_job_tells_the_end_of_its_run() -> None:
    """slurmdbd may have lost it: it would count on in every figure until slurmctld forgets."""
    for state in ENDED:
        assert told(has_ended(state)) == [replace(open_run(), end=NOW - 200, state=state)]


def test_a_requeued_job_tells_by_its_new_submission_that_the_run_before_is_over() -> None:
    waits = lives(state="PENDING", submit=NOW - 100)
    again = lives(state="RUNNING", submit=NOW - 100, start=NOW - 50)
    ended = has_ended(submit=NOW - 100, start=NOW - 50)
    for queue in (waits, again, ended):
        assert told(queue) == [replace(open_run(), end=NOW - 100, state="REQUEUED")]


def test_a_run_that_began_after_the_queue_was_read_goes_on() -> None:
    assert told(lives(state="PENDING")) == []
    assert told(Queue([], [])) == [], "and one that it does not know"


def test_another_run_of_an_ended_job_is_not_given_its_end() -> None:
    assert over([open_run()], has_ended(start=NOW - 250), NOW, None).told == []


@given(st.sampled_from(sorted(LIVE)), st.integers(0, 400), st.integers(0, 400))
def test_what_lives_is_never_ended(state: str, submit: int, end: int) -> None:
    start = NOW - 300
    queue = lives(state=state, submit=start - submit, start=start, end=start + end)
    waiting = [open_run(start=start)]
    assert over(waiting, queue, NOW, NOW) == ([], [])


def test_runs_that_no_queue_knows_are_ended_where_they_were_last_seen() -> None:
    lost = open_run(1, NOW - 5000)
    older, newer = open_run(7, NOW - 4000), open_run(7, NOW - 3000)
    young = open_run(3, NOW - 5)
    waiting = [lost, older, newer, young]
    seen = NOW - 700
    for order in (waiting, waiting[::-1]):
        found = over(order, lives(submit=NOW - 5000), NOW, seen)
        assert found.told == []
        ended = {(run.job_id, run.start): run for run in found.lost}
        assert ended == {
            (1, NOW - 5000): replace(lost, end=seen, state="LOST"),
            (7, NOW - 4000): replace(older, end=seen, state="LOST"),
        }
    never = over([lost], lives(), NOW, None)
    assert never.lost == [replace(lost, end=lost.start, state="LOST")], "it counts nothing"


def test_a_job_that_was_started_twice_for_one_submission_is_not_counted_twice() -> None:
    """slurmctld was killed before it wrote down the first start; slurmdbd knows no end of that."""
    queue = lives(state="RUNNING", start=NOW - 200)
    first, second = open_run(start=NOW - 300), open_run(start=NOW - 200)
    for seen, end in ((NOW - 250, NOW - 250), (NOW - 60, NOW - 200), (None, NOW - 300)):
        lost = [replace(first, end=end, state="LOST")]
        assert over([first, second], queue, NOW, seen) == ([], lost)


@given(
    st.lists(st.tuples(st.sampled_from([7, 8]), st.integers(0, 2000)), unique=True),
    st.one_of(st.none(), st.integers(0, 2000)),
    st.one_of(st.none(), st.integers(0, 2000)),
)
def test_no_run_is_ended_after_now_or_before_its_start(
    runs: list[tuple[int, int]], start: int | None, seen: int | None
) -> None:
    state = "PENDING" if start is None else "RUNNING"
    since = None if start is None else NOW - start
    queue = lives(state=state, submit=NOW - 2000, start=since)
    waiting = [open_run(number, NOW - ago) for number, ago in runs]
    last = None if seen is None else NOW - seen
    found = over(waiting, queue, NOW, last)
    ended = found.told + found.lost
    assert {(run.job_id, run.start) for run in ended} <= {(r.job_id, r.start) for r in waiting}
    for run in ended:
        assert run.end is not None
        assert run.start <= run.end <= NOW
        if run.job_id == 7 and since is not None and run.start < since:
            assert run.end <= since, "the run that lives has the time since"
