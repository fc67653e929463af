"""Powers of two in whole numbers, so that decayed sums are the same in any order and on any
machine.

`2 ** (t / half_life)` is kept as `mantissa << exponent`, the mantissa with 64 bits after the point:
the exponent is the whole half-lives in `t`, the mantissa comes from two small tables. Sums of such
numbers are exact; floating point would make a sum depend on the order of its terms.

    >>> one = power(0, 100)
    >>> power(100, 100) == 2 * one, power(250, 100) > power(249, 100)
    (True, True)
"""

from functools import lru_cache
from math import isqrt

BITS = 64
ONE = 1 << BITS
LOG2_E = 0x171547652B82FE177
"""1 / ln 2, 64 bits after the point: what a weight of 1 that halves every second adds up to."""


@lru_cache(maxsize=1)
def _roots() -> tuple[int, ...]:
    """2 ** (1/2), 2 ** (1/4), ... with 128 bits after the point."""
    root, out = 2 << (2 * BITS), []
    for _ in range(2 * BITS):
        root = isqrt(root << (2 * BITS))
        out.append(root)
    return tuple(out)


def _fraction(part: int, whole: int) -> int:
    """2 ** (part / whole) for 0 <= part < whole, with 64 bits after the point."""
    result, rest = 1 << (2 * BITS), part
    for root in _roots():
        rest *= 2
        if rest >= whole:
            rest -= whole
            result = result * root >> (2 * BITS)
        if not rest:
            break
    return result >> BITS


@lru_cache(maxsize=8)
def _tables(half_life: int) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
    step = isqrt(half_life) + 1
    fine = tuple(_fraction(second, half_life) for second in range(min(step, half_life)))
    coarse = tuple(_fraction(second, half_life) for second in range(0, half_life, step))
    return step, coarse, fine


def power(seconds: int, half_life: int) -> int:
    """2 ** (seconds / half_life) times 2 ** 64, for seconds >= 0. Rises strictly with seconds."""
    step, coarse, fine = _tables(half_life)
    exponent, rest = divmod(seconds, half_life)
    high, low = divmod(rest, step)
    return (coarse[high] * fine[low] >> BITS) << exponent
