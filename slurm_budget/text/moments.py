"""Moments as people type them, in sreport's and sacct's words, and as they are shown.

Slurm's words (sacct(1), sreport(1); `past` in its parse_time: what has no date is today, what has
no year is the last such day that is not in the future):

    now  now-7days  now+2hours  now-90        seconds, minutes, hours, days, weeks
    today  tomorrow  yesterday                at 00:00
    midnight  elevenses  noon  fika  teatime  00:00, 11:00, 12:00, 15:00, 16:00 today
    HH:MM[:SS] [AM|PM]                        today
    MMDD[YY]  MM/DD[/YY]  MM.DD[.YY]          at 00:00; or with -HH:MM[:SS]
    YYYY-MM-DD[THH:MM[:SS]]                   with a zone too (2026-11-01T12:00Z)

Of our own: `yesterday`, and `7d` or `90min` for so long ago. A moment that does not exist (the hour
that summer time skips) is the same time an hour later. `zone` None is this machine's.
"""

import re
from datetime import datetime, timedelta, tzinfo

from slurm_budget.errors import BadInput
from slurm_budget.text import durations

_HOUR_OF = {"midnight": 0, "elevenses": 11, "noon": 12, "fika": 15, "teatime": 16}
_DAY_OF = {"yesterday": -1, "today": 0, "tomorrow": 1}
_UNITS = {"seconds": 1, "minutes": 60, "hours": 3600, "days": 86400, "weeks": 604800}
_NOW = re.compile(r"now(?:([+-])(\d+)([a-z]*))?", re.ASCII)
_CLOCK = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2}))?(?:\s*([ap]m))?", re.ASCII)
_DATE = re.compile(r"(\d{1,2})([/.])(\d{1,2})(?:\2(\d{2}|\d{4}))?|(\d{2})(\d{2})(\d{2})?", re.ASCII)
_ISO = re.compile(r"\d{4}-\d{2}-\d{2}([t ].*)?", re.ASCII)
_MEND = "write it like 2026-11-01, 2026-11-01T12:00, now-7days, today, 11/01 or 7d (ago)"


def moment(text: str, now: int, zone: tzinfo | None = None) -> int:
    """Epoch seconds. Raises BadInput where the text is no moment."""
    word = " ".join(text.strip().lower().split())
    try:
        found = _relative(word, now)
        if found is None:
            found = _in_words(word, datetime.fromtimestamp(now, zone), zone)
        if found is not None:
            shown(found, zone)  # a year that there is
    except (ValueError, OverflowError, OSError):  # a 13th month, a 30 February, the year 0
        found = None
    if found is None:
        raise BadInput(f"{text!r} is not a moment", mend=_MEND)
    return found


def _relative(word: str, now: int) -> int | None:
    parts = _NOW.fullmatch(word)
    if parts is not None:
        sign, count, unit = parts.groups()
        if sign is None:
            return now
        sizes = [size for name, size in _UNITS.items() if name.startswith(unit)]
        if unit and len(sizes) != 1:
            return None
        seconds = int(count) * (sizes[0] if unit else 1)
        return now + seconds if sign == "+" else now - seconds
    try:
        return None if word.isdigit() else now - durations.human(word.removesuffix(" ago"))
    except BadInput:
        return None


def _in_words(word: str, today: datetime, zone: tzinfo | None) -> int | None:
    midnight = today.replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=None, fold=0)
    if word in _DAY_OF:
        return _epoch(midnight + timedelta(days=_DAY_OF[word]), zone)
    if word in _HOUR_OF:
        return _epoch(midnight.replace(hour=_HOUR_OF[word]), zone)
    if _ISO.fullmatch(word):
        parsed = datetime.fromisoformat(word.upper())
        return int(parsed.timestamp()) if parsed.tzinfo else _epoch(parsed, zone)
    clock = _clock(word)
    if clock is not None:
        return _epoch(midnight + clock, zone)
    date, _, rest = word.partition("-")
    day = _date(date, midnight)
    after = _clock(rest) if rest else timedelta()
    return None if day is None or after is None else _epoch(day + after, zone)


def _clock(word: str) -> timedelta | None:
    parts = _CLOCK.fullmatch(word)
    if parts is None:
        return None
    hour, minute, second = (int(part or 0) for part in parts.groups()[:3])
    if parts[4]:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if parts[4] == "pm" else 0)
    if hour > 23 or minute > 59 or second > 59:
        return None
    return timedelta(hours=hour, minutes=minute, seconds=second)


def _date(word: str, today: datetime) -> datetime | None:
    parts = _DATE.fullmatch(word)
    if parts is None:
        return None
    month, day, year = (int(part) if part else None for part in (
        parts[1] or parts[5], parts[3] or parts[6], parts[4] or parts[7]
    ))  # fmt: skip
    assert month is not None
    assert day is not None
    if year is None:
        # 02/29 in a year without one is the last that there was
        years = range(today.year, today.year - 9, -1)
        found = (datetime(y, month, day) for y in years if _exists(y, month, day))  # noqa: DTZ001
        return next((one for one in found if one <= today), None)
    return datetime(year + 2000 if year < 100 else year, month, day)  # noqa: DTZ001


def _exists(year: int, month: int, day: int) -> bool:
    try:
        datetime(year, month, day)  # noqa: DTZ001
    except ValueError:
        return False
    return True


def _epoch(local: datetime, zone: tzinfo | None) -> int:
    return int(local.replace(tzinfo=zone).timestamp())


def shown(at: int | None, zone: tzinfo | None = None) -> str:
    """An epoch second for people, as Slurm writes it: `2026-11-01T12:00:00`; `-` for none."""
    if at is None:
        return "-"
    return datetime.fromtimestamp(at, zone).strftime("%Y-%m-%dT%H:%M:%S")
