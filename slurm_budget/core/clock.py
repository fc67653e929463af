"""A clock that was set back: how long a sweep holds still for it."""

TOLERANCE = 5
"""Seconds by which the clocks of two hosts may differ without a word."""


def behind(now: int, newest: int | None, noticed: int | None, cooldown: int) -> int:
    """Seconds that the clock is behind the newest sweep on record; 0 when acting may go on.

    `newest` is the highest time of any sweep, `noticed` the first time recorded after it. Acting
    goes on when the clock has caught up. Since the clock may have been wrong then and right now,
    it goes on too when one `cooldown` has passed since this was noticed: longer than any job may
    rest after a requeue. Times in epoch seconds; None where there is no such sweep.
    """
    if newest is None or now >= newest - TOLERANCE:
        return 0
    if noticed is not None and now - noticed >= cooldown:
        return 0
    return newest - now
