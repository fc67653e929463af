"""When a spent budget is back: charge that leaves the window gives balance again.

With a sliding window of length W, a protected part [a, b) of rate r leaves from a + W to b + W, r
GPU-milliseconds a second. Protection that is still reserved only turns into charge, so it changes
nothing until it leaves in its turn. With decay, what was charged shrinks by half each half-life.

    >>> when_back([(100, 200, 1000)], 40_000, 3600, now=300)
    3740
"""

import math
from collections.abc import Iterable


def when_back(
    parts: Iterable[tuple[int, int, int]], missing: int, length: int, now: int
) -> int | None:
    """The first second at which `missing` GPU-milliseconds have left a sliding window.

    `parts` are (start, end, rate) of what is charged; None when not so much will ever leave.
    """
    edges: dict[int, int] = {}
    for start, end, rate in parts:
        first = max(start + length, now)
        if end + length > first:
            edges[first] = edges.get(first, 0) + rate
            edges[end + length] = edges.get(end + length, 0) - rate
    gone, rate, at = 0, 0, now
    for moment in sorted(edges):
        if rate > 0 and gone + rate * (moment - at) >= missing:
            return at + -(-(missing - gone) // rate)
        gone += rate * (moment - at)
        rate += edges[moment]
        at = moment
    return None


def leaving(parts: Iterable[tuple[int, int, int]], length: int, now: int, within: int) -> int:
    """GPU-milliseconds that leave a sliding window in the next `within` seconds.

    >>> leaving([(100, 200, 1000)], 3600, now=3750, within=20)
    20000
    """
    out = 0
    for start, end, rate in parts:
        first, last = max(start + length, now), min(end + length, now + within)
        out += rate * max(last - first, 0)
    return out


def decaying(charge: int, half_life: int, within: int) -> int:
    """The same for a decaying window."""
    return charge - round(charge * 2 ** (-within / half_life))


def when_decayed(charge: int, missing: int, half_life: int, now: int) -> int | None:
    """The same for a decaying window; None when even a charge of nothing would not do."""
    if missing >= charge:
        return None
    return now + math.ceil(half_life * math.log2(charge / (charge - missing)))
