"""Slurm's times, and what people write: `7d`, `8h`, `20min`. How we say them is text/spoken.

Slurm means different things by the same text: `10` as a limit is ten minutes, `1:00` as an elapsed
time is one minute. So there are two functions, and a caller must say which field it reads.

    >>> limit("10"), limit("1:00:00"), limit("3-13:10")
    (600, 3600, 306600)
    >>> elapsed("2-01:24:56")
    177896
"""

import math
import re
from fractions import Fraction

from slurm_budget.errors import BadInput

_SLURM = re.compile(r"(?:(?P<d>\d+)-)?(?P<parts>\d+(?::\d+){0,2})(?P<frac>\.\d+)?", re.ASCII)
_HUMAN = re.compile(
    r"(\d+(?:\.\d+)?)\s*(weeks?|w|days?|d|hours?|h|minutes?|min|ms|m|seconds?|sec|s)", re.ASCII
)
_UNIT = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}

UNLIMITED = math.inf


def limit(text: str) -> float | None:
    """A time limit in seconds: `inf` for UNLIMITED, None where Slurm does not know it.

    Forms: minutes, minutes:seconds, hours:minutes:seconds, days-hours, days-hours:minutes,
    days-hours:minutes:seconds (sbatch(1), --time).
    """
    value = text.strip()
    if value.upper() in ("UNLIMITED", "INFINITE"):
        return UNLIMITED
    if value.upper() in ("", "PARTITION_LIMIT", "NOT_SET", "INVALID", "N/A", "NONE"):
        return None
    match = _SLURM.fullmatch(value)
    if match is None or match["frac"]:
        raise BadInput(
            f"{text!r} is not a Slurm time limit", mend="write it like 8:00:00 or 1-00:00:00"
        )
    parts = [int(part) for part in match["parts"].split(":")]
    if match["d"] is not None:
        hours, minutes, seconds = (*parts, 0, 0)[:3]
        return int(match["d"]) * 86400 + hours * 3600 + minutes * 60 + seconds
    if len(parts) == 3:
        return parts[0] * 3600 + parts[1] * 60 + parts[2]
    return parts[0] * 60 + (parts[1] if len(parts) == 2 else 0)


def elapsed(text: str) -> Fraction | int:
    """A time that has passed, in seconds: `[days-][hours:]minutes:seconds[.fraction]`.

    `INVALID` (a clock that jumped) is 0; the caller that can warn looks for the text itself.
    """
    value = text.strip()
    if value.upper() in ("", "INVALID", "NONE", "UNKNOWN"):
        return 0
    match = _SLURM.fullmatch(value)
    if match is None:
        raise BadInput(f"{text!r} is not a Slurm elapsed time", mend="expected [D-]HH:MM:SS")
    whole = int(match["d"] or 0) * 86400
    for power, part in enumerate(reversed(match["parts"].split(":"))):
        whole += int(part) * 60**power
    return whole + Fraction(match["frac"]) if match["frac"] else whole


def human(text: str | int) -> int:
    """A duration that a person wrote: `7d`, `8h`, `1h30m`, `20min`, or whole seconds."""
    value = str(text).strip().lower()
    if re.fullmatch(r"\d+", value, re.ASCII):
        return int(value)
    parts = _HUMAN.findall(value)
    if not parts or "".join(_HUMAN.sub("", value).split()):
        raise BadInput(f"{text!r} is not a duration", mend="write it like 90s, 20min, 8h or 7d")
    total = sum(Fraction(n) * (Fraction(1, 1000) if u == "ms" else _UNIT[u[0]]) for n, u in parts)
    if total.denominator != 1:
        raise BadInput(f"{text!r} is not a whole number of seconds", mend="round it to seconds")
    return int(total)
