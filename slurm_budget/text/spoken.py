"""Seconds in words. Apart from what reads times, because sbudget-admit pays for each import."""

import math


def spoken(seconds: float) -> str:
    """Seconds for people, two units at most: `2 h 30 min`, `45 s`, `3 d 4 h`."""
    if math.isinf(seconds):
        return "unlimited"
    left = int(seconds)
    if left < 0:
        return "-" + spoken(-left)
    out: list[str] = []
    for name, size in (("d", 86400), ("h", 3600), ("min", 60), ("s", 1)):
        if left >= size or (name == "s" and not out):
            out.append(f"{left // size} {name}")
            left %= size
    return " ".join(out[:2])
