"""Runs and sums in the ledger: the laws, on both databases."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import text

from slurm_budget.core.report import sums_of as sums_of_period
from slurm_budget.core.standing import Key, Sums
from slurm_budget.core.tally import counted, tally
from slurm_budget.core.window import Window, protected
from slurm_budget.errors import SlurmUnreachable
from slurm_budget.ledger import sums as sums_of
from slurm_budget.ledger.store import Ledger, Recorded
from slurm_budget.state.jobs import Run

WEIGHTS = {"h100": 1333}
WINDOWS = [Window("sliding", 100), Window("decay", half_life=13)]
few = settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def run(job_id: int = 1, **changes: object) -> Run:
    base = Run(
        "main", job_id, 100, 200, 90, "ana", "vision", "funded-vision", "gpu", "COMPLETED",
        {"h100": 2}, 1, 0, "funded", 60,
    )  # fmt: skip
    return replace(base, **changes)  # type: ignore[arg-type]


runs = st.lists(
    st.builds(
        run,
        job_id=st.integers(1, 10**6),
        start=st.integers(0, 300),
        end=st.none() | st.integers(0, 400),
        user=st.sampled_from(["ana", "ben"]),
        account=st.sampled_from(["vision", "language", ""]),
        gpus=st.sampled_from([{}, {"": 2}, {"h100": 4}, {"h100": 1, "a100_3g.20gb": 3}]),
        suspended=st.sampled_from([0, 0, 5]),
        class_=st.sampled_from(["funded", "preemptible"]),
        min_runtime=st.none() | st.integers(0, 150),
        eligible=st.none() | st.just(95),
        time_limit=st.none() | st.just(600),
        cluster=st.sampled_from(["main", "main", "main", "other"]),
    ),
    unique_by=lambda r: (r.cluster, r.job_id, r.start),
    max_size=12,
)


def wipe(ledger: Ledger) -> None:
    """Hypothesis calls a test many times with one fixture."""
    with ledger.engine.begin() as connection:
        for table in ("runs", "recordings", "sums_states", "cursors"):
            connection.execute(text(f"DELETE FROM {table}"))
    ledger._states.clear()


def settled(old: Run, told: Run) -> Run:
    """The rule of ledger.recording, said again."""
    if old.end is not None and told.end is None:
        return old
    told = replace(
        told,
        eligible=old.eligible if told.eligible is None else told.eligible,
        time_limit=old.time_limit if told.time_limit is None else told.time_limit,
    )
    if told.min_runtime is None and told.class_ == old.class_:
        return replace(told, min_runtime=old.min_runtime)
    return told


def filled(sums: Sums) -> tuple[dict[Key, int], dict[Key, int]]:
    return (
        {key: amount for key, amount in sums.charge.items() if amount},
        {key: amount for key, amount in sums.use.items() if amount},
    )


def expected(found: list[Run], window: Window, now: int) -> tuple[dict[Key, int], dict[Key, int]]:
    mine = [one for one in found if one.cluster == "main"]
    return filled(tally(mine, window, WEIGHTS, now, 100))


def figures(ledger: Ledger, window: Window, now: int) -> tuple[dict[Key, int], dict[Key, int]]:
    return filled(ledger.sums("main", window, now, WEIGHTS, 100))


def stored(ledger: Ledger) -> list[Run]:
    return [one for c in ("main", "other") for one in ledger.runs_between(c, -1, 10**10)]


@few
@given(runs)
def test_charging_twice_is_charging_once(ledger: Ledger, found: list[Run]) -> None:
    wipe(ledger)
    assert ledger.record_runs(found, source="t", now=1) == Recorded(new=len(found))
    before = stored(ledger)
    assert ledger.record_runs(found + found, source="t", now=2) == Recorded(same=2 * len(found))
    assert stored(ledger) == before


@few
@given(runs, st.randoms(), st.sampled_from(WINDOWS), st.integers(0, 500))
def test_any_order_of_arrival_gives_the_same_figures(  # type: ignore[no-untyped-def]
    ledger: Ledger, found: list[Run], random, window: Window, now: int
) -> None:
    # each run is seen once while it runs, and once as it ended
    news = [replace(r, end=None, state="RUNNING") for r in found if r.end is not None] + found
    random.shuffle(news)
    wipe(ledger)
    for one in news:
        ledger.record_runs([one], source="t", now=1)
    assert figures(ledger, window, now) == expected(found, window, now)
    wipe(ledger)
    ledger.record_runs(news[::-1], source="t", now=1)
    assert figures(ledger, window, now) == expected(found, window, now)


@few
@given(
    st.lists(st.tuples(st.integers(0, 500), runs), min_size=1, max_size=5),
    st.sampled_from(WINDOWS),
)
def test_running_sums_equal_a_fresh_count(
    ledger: Ledger, steps: list[tuple[int, list[Run]]], window: Window
) -> None:
    wipe(ledger)
    there: dict[tuple[str, int, int], Run] = {}
    other = Ledger(ledger.engine)
    for now, found in steps:
        ledger.record_runs(found, source="t", now=now)
        for one in found:
            key = (one.cluster, one.job_id, one.start)
            there[key] = settled(there[key], one) if key in there else one
        want = expected(list(there.values()), window, now)
        assert figures(ledger, window, now) == want, "kept up in this process"
        assert figures(other, window, now) == want, "kept up in another one"
        assert figures(Ledger(ledger.engine), window, now) == want, "from the cache"
        ledger.forget_sums()
        assert figures(ledger, window, now) == want, "afresh"


@few
@given(runs, st.integers(0, 350), st.integers(1, 200))
def test_a_period_counts_what_a_window_of_its_length_counts(
    ledger: Ledger, found: list[Run], start: int, length: int
) -> None:
    wipe(ledger)
    ledger.record_runs([replace(one, end=None) for one in found], source="t", now=1)
    ledger.record_runs(found, source="t", now=2)
    now, window = start + length, Window("sliding", length)
    with ledger.period("main", start, now) as period:
        sums = sums_of_period(period.used(), WEIGHTS, 100, whole_run=False).weighed
    assert filled(sums) == expected(found, window, now)


def test_runs_come_back_as_they_went_in(ledger: Ledger) -> None:
    found = [
        run(1, suspended=7, gpus={"h100": 1, "": 2}),
        run(2, start=120, end=None, state="RUNNING", min_runtime=None, account="", gpus={}),
        run(2, start=400, end=400, qos="preemptible", class_="preemptible"),
    ]
    ledger.record_runs(found, source="sacct", now=500)
    assert stored(ledger) == found
    assert list(ledger.runs_between("main", 200, 400)) == [found[1]]
    assert ledger.unfinished_runs("main") == [found[1]]
    assert list(ledger.runs_between("nowhere", 0, 999)) == []


@few
@given(found=runs, start=st.integers(0, 300), accounts=st.sets(st.sampled_from(["vision", "none"])))
def test_what_is_charged_of_accounts_is_all_of_theirs_that_a_period_cuts(  # type: ignore[no-untyped-def]
    ledger: Ledger, found: list[Run], start: int, accounts
) -> None:
    wipe(ledger)
    ledger.record_runs(found, source="t", now=1)
    wanted = [
        counted(one)
        for one in ledger.runs_between("main", -1, 350)
        if one.account in accounts and one.class_ == "funded"
        if protected(one)[1] > start
    ]
    got = list(ledger.charged_between("main", accounts, start, 350))
    assert sorted(got, key=repr) == sorted(wanted, key=repr)


def test_a_correction_is_a_new_row_that_names_the_old(ledger: Ledger) -> None:
    ledger.record_runs([run(end=None, state="RUNNING")], source="sacct", now=150)
    ledger.record_runs([run(end=200)], source="sacct", now=250)
    ledger.record_runs([run(end=180)], source="rebuild", now=350)
    with ledger.engine.connect() as connection:
        rows = connection.execute(
            text("SELECT id, revision, replaces_id, end_at FROM runs ORDER BY id")
        ).all()
    ids = [row.id for row in rows]
    assert [row.revision for row in rows] == [0, 1, 2]
    assert [row.replaces_id for row in rows] == [None, *ids[:2]]
    assert [row.end_at for row in rows] == [None, 200, 180]
    assert stored(ledger) == [run(end=180)]


def test_late_or_poorer_word_does_not_wipe_what_is_known(ledger: Ledger) -> None:
    ledger.record_runs([run(end=None, state="RUNNING", min_runtime=3600)], source="s", now=1)
    # slurmdbd forgets AdminComment at a requeue until the run ends
    ledger.record_runs([run(end=None, state="RUNNING", min_runtime=None)], source="s", now=2)
    assert stored(ledger)[0].min_runtime == 3600
    ledger.record_runs([run(end=200)], source="s", now=3)
    ledger.record_runs([run(end=None, state="RUNNING")], source="s", now=4)
    assert stored(ledger)[0].end == 200


def test_a_run_that_was_ended_is_not_begun_anew_by_an_accounting_that_lost_its_end(
    ledger: Ledger,
) -> None:
    endless = run(end=None, state="RUNNING")
    ledger.record_runs([endless], source="sacct", now=1)
    ledger.record_runs([run(end=150, state="LOST")], source="lost", now=2)
    ledger.record_runs([endless], source="sacct", now=3)
    assert ledger.unfinished_runs("main") == []
    ledger.record_runs([run(end=180)], source="sacct", now=4)
    assert stored(ledger) == [run(end=180)], "what it says in the end stands"


def test_a_source_that_fails_at_its_end_leaves_nothing(ledger: Ledger) -> None:
    def failing() -> Iterator[Run]:
        for number in range(12_000):
            yield run(number, user=f"user{number % 50}")
        raise SlurmUnreachable("sacct failed")

    with pytest.raises(SlurmUnreachable):
        ledger.record_runs(failing(), source="sacct", now=1)
    assert stored(ledger) == []
    # the numbers that were given to names in it are not believed afterwards
    ledger.record_runs([run(user="user7")], source="sacct", now=2)
    assert [one.user for one in stored(ledger)] == ["user7"]
    assert ledger.faults(Window(), 10) == []


def test_batches_larger_than_one(ledger: Ledger) -> None:
    many = [run(number % 9000, start=number // 9000, end=None) for number in range(18_000)]
    assert ledger.record_runs(iter(many), source="t", now=1).new == 18_000
    ended = [replace(one, end=one.start + 5) for one in many]
    assert ledger.record_runs(iter(ended), source="t", now=1).corrected == 18_000
    assert len(stored(ledger)) == 18_000


def test_cursor(ledger: Ledger) -> None:
    assert ledger.cursor("main") is None
    ledger.set_cursor("main", 5)
    ledger.set_cursor("main", 7)
    ledger.set_cursor("other", 1)
    assert (ledger.cursor("main"), ledger.cursor("other")) == (7, 1)


def test_many_new_rows_are_counted_afresh(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sums_of, "AFRESH", 3)
    window = Window("sliding", 100)
    found: list[Run] = []
    for now in (150, 160, 250):
        more = [run(now * 10 + n, start=now - 20, end=now - n) for n in range(5)]
        found += more
        ledger.record_runs(more, source="t", now=now)
        assert figures(ledger, window, now) == expected(found, window, now)


def test_both_ways_to_count_afresh_agree(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite adds up rows itself only where their sums fit; else the database groups them."""
    found = [
        run(
            n,
            start=100 + n,
            end=150 + 3 * n,
            user=f"u{n % 7}",
            class_="funded" if n % 3 else "preemptible",
            gpus={"h100": n % 3, "": 1} if n % 3 else {"a100": 2},
        )
        for n in range(200)
    ]
    ledger.record_runs(found, source="t", now=1)
    ledger.record_runs([replace(one, end=one.end + 1) for one in found[::5]], source="t", now=2)  # type: ignore[operator]
    window = Window("sliding", 500)
    one = figures(ledger, window, 600)
    monkeypatch.setattr(sums_of, "_APART", 1)
    ledger.forget_sums()
    assert figures(ledger, window, 600) == one
    assert one == expected(list(ledger.runs_between("main", 0, 10**9)), window, 600)


def test_whole_run_charges_all_of_a_funded_run(ledger: Ledger) -> None:
    ledger.record_runs([run(gpus={"": 1})], source="t", now=300)
    window = Window("sliding", 1000)
    key = ("vision", "ana", "")
    assert ledger.sums("main", window, 300, {}).charge[key] == 60_000
    assert ledger.sums("main", window, 300, {}, whole_run=True).charge[key] == 100_000
    assert ledger.sums("nowhere", window, 300, {}) == Sums()


def test_check_finds_what_was_tampered_with(ledger: Ledger) -> None:
    window = Window("sliding", 1000)
    ledger.record_runs([run(1), run(2, end=None)], source="t", now=300)
    ledger.sums("main", window, 300, {})
    assert ledger.faults(window, 300) == []
    with ledger.engine.begin() as connection:
        connection.execute(text("UPDATE runs SET end_at = 190 WHERE job_id = 1"))
        connection.execute(text("UPDATE runs SET counts_until = 250 WHERE job_id = 2"))
        connection.execute(text("UPDATE runs SET user_id = 999 WHERE job_id = 1"))
    found = ledger.faults(window, 300)
    assert any("not what its times say" in fault and "job 1" in fault for fault in found)
    assert any("a run names a user that is not there" in fault for fault in found)


def test_check_finds_a_wrong_cache(ledger: Ledger) -> None:
    window = Window("sliding", 1000)
    ledger.record_runs([run(1)], source="t", now=300)
    ledger.sums("main", window, 300, {})
    with ledger.engine.begin() as connection:
        connection.execute(text("UPDATE runs SET gpus_id = user_id WHERE job_id = 1"))
    assert any("the cache of sums is wrong" in fault for fault in ledger.faults(window, 300))
    ledger.forget_sums()
    assert ledger.faults(window, 300) == []
