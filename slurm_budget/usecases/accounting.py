"""Runs from the accounting into the ledger: the newest ones at each sweep, a dump, all of history.

What is read is read again from `overlap` before the last time, since slurmdbd may write late; what
is there already changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from slurm_budget.core.standing import Sums
from slurm_budget.core.window import Window
from slurm_budget.settings import Settings
from slurm_budget.slurm.rows import BadRow
from slurm_budget.slurm.sacct import good
from slurm_budget.state.jobs import Run

if TYPE_CHECKING:  # answers without the ledger must not wait for the database code
    from slurm_budget.ledger.store import Ledger, Recorded

Source = Callable[[int, int], Iterator[Run | BadRow]]
"""Runs of the cluster that were there between two epoch seconds."""
CHUNK = 7 * 86400
"""Seconds of history that one question to slurmdbd covers."""
SHORT = 900
"""The overlap of most readings, in seconds; the whole of it is read once an hour."""


def window_of(settings: Settings) -> Window:
    """The window that the settings ask for."""
    section = settings.window
    return Window(section.kind, section.length, section.half_life)


def weights_of(settings: Settings) -> dict[str, int]:
    """GPU weights in thousandths, by type."""
    return {kind: round(weight * 1000) for kind, weight in settings.jobs.gpu_weights.items()}


def usage_factor_of(settings: Settings) -> int:
    """What preemptible time adds to use, in thousandths."""
    return round(settings.qos.usage_factor * 1000)


def sums_now(ledger: Ledger, cluster: str, settings: Settings, now: int) -> Sums:
    """Charge and use in the window of the settings."""
    return ledger.sums(
        cluster,
        window_of(settings),
        now,
        weights_of(settings),
        usage_factor_of(settings),
        whole_run=settings.window.charge == "run",
    )


@dataclass(frozen=True, slots=True)
class Taken:
    """What came in, and the rows that could not be used."""

    recorded: Recorded
    bad: tuple[BadRow, ...] = ()


def take(ledger: Ledger, found: Iterable[Run | BadRow], source: str, now: int) -> Taken:
    """Put runs into the ledger, whole or not at all; bad rows are told, good ones go in."""
    bad: list[BadRow] = []
    recorded = ledger.record_runs(good(found, bad), source=source, now=now)
    return Taken(recorded, tuple(bad))


def catch_up(
    ledger: Ledger, cluster: str, source: Source, name: str, now: int, *, first: int, overlap: int
) -> Taken:
    """Read what is new since the last time; the first time, from epoch second `first` on.

    Rows that slurmdbd wrote late are found by reading again what lies `overlap` back: once an hour,
    and the last SHORT seconds of it each time. A long gap is read in chunks, each of them kept, so
    that an interruption loses one chunk.
    """
    from slurm_budget.ledger.store import Recorded

    last = ledger.cursor(cluster)
    if last is not None and last // 3600 == now // 3600:
        overlap = min(overlap, SHORT)
    since = first if last is None else max(min(last, now) - overlap, 0)
    total = Recorded()
    bad: list[BadRow] = []
    while True:
        until = min(since + CHUNK, now)
        taken = take(ledger, source(since, until), name, now)
        total = total + taken.recorded
        bad += taken.bad
        ledger.set_cursor(cluster, until)
        if until >= now:
            return Taken(total, tuple(bad))
        since = until - min(overlap, CHUNK // 2)


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """What a rebuild found: rows taken, and the figures that are not what they were."""

    taken: Taken
    changed: tuple[str, ...]


def rebuild(
    ledger: Ledger,
    cluster: str,
    source: Source,
    name: str,
    settings: Settings,
    now: int,
    *,
    since: int,
) -> Rebuilt:
    """Read the accounting anew from `since` on, count afresh, and compare with before.

    Runs stay (the accounting may have forgotten what the ledger knows); where the accounting says
    otherwise, corrections are added. A sound ledger has no changed figure afterwards. Runs without
    an end are left to the next sweep, which knows from the queue which of them live: others, of a
    job whose id came round again, would count all the time since.
    """
    from slurm_budget.ledger.store import Recorded

    before = sums_now(ledger, cluster, settings, now)
    total = Recorded()
    bad: list[BadRow] = []
    for start in range(since, now, CHUNK):
        found = source(start, min(start + CHUNK, now))
        over = (row for row in found if isinstance(row, BadRow) or row.end is not None)
        taken = take(ledger, over, f"rebuild, {name}", now)
        total = total + taken.recorded
        bad += taken.bad
    ledger.forget_sums()
    after = sums_now(ledger, cluster, settings, now)
    changed = [
        f"{figure} of {key[1]} in {key[0] or '(no account)'}, {key[2] or 'any'} GPUs:"
        f" {one.get(key, 0)} -> {two.get(key, 0)} GPU-ms"
        for figure, one, two in (
            ("charge", before.charge, after.charge),
            ("use", before.use, after.use),
        )
        for key in sorted(one.keys() | two.keys())
        if one.get(key, 0) != two.get(key, 0)
    ]
    return Rebuilt(Taken(total, tuple(bad)), tuple(changed))
