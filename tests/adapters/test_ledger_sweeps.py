"""What sweeps keep: every step is there when the call returns; one holder of the lease."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from slurm_budget.errors import BadInput, LeaseLost
from slurm_budget.ledger.store import Brake, Ledger, Sweep
from slurm_budget.ledger.sweeping import Totals
from slurm_budget.state.intent import Intent
from slurm_budget.state.lease import Lease
from slurm_budget.state.session import Notice

from .conftest import Database


def intent(ledger: Ledger, job_id: int = 7, now: int = 10, token: int | None = None) -> int:
    return ledger.open_intent(
        "main",
        job_id=job_id,
        run_start=5,
        victim_account="vision",
        for_job=8,
        for_account="language",
        gpus=4,
        reason="language is owed 4 GPUs",
        now=now,
        token=token,
    )


def test_an_intent_goes_its_way(database: Database) -> None:
    with database.open() as ledger:
        number = intent(ledger)
        ledger.advance_intent(number, "signalled", 11, "USR1", grace_until=71)
    with database.open() as again:
        (found,) = again.open_intents("main")
        assert (found.id, found.step, found.detail) == (number, "signalled", "USR1")
        assert (found.created, found.updated, found.grace_until) == (10, 11, 71)
        assert (found.victim_account, found.for_account, found.gpus) == ("vision", "language", 4)
        assert found.open
        again.advance_intent(number, "requeued", 72)
        assert again.open_intents("main")[0].grace_until == 71, "kept until another is given"
        again.advance_intent(number, "done", 80, "pending")
        assert again.open_intents("main") == []
        assert again.open_intents("other") == []


def test_a_closed_intent_stays_closed(ledger: Ledger) -> None:
    number = intent(ledger)
    ledger.advance_intent(number, "left", 11, "it ended by itself")
    with pytest.raises(BadInput, match="left already"):
        ledger.advance_intent(number, "requeued", 12)
    with pytest.raises(BadInput, match="no intent"):
        ledger.advance_intent(number + 1, "done", 12)


def test_intents_of_a_time(ledger: Ledger) -> None:
    for now in (10, 20, 30):
        intent(ledger, now, now)
    assert [one.job_id for one in ledger.intents_since("main", 20)] == [20, 30]


def planned(job_id: int) -> Intent:
    return Intent(0, "main", job_id, 5, "vision", 8, "language", 4, "planned", "owed", 10, 10)


def test_intents_of_one_sweep_are_there_all_or_none(ledger: Ledger) -> None:
    """A gang that needs two runs is never helped by half: a kill between them leaves neither."""

    def killed() -> Iterator[Intent]:
        yield planned(1)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ledger.plan_requeues(killed())
    assert ledger.open_intents("main") == []
    numbers = ledger.plan_requeues([planned(1), planned(2)])
    found = ledger.open_intents("main")
    assert [(one.id, one.job_id) for one in found] == list(zip(numbers, (1, 2), strict=True))


def test_intents_that_were_touched_since(ledger: Ledger) -> None:
    """A cooldown counts from what was done last, however long ago it was planned."""
    for job in (1, 2):
        intent(ledger, job, 10)
    ledger.advance_intent(ledger.open_intents("main")[0].id, "requeued", 30)
    assert [one.job_id for one in ledger.intents_touched_since("main", 20)] == [1]
    assert [one.job_id for one in ledger.intents_touched_since("main", 10)] == [1, 2]


def test_totals_count_what_was_sent_once(ledger: Ledger) -> None:
    assert ledger.totals("main") == Totals(0, {}, {})
    done, left, _ = (intent(ledger, job) for job in (1, 2, 3))
    for step in ("signalled", "requeued", "done"):
        ledger.advance_intent(done, step, 20)  # type: ignore[arg-type]
    ledger.advance_intent(left, "left", 20)
    ledger.record_sweep("main", 5, "x", 0.25)
    ledger.record_sweep("other", 5, "x", 0.25)
    assert ledger.totals("main") == Totals(1, {"vision": 1}, {"vision": 4})


def test_sweeps_and_brake(ledger: Ledger) -> None:
    ledger.record_sweep("main", 5, "nothing to do", 0.25)
    ledger.record_sweep("other", 6, "1 run makes way", 1.5)
    assert ledger.last_sweeps(5) == [
        Sweep(6, "other", "1 run makes way", 1.5),
        Sweep(5, "main", "nothing to do", 0.25),
    ]
    assert ledger.last_sweeps(1, "main") == [Sweep(5, "main", "nothing to do", 0.25)]
    assert ledger.last_sweeps(1, "nowhere") == []
    assert ledger.brake("main") is None
    ledger.set_brake("main", paused=True, author="adm", reason="maintenance", now=7)
    assert ledger.brake("main") == Brake(True, "adm", "maintenance", 7)
    ledger.set_brake("main", paused=False, author="adm", reason="", now=8)
    assert ledger.brake("main") == Brake(False, "adm", "", 8)


def test_what_a_session_was_told_is_remembered_by_its_moment(ledger: Ledger) -> None:
    assert ledger.notices_since("main", 0) == set()
    early, late = Notice(7, "preempt", 100, "text"), Notice(7, "end", 200, "text")
    for notice in (early, late, late):
        ledger.record_notice("main", notice, 90, "done")
    assert ledger.notices_since("main", 100) == {early.key, late.key}
    assert ledger.notices_since("main", 101) == {late.key}
    assert ledger.notices_since("other", 0) == set()


def test_one_holds_the_lease_and_another_takes_over(ledger: Ledger) -> None:
    assert ledger.lease("main") is None
    one = ledger.acquire_lease("main", "ctl1", 100, 60)
    assert one is not None
    assert ledger.acquire_lease("main", "ctl2", 110, 60) is None
    assert ledger.acquire_lease("main", "ctl1", 110, 60) is None, "a name can stand twice"
    assert ledger.renew_lease("main", "ctl1", one, 150, 60)
    assert ledger.lease("main") == Lease("ctl1", one, 210)
    assert ledger.acquire_lease("main", "ctl2", 209, 60) is None
    two = ledger.acquire_lease("main", "ctl2", 210, 60)
    assert two is not None
    assert two > one
    assert not ledger.renew_lease("main", "ctl1", one, 211, 60)
    ledger.release_lease("main", two, 220)
    three = ledger.acquire_lease("main", "ctl1", 221, 60)
    assert three is not None
    ledger.release_lease("main", two, 222)
    assert ledger.lease("main") == Lease("ctl1", three, 281), "another's lease is left alone"


def test_a_lease_that_ran_out_and_that_nobody_took_can_be_renewed(ledger: Ledger) -> None:
    token = ledger.acquire_lease("main", "ctl1", 100, 60)
    assert token is not None
    assert ledger.renew_lease("main", "ctl1", token, 500, 60)


def test_a_lease_of_a_clock_that_was_a_day_ahead_holds_nobody_up(ledger: Ledger) -> None:
    ledger.acquire_lease("main", "ctl1", 100 + 86400, 60)
    assert ledger.acquire_lease("main", "ctl2", 100, 60) is not None


def test_steps_of_one_who_lost_the_lease_are_not_written(ledger: Ledger) -> None:
    old = ledger.acquire_lease("main", "ctl1", 100, 60)
    number = intent(ledger, token=old)
    ledger.advance_intent(number, "signalled", 101, token=old)
    ledger.acquire_lease("main", "ctl2", 200, 60)
    with pytest.raises(LeaseLost, match="ctl2 holds the lease until 1970-01-01 00:04:20 UTC"):
        ledger.advance_intent(number, "requeued", 201, token=old)
    with pytest.raises(LeaseLost, match="ctl2"):
        intent(ledger, 9, token=old)
    (found,) = ledger.open_intents("main")
    assert (found.id, found.step) == (number, "signalled")


def test_the_first_sweep_after_a_clock_was_set_back_is_remembered(ledger: Ledger) -> None:
    assert ledger.newest_sweep("main") == (None, None)
    for at in (100, 130, 90, 120):
        ledger.record_sweep("main", at, "nothing to do", 0.1)
    assert ledger.newest_sweep("main") == (130, 90)
    ledger.record_sweep("main", 150, "nothing to do", 0.1)
    assert ledger.newest_sweep("main") == (150, None)


def test_of_many_who_ask_at_once_one_gets_the_lease(database: Database) -> None:
    database.open().close()

    def ask(number: int) -> int | None:
        with database.open(create=False) as ledger:
            return ledger.acquire_lease("main", f"ctl{number}", 100, 60)

    with ThreadPoolExecutor(8) as pool:
        tokens = list(pool.map(ask, range(8)))
    assert [token for token in tokens if token is not None] == [1]
