"""Running sums of what runs count, kept up so that a moment later costs only what changed.

In a window (see core.window) a part [a, b) of a run counts `G(min(b, now)) - G(max(a, now -
reach))`. Between the moments at which now, or the window's edge, passes a or b, that is

    constant + growing x G(now) - leaving x G(now - reach)

with `growing` the rate of what runs now and `leaving` the rate of what the edge cuts. So each
account and user holds three numbers for each of three series (charged, funded, preemptible), all
runs added together. A new run is added to them; a correction takes the old run off and adds the
new one; time moves by visiting only those runs of which now or the edge passed an end
(`Tally.move`).

    a                b              now
    |----------------|      .        |          constant = G(b) - G(a)
                     |------.--------|---       constant = -G(a), growing = rate
    |-------/--------|      .                   edge at /: constant = G(b), leaving = rate

Everything is a whole number and adding is exact, so the order in which runs come does not matter
and the sums are what a fresh count over all runs gives (a property test compares).
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from slurm_budget.core.standing import Key, Sums
from slurm_budget.core.weights import rates
from slurm_budget.core.window import Scale, Window, active, protected
from slurm_budget.state.jobs import GpuCounts, Run

SERIES = 3
"""Charged part of funded runs, whole funded runs, preemptible runs."""
WIDTH = 3 * SERIES


class Counted(NamedTuple):
    """What of a run counts: `[since, until)` and the protected `[since, charged_until)`."""

    account: str
    user: str
    gpus: GpuCounts
    since: int
    until: int
    charged_until: int
    funded: bool


def counted(run: Run) -> Counted:
    """The counting part of a run."""
    since, until = active(run)
    funded = run.class_ == "funded"
    return Counted(run.account, run.user, run.gpus, since, until, protected(run)[1], funded)


class Tally:
    """Sums by (account, user, GPU type) as they stand at `at`.

    `cells` maps a key to nine whole numbers: constant, growing, leaving of each series.
    """

    def __init__(
        self, window: Window, weights: Mapping[str, int], at: int, scale: Scale | None = None
    ) -> None:
        self.window = window
        self.weights = dict(weights)
        self.at = at
        self.scale = scale or Scale.around(window, at)
        self.cells: dict[Key, list[int]] = {}
        self._dirty: set[Key] = set()
        self._moving: set[Key] = set()
        self._shown = Sums({}, {})
        self._shown_with: tuple[int, bool] | None = None

    def add(self, run: Counted, sign: int = 1, at: int | None = None) -> None:
        """Count a run (sign 1) or take it off again (sign -1), as of `at` (default: `self.at`)."""
        moment = self.at if at is None else at
        whole = self._phase(run.since, run.until, moment)
        if whole is None or not run.gpus:
            return
        if run.funded:
            parts = [(3, whole)]
            charged = self._phase(run.since, run.charged_until, moment)
            if charged is not None:
                parts.append((0, charged))
        else:
            parts = [(6, whole)]
        for kind, rate in rates(run.gpus, self.weights).items():
            for place, phase in parts:
                self.put((run.account, run.user, kind), place, phase, sign * rate)

    def put(self, key: Key, place: int, phase: tuple[int, int, int], rate: int) -> None:
        """Add `rate x phase` to a series of a cell; `place` is 0, 3 or 6."""
        cell = self._cell(key)
        cell[place] += rate * phase[0]
        cell[place + 1] += rate * phase[1]
        cell[place + 2] += rate * phase[2]

    def put_constants(
        self, key: Key, rate: int, charged: int, funded: int, preemptible: int
    ) -> None:
        """Add runs that lie wholly in the window: the seconds of each series (sliding only)."""
        cell = self._cell(key)
        cell[0] += rate * charged
        cell[3] += rate * funded
        cell[6] += rate * preemptible

    def _cell(self, key: Key) -> list[int]:
        cell = self.cells.get(key)
        if cell is None:
            cell = self.cells[key] = [0] * WIDTH
        self._dirty.add(key)
        return cell

    def load(self, key: Key, cell: list[int]) -> None:
        """Take a cell as it was saved from `cells`."""
        self.cells[key] = cell
        self._dirty.add(key)

    def _phase(self, since: int, until: int, at: int) -> tuple[int, int, int] | None:
        """(constant, growing, leaving) of a part at a moment; None where it counts nothing."""
        edge = at - self.window.reach
        if until <= since or at < since or until <= edge:
            return None
        constant = growing = leaving = 0
        if until <= at:
            constant += self.scale.g(until)
        else:
            growing = 1
        if since <= edge:
            leaving = 1
        else:
            constant -= self.scale.g(since)
        return constant, growing, leaving

    def passed(self, to: int) -> list[tuple[int, int]]:
        """The stretches (after, up to and including) of time in which a run's start, end or end of
        protection must lie for the run to be visited when time moves from `at` to `to`."""
        low, high = min(self.at, to), max(self.at, to)
        if low == high:
            return []
        reach = self.window.reach
        if high - low >= reach:
            return [(low - reach, high)]
        return [(low, high), (low - reach, high - reach)]

    def can_move(self, to: int) -> bool:
        """False when `to` is so long before the first moment that the sums must be made anew."""
        return self.window.kind == "sliding" or (
            (to - self.window.reach) // self.window.half_life > self.scale.base
        )

    def move(self, passed: Iterable[Counted], to: int) -> None:
        """Go to another moment, forth or back; `passed` are the runs that `passed(to)` describes,
        each once. A run too many is harmless."""
        for run in passed:
            self.add(run, -1)
            self.add(run, 1, to)
        self.at = to

    def sums(self, usage_factor: int, *, whole_run: bool = False) -> Sums:
        """Charge and use at `self.at`; `usage_factor` in thousandths."""
        if self._shown_with != (usage_factor, whole_run):
            self._shown, self._shown_with = Sums({}, {}), (usage_factor, whole_run)
            self._dirty = set(self.cells)
        charge, use = dict(self._shown.charge), dict(self._shown.use)
        now, edge = self.scale.g(self.at), self.scale.g(self.at - self.window.reach)
        plain = self.window.kind == "sliding"
        stale = self._dirty | self._moving
        self._dirty = set()
        for key in stale:
            cell = self.cells[key]
            paid, paid_up, paid_off, whole, whole_up, whole_off, free, free_up, free_off = cell
            moves = paid_up or paid_off or whole_up or whole_off or free_up or free_off
            if not moves and not paid and not whole and not free:
                del self.cells[key]
                charge.pop(key, None)
                use.pop(key, None)
                self._moving.discard(key)
                continue
            charged = paid + paid_up * now - paid_off * edge
            funded = whole + whole_up * now - whole_off * edge
            unpaid = free + free_up * now - free_off * edge
            if not plain:
                charged, funded, unpaid = (
                    self.scale.milliseconds(amount, self.at) for amount in (charged, funded, unpaid)
                )
            charge[key] = funded if whole_run else charged
            use[key] = funded + unpaid * usage_factor // 1000
            if moves or not plain:
                self._moving.add(key)
            else:
                self._moving.discard(key)
        self._shown = Sums(charge, use)
        return self._shown


def tally(
    runs: Iterable[Run], window: Window, weights: Mapping[str, int], now: int, usage_factor: int
) -> Sums:
    """Sums of runs counted afresh: the answer that every running sum must equal."""
    fresh = Tally(window, weights, now)
    for run in runs:
        fresh.add(counted(run))
    return fresh.sums(usage_factor)
