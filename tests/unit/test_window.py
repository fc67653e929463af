"""Charge and use of one run: the worked example, the laws, and the unclean cases."""

import math
from dataclasses import replace
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_budget.core import decay
from slurm_budget.core.window import HALF_LIVES, Window, active, charge, protected, use
from slurm_budget.errors import BadInput
from slurm_budget.state.jobs import Run

HOUR = 3600


def run(**changes: object) -> Run:
    base = Run("c", 1, 0, 100, 0, "u", "a", "funded-a", "p", "COMPLETED", {"": 1}, 1)
    return replace(replace(base, class_="funded", min_runtime=40), **changes)  # type: ignore[arg-type]


runs = st.builds(
    run,
    start=st.integers(0, 300),
    end=st.none() | st.integers(-50, 400),
    suspended=st.sampled_from([0, 0, 7, 500]),
    class_=st.sampled_from(["funded", "preemptible"]),
    min_runtime=st.none() | st.integers(0, 200),
)


def seconds(span: tuple[int, int], now: int) -> range:
    return range(span[0], min(span[1], now))


@given(runs, st.integers(1, 300), st.integers(0, 500), st.sampled_from([1, 333, 8000]))
def test_a_sliding_window_equals_counting_second_by_second(
    job: Run, length: int, now: int, rate: int
) -> None:
    window = Window("sliding", length)
    inside = [s for s in seconds(active(job), now) if now - length <= s < now]
    shielded = [s for s in inside if protected(job)[0] <= s < protected(job)[1]]
    assert charge(job, rate, window, now) == rate * len(shielded)
    whole = rate * len(inside)
    assert use(job, rate, window, now) == (whole if job.class_ == "funded" else whole // 10)


@given(runs, st.integers(20, 200), st.integers(0, 500))
def test_a_decaying_window_equals_integrating_numerically(
    job: Run, half_life: int, now: int
) -> None:
    window = Window("decay", half_life=half_life)
    steps = 50
    total = sum(
        2 ** (-(now - (s + (i + 0.5) / steps)) / half_life) / steps
        for s in seconds(active(job), now)
        for i in range(steps)
    )
    rate = 1_000_000
    expected = rate * total * (1 if job.class_ == "funded" else 0.1)
    # what is older than twenty half-lives is forgotten: at most this much of a run that never ended
    forgotten = rate * half_life / math.log(2) * 2**-20
    assert use(job, rate, window, now) == pytest.approx(expected, rel=1e-5, abs=1 + forgotten)


@given(runs, st.integers(1, 300), st.integers(0, 500))
def test_what_is_charged_is_used_and_preemptible_runs_are_free(
    job: Run, length: int, now: int
) -> None:
    for window in (Window("sliding", length), Window("decay", half_life=length)):
        paid = charge(job, 1000, window, now)
        assert paid >= 0
        if job.class_ == "preemptible":
            assert paid == 0
        else:
            assert paid <= use(job, 1000, window, now)
            assert charge(job, 1000, window, now, whole_run=True) == use(job, 1000, window, now)


def test_the_worked_example() -> None:
    start = 10 * HOUR
    job = run(start=start, end=start + 6 * HOUR, min_runtime=4 * HOUR)
    now = start + 2 * HOUR + 604800
    assert charge(job, 8000, Window(), now) == 16 * HOUR * 1000
    assert use(job, 8000, Window(), now) == 32 * HOUR * 1000


def test_a_decaying_window_halves() -> None:
    window = Window("decay", half_life=1000)
    job = run(start=0, end=500)
    now, later = use(job, 10**9, window, 500), use(job, 10**9, window, 1500)
    assert later == now // 2
    assert use(job, 10**9, window, 500 + (HALF_LIVES + 1) * 1000) == 0


@pytest.mark.parametrize("kind", ["sliding", "decay"])
def test_a_gpu_that_is_always_busy_uses_what_a_budget_of_one_gpu_buys(kind: str) -> None:
    window = Window(kind, length=1000, half_life=1000)  # type: ignore[arg-type]
    job = run(start=0, end=None)
    assert use(job, 1000, window, 10**6) == pytest.approx(window.budget_seconds * 1000, rel=2e-3)


def test_unclean_rows() -> None:
    window = Window("sliding", 1000)
    assert use(run(start=500, end=600), 1000, window, 400) == 0, "a future row"
    assert use(run(start=500, end=900), 1000, window, 600) == 100_000, "an end in the future"
    assert use(run(start=500, end=400), 1000, window, 900) == 0, "a negative length"
    assert use(run(start=500, end=500), 1000, window, 900) == 0, "no length"
    assert use(run(start=500, end=None), 1000, window, 600) == 100_000, "no end yet"
    assert use(run(start=0, end=100, suspended=60), 1000, window, 200) == 40_000
    assert use(run(start=0, end=100, suspended=160), 1000, window, 200) == 0
    assert charge(run(min_runtime=None), 1000, window, 200) == 0, "nothing declared"
    assert charge(run(min_runtime=40, suspended=80), 1000, window, 200) == 20_000


def test_a_week_with_a_change_to_summer_time_has_as_many_seconds_as_any() -> None:
    berlin = ZoneInfo("Europe/Berlin")
    now = int(datetime(2026, 3, 30, 12, tzinfo=berlin).timestamp())
    job = run(start=now - 10 * 86400, end=None)
    assert use(job, 1000, Window(), now) == 604800 * 1000


def test_a_window_without_time_is_refused() -> None:
    with pytest.raises(BadInput, match="length = 0"):
        Window("sliding", 0)
    with pytest.raises(BadInput, match="half_life = 0"):
        Window("decay", half_life=0)


@given(st.integers(1, 10**6).flatmap(lambda h: st.tuples(st.integers(0, 50 * h), st.just(h))))
def test_powers_of_two_are_as_exact_as_floating_point(drawn: tuple[int, int]) -> None:
    seconds, half_life = drawn
    whole, rest = divmod(seconds, half_life)
    mantissa = decay.power(rest, half_life) / decay.ONE
    assert mantissa == pytest.approx(2 ** (rest / half_life), rel=1e-15)
    assert decay.power(seconds, half_life) == decay.power(rest, half_life) << whole
