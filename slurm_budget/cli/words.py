"""How answers are said on a terminal: short moments, and nothing of others that it would obey."""

from collections.abc import Iterable
from datetime import UTC, datetime

import click

from slurm_budget.text.printable import printable
from slurm_budget.text.spoken import spoken


def near(at: int, now: int) -> str:
    """A moment as short as can be: seconds within an hour, else the time alone on the same day."""
    moment, today = (datetime.fromtimestamp(t, UTC).astimezone() for t in (at, now))
    if abs(at - now) < 3600:
        return moment.strftime("%H:%M:%S")
    return moment.strftime("%H:%M" if moment.date() == today.date() else "%Y-%m-%d %H:%M")


def clock(at: int) -> str:
    """An epoch second as the time of day, for views that show today."""
    return datetime.fromtimestamp(at, UTC).astimezone().strftime("%H:%M:%S")


def say(sentences: Iterable[str]) -> None:
    """A line each; what a terminal would obey in the text of others is shown as `?`."""
    for sentence in sentences:
        click.echo(printable(sentence))


def as_of(at: int, now: int) -> str:
    """Of which moment a sweep's figures are: `the sweep at 12:00:05, 25 s ago`."""
    return f"the sweep at {near(at, now)}, {spoken(max(now - at, 0))} ago"


def as_of_sweep(swept: int | None, now: int, end: int | None = None) -> str:
    """How new figures are, of a period or of now; empty where the last sweep saw its whole."""
    if swept is None:
        return "No sweep has looked yet; shown is what was imported."
    return f"As of {as_of(swept, now)}." if end is None or swept < end else ""


def say_unread(unread: list[str]) -> None:
    """What an answer had to do without, on standard error."""
    for line in unread:
        click.echo(f"(not read: {line})", err=True)
