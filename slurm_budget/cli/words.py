"""What people type for moments, and how moments are shown to them."""

from collections.abc import Iterable
from datetime import UTC, datetime

import click

from slurm_budget.errors import BadInput
from slurm_budget.text import durations
from slurm_budget.text.printable import printable


def moment(text: str, now: int) -> int:
    """Epoch seconds of a date, a date with time (this machine's zone), `now`, or `7d` ago."""
    if text == "now":
        return now
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        pass
    else:
        return int(parsed.astimezone().timestamp())
    try:
        return now - durations.human(text.removesuffix(" ago"))
    except BadInput:
        raise BadInput(
            f"{text!r} is not a moment",
            mend="write it like 2026-03-01, 2026-03-01T12:00, 7d (ago) or now",
        ) from None


def shown(at: int | None) -> str:
    """An epoch second in this machine's zone, to the minute; `-` for none."""
    if at is None:
        return "-"
    return datetime.fromtimestamp(at, UTC).astimezone().strftime("%Y-%m-%d %H:%M")


def near(at: int, now: int) -> str:
    """The same, as short as can be: the time alone on the same day, seconds within an hour."""
    moment_, today = (datetime.fromtimestamp(t, UTC).astimezone() for t in (at, now))
    if abs(at - now) < 3600:
        return moment_.strftime("%H:%M:%S")
    return moment_.strftime("%H:%M" if moment_.date() == today.date() else "%Y-%m-%d %H:%M")


def clock(at: int) -> str:
    """An epoch second as the time of day, for views that show today."""
    return datetime.fromtimestamp(at, UTC).astimezone().strftime("%H:%M:%S")


def say(sentences: Iterable[str]) -> None:
    """A line each; what a terminal would obey in the text of others is shown as `?`."""
    for sentence in sentences:
        click.echo(printable(sentence))


def say_unread(unread: list[str]) -> None:
    """What an answer had to do without, on standard error."""
    for line in unread:
        click.echo(f"(not read: {line})", err=True)
