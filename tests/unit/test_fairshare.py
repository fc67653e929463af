"""Fairshare numbers keep siblings' ratios, and keep still."""

from fractions import Fraction
from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from slurm_budget.core import fairshare

WEEK = 604_800
GPU = WEEK * 1000
HOUR = 3_600_000


def numbers(*budgets: int) -> list[int]:
    return list(fairshare.numbers(dict(enumerate(budgets)), WEEK).values())


# From one GPU-hour to a hundred thousand GPUs, as long as the group fits 32 bits at all.
amounts = st.one_of(
    st.integers(1, 2_000).map(lambda gpus: gpus * GPU),
    st.integers(1, 300_000).map(lambda hours: hours * HOUR),
    st.integers(HOUR, 100 * GPU),
)


@given(st.lists(amounts, min_size=1, max_size=30))
def test_ratios_are_within_a_thousandth(budgets: list[int]) -> None:
    got = numbers(*budgets)
    assert sum(got) <= fairshare.LARGEST_SUM + len(got)
    if sum(budgets) > min(budgets) * fairshare.LARGEST_SUM // (10 * fairshare.SMALLEST):
        return  # the next test's
    for (a, x), (b, y) in combinations(zip(budgets, got, strict=True), 2):
        assert abs(Fraction(x, y) / Fraction(a, b) - 1) < Fraction(1, 1000)


@given(st.lists(st.integers(1, 17_000_000), min_size=1, max_size=10))
def test_any_whole_gpu_hours_are_exact_or_near(hours: list[int]) -> None:
    """One GPU-hour beside a hundred thousand GPUs: then lowest terms are exact."""
    budgets = [h * HOUR for h in hours]
    got = numbers(*budgets)
    for (a, x), (b, y) in combinations(zip(hours, got, strict=True), 2):
        assert abs(Fraction(x, y) / Fraction(a, b) - 1) < Fraction(1, 1000)


@given(st.lists(amounts, min_size=2, max_size=20), amounts)
def test_a_siblings_change_does_not_move_a_number(budgets: list[int], other: int) -> None:
    usual = Fraction(fairshare.SHARES_PER_GPU, GPU)
    fits = [
        fairshare.shares_per_ms(dict(enumerate(group)), WEEK) == usual
        for group in (budgets, [*budgets[:-1], other])
    ]
    if all(fits):
        assert numbers(*budgets)[:-1] == numbers(*budgets[:-1], other)[:-1]


@given(st.lists(amounts, min_size=1, max_size=20), st.randoms())
def test_order_does_not_matter(budgets: list[int], random: object) -> None:
    assert sorted(numbers(*budgets)) == sorted(numbers(*budgets[::-1]))


def test_whole_gpus_are_plain_to_read() -> None:
    assert numbers(16 * GPU, 8 * GPU, 1 * GPU) == [160_000, 80_000, 10_000]


def test_zero_is_zero_and_changes_no_other() -> None:
    assert numbers(16 * GPU, 0) == [160_000, 0]
    assert numbers(0, 0) == [0, 0]


def test_small_budgets_get_a_finer_unit() -> None:
    assert numbers(HOUR, 3 * HOUR) == [5952, 17857]


def test_large_sums_stay_far_below_32_bits() -> None:
    assert sum(numbers(*[90_000 * GPU] * 100)) <= fairshare.LARGEST_SUM


def test_what_the_parent_leaves_is_shared_evenly() -> None:
    group = {"team": 8 * GPU}
    assert fairshare.rest_each(16 * GPU, group, 4, WEEK) == 20_000
    assert fairshare.rest_each(8 * GPU, group, 4, WEEK) == fairshare.NO_BUDGET
    assert fairshare.rest_each(None, group, 4, WEEK) == fairshare.NO_BUDGET
