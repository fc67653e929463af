"""Running sums equal counting afresh, in any order, forth and back in time."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from slurm_budget.core.standing import Key, Sums
from slurm_budget.core.tally import Tally, counted, tally
from slurm_budget.core.weights import rates
from slurm_budget.core.window import Window, charge, use
from slurm_budget.state.jobs import Run

WEIGHTS = {"h100": 1333}
windows = st.sampled_from(
    [Window("sliding", 100), Window("sliding", 7), Window("decay", half_life=13)]
)
runs = st.builds(
    Run,
    cluster=st.just("c"),
    job_id=st.integers(1, 10**6),
    start=st.integers(0, 300),
    end=st.none() | st.integers(0, 400),
    submit=st.just(0),
    user=st.sampled_from(["ana", "ben"]),
    account=st.sampled_from(["vision", "language"]),
    qos=st.just("q"),
    partition=st.just("p"),
    state=st.just("RUNNING"),
    gpus=st.sampled_from([{}, {"": 2}, {"h100": 4}, {"h100": 1, "a100": 3}]),
    num_nodes=st.just(1),
    suspended=st.sampled_from([0, 0, 5]),
    class_=st.sampled_from(["funded", "preemptible"]),
    min_runtime=st.none() | st.integers(0, 150),
)


def filled(sums: Sums) -> tuple[dict[Key, int], dict[Key, int]]:
    """Without zeros: a key that was used long ago may or may not still be there."""
    return (
        {key: amount for key, amount in sums.charge.items() if amount},
        {key: amount for key, amount in sums.use.items() if amount},
    )


@given(st.lists(runs, max_size=8), windows, st.integers(0, 500))
def test_sums_are_the_sums_of_single_runs(found: list[Run], window: Window, now: int) -> None:
    sums = tally(found, window, WEIGHTS, now, 1000)
    for figure, of in ((sums.charge, charge), (sums.use, use)):
        expected: dict[Key, int] = {}
        for run in found:
            for kind, rate in rates(run.gpus, WEIGHTS).items():
                key = (run.account, run.user, kind)
                extra = {} if of is charge else {"usage_factor": 1000}
                expected[key] = expected.get(key, 0) + of(run, rate, window, now, **extra)  # type: ignore[operator]
        for key, amount in expected.items():
            # rounded down once for the sum, or once for each run
            assert 0 <= figure.get(key, 0) - amount <= (len(found) if window.kind == "decay" else 0)


@given(st.lists(runs, max_size=8), windows, st.integers(0, 500), st.randoms())
def test_any_order_gives_the_same_figures(found, window, now, random) -> None:  # type: ignore[no-untyped-def]
    other = list(found)
    random.shuffle(other)
    assert tally(found, window, WEIGHTS, now, 100) == tally(other, window, WEIGHTS, now, 100)


@settings(max_examples=300)
@given(
    st.lists(runs, max_size=8),
    st.lists(runs, max_size=4),
    windows,
    st.lists(st.integers(0, 500), min_size=1, max_size=6),
)
def test_moving_in_time_equals_counting_afresh(
    early: list[Run], late: list[Run], window: Window, moments: list[int]
) -> None:
    running = Tally(window, WEIGHTS, moments[0])
    there = list(early)
    for run in there:
        running.add(counted(run))
    for step, now in enumerate(moments):
        if not running.can_move(now):
            return
        stretches = running.passed(now)

        def passed(run: Run, stretches: list[tuple[int, int]] = stretches) -> bool:
            one = counted(run)
            return any(
                low < moment <= high
                for low, high in stretches
                for moment in (one.since, one.until, one.charged_until)
            )

        running.move([counted(run) for run in there if passed(run)], now)
        assert filled(running.sums(100)) == filled(tally(there, window, WEIGHTS, now, 100))
        if step < len(late):
            there.append(late[step])
            running.add(counted(late[step]))
            # a correction: the newest run turns out to have ended
            old, new = late[step], replace(late[step], end=now)
            there[-1] = new
            running.add(counted(old), -1)
            running.add(counted(new))
            assert filled(running.sums(100)) == filled(tally(there, window, WEIGHTS, now, 100))


def test_other_settings_show_the_same_runs_anew() -> None:
    window = Window("sliding", 100)
    job = Run("c", 1, 0, 50, 0, "ana", "vision", "q", "p", "COMPLETED", {"": 1}, 1, 0, "funded", 10)
    running = Tally(window, {}, 60)
    running.add(counted(job))
    key = ("vision", "ana", "")
    assert running.sums(100).charge[key] == 10_000
    assert running.sums(100, whole_run=True).charge[key] == 50_000
    assert running.sums(100).charge[key] == 10_000


def test_what_left_the_window_leaves_no_trace() -> None:
    window = Window("sliding", 100)
    job = Run("c", 1, 0, 50, 0, "ana", "vision", "q", "p", "COMPLETED", {"": 1}, 1)
    running = Tally(window, {}, 60)
    running.add(counted(job))
    running.sums(100)
    running.move([counted(job)], 151)
    assert running.sums(100) == Sums({}, {})
    assert running.cells == {}
