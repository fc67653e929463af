"""Fairshare numbers: siblings' integers proportional to their budgets.

Fair Tree compares siblings only, so each group of siblings (the accounts and users directly below
one account) is numbered by itself. One share stands for a fixed amount of GPU-time, the same in
all groups: 10,000 shares are one GPU on average. A budget therefore keeps its number when a
sibling's changes, and an admin can read it. Only a group that does not fit this unit gets another,
by powers of ten: finer where its smallest budget would have fewer than 2,000 shares (then rounding
could bend a ratio by more than 0.1%), coarser where its sum would pass 1,000,000,000 (Slurm keeps
shares and their sums in 32 bits, and 2147483647 means `parent`).

A group whose largest budget is so many times its smallest that both cannot hold gets its exact
ratios in lowest terms where these are small enough, else the coarse unit with nothing below 1.

    >>> numbers({"a": 16 * 604_800_000, "b": 8 * 604_800_000, "c": 0}, window=604_800)
    {'a': 160000, 'b': 80000, 'c': 0}
    >>> numbers({"a": 3_600_000, "b": 7_200_000}, window=604_800)   # 1 and 2 GPU-hours a week
    {'a': 5952, 'b': 11905}

A budget of 0 is 0 shares: those jobs come last, as they should. No budget is 1 share, the least
that still takes part: 0 would say that somebody decided it, and a larger one would take from those
who have budgets.
"""

from collections.abc import Hashable, Mapping
from fractions import Fraction
from functools import reduce
from math import gcd
from typing import TypeVar

SHARES_PER_GPU = 10_000
SMALLEST = 2_000
LARGEST_SUM = 1_000_000_000
NO_BUDGET = 1
PARENT = 2_147_483_647
"""How sacctmgr writes `parent` in some of its outputs."""

K = TypeVar("K", bound=Hashable)


def _round(value: Fraction) -> int:
    """Half up, so that equal budgets round equally whatever their parity."""
    return int(value + Fraction(1, 2))


def shares_per_ms(budgets: Mapping[K, int], window: int) -> Fraction:
    """Shares per GPU-millisecond of a window of `window` seconds, for this group of siblings."""
    given = [ms for ms in budgets.values() if ms > 0]
    usual = Fraction(SHARES_PER_GPU, window * 1000)
    if not given:
        return usual
    scale = usual
    while min(given) * scale < SMALLEST:
        scale *= 10
    if sum(given) * scale <= LARGEST_SUM:
        # Coarser only as far as it must be: the usual unit is the one that people know.
        return scale
    scale = usual
    while sum(given) * scale > LARGEST_SUM:
        scale /= 10
    if min(given) * scale >= SMALLEST:
        return scale
    exact = Fraction(1, reduce(gcd, given))
    return exact if sum(given) * exact <= LARGEST_SUM else scale


def numbers(budgets: Mapping[K, int], window: int) -> dict[K, int]:
    """Fairshare of each sibling. `budgets`: GPU-milliseconds per window of `window` seconds."""
    scale = shares_per_ms(budgets, window)
    return {who: max(1, _round(ms * scale)) if ms > 0 else 0 for who, ms in budgets.items()}


def rest_each(parent_ms: int | None, budgets: Mapping[K, int], others: int, window: int) -> int:
    """Fairshare of each of the `others`: users without a budget beside siblings who have one.

    What the parent leaves over is its own: they share it evenly. 1 where nothing is left.
    """
    if parent_ms is None or others == 0:
        return NO_BUDGET
    rest = max(0, parent_ms - sum(budgets.values()))
    return max(NO_BUDGET, _round(Fraction(rest, others) * shares_per_ms(budgets, window)))
