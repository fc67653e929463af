"""What a run counts in a window of time, in closed form and in whole numbers.

Two figures, both in weighted GPU-milliseconds (rate in thousandths of a GPU, times seconds):

`charge`  the *protected part* of a funded run: what the budget pays. A preemptible run: nothing.
`use`     the whole of a funded run, and a tenth (`usage_factor`) of a preemptible one: what Slurm's
          RawUsage is, and what standing is made of.

An example. One GPU-node of 8 GPUs (rate 8000) runs a funded job from 10:00 to 16:00; it declared a
minimum runtime of 4 h. A week later, at 12:00, the sliding window starts at 12:00 of that day:

             10:00        12:00        14:00        16:00
    run        [======= protected =======|------------]
    window                  [ . . . . . . . . . . . . . . . . .

    charge   8 GPUs x 2 h = 16 GPU-hours     (12:00 to 14:00)
    use      8 GPUs x 4 h = 32 GPU-hours     (12:00 to 16:00)

With `kind = "decay"` nothing is cut off: a second that is `a` seconds old counts 2 ** (-a /
half_life), and the sum from age p to age q is `half_life / ln 2 x (2 ** (-p / half_life) - 2 **
(-q / half_life))`. After 20 half-lives (a millionth) a second is forgotten.

Both kinds are one rule. Let G be the seconds themselves (sliding), or 2 ** (t / half_life) (decay).
A part [a, b) of a run counts `G(b) - G(a)`, where a and b are first moved into [now - reach, now];
decay then scales by what G is now. `core.tally` keeps sums of this up as time goes on.

The unclean cases. Suspended seconds are taken off the start, so a suspended run neither charges
nor uses for them (where they lay in the run is not known). A run without an end lasts until now. A
part after now, or one that ends before it starts, counts nothing. All times are epoch seconds, in
which a change to summer time does not exist: a week is always 604,800 s.
"""

from dataclasses import dataclass
from typing import Literal

from slurm_budget.core import decay
from slurm_budget.errors import BadInput
from slurm_budget.state.jobs import Run

HALF_LIVES = 20
"""How many half-lives back a decaying window looks."""
FOREVER = 1 << 62
"""The end of a run that has none yet."""
USAGE_FACTOR = 100
"""Thousandths of its time that a preemptible run adds to use."""


@dataclass(frozen=True, slots=True)
class Window:
    """`length` is for sliding windows, `half_life` for decaying ones; both in seconds, above 0."""

    kind: Literal["sliding", "decay"] = "sliding"
    length: int = 604800
    half_life: int = 604800

    def __post_init__(self) -> None:
        name = "length" if self.kind == "sliding" else "half_life"
        if getattr(self, name) <= 0:
            raise BadInput(
                f"window.{name} = {getattr(self, name)}, but a window needs some time",
                mend="give it a duration such as 7d",
            )

    @property
    def reach(self) -> int:
        """Seconds before now that count at all."""
        return self.length if self.kind == "sliding" else HALF_LIVES * self.half_life

    @property
    def budget_seconds(self) -> int:
        """What one GPU that is always busy adds up to: the seconds that a budget of 1 GPU buys."""
        if self.kind == "sliding":
            return self.length
        return self.half_life * decay.LOG2_E >> decay.BITS


@dataclass(frozen=True, slots=True)
class Scale:
    """The G of a window. `base` is a count of half-lives below which no time lies; it changes no
    figure, it only keeps the numbers short."""

    window: Window
    base: int = 0

    @classmethod
    def around(cls, window: Window, now: int) -> "Scale":
        """For moments from some reaches before `now` to any later one."""
        if window.kind == "sliding":
            return cls(window)
        return cls(window, now // window.half_life - 3 * HALF_LIVES)

    def g(self, at: int) -> int:
        if self.window.kind == "sliding":
            return at
        half_life = self.window.half_life
        return decay.power(at - self.base * half_life, half_life)

    def milliseconds(self, amount: int, now: int) -> int:
        """A sum of rate x (G(b) - G(a)) as GPU-milliseconds at `now`, rounded down."""
        if self.window.kind == "sliding":
            return amount
        return amount * self.window.half_life * decay.LOG2_E // (self.g(now) << decay.BITS)


def marks(
    start: int, end: int | None, suspended: int, funded: bool, min_runtime: int | None
) -> tuple[int, int, int]:
    """(from, until, charged until): where a run begins and ends to count, suspended seconds taken
    off its start, and where its protected part ends. A preemptible run, and a funded one that
    declared nothing, has no such part: `charged until` is `from`."""
    since = start + suspended if suspended > 0 else start
    until = FOREVER if end is None else max(since, end)
    if not funded or not min_runtime or min_runtime < 0:
        return since, until, since
    return since, until, min(until, since + min_runtime)


def active(run: Run) -> tuple[int, int]:
    """[from, until) in which the run counts."""
    return _marks(run)[:2]


def protected(run: Run) -> tuple[int, int]:
    """[from, until) that is charged; may be empty."""
    since, _, charged_until = _marks(run)
    return since, charged_until


def _marks(run: Run) -> tuple[int, int, int]:
    return marks(run.start, run.end, run.suspended, run.class_ == "funded", run.min_runtime)


def weighted(part: tuple[int, int], rate: int, window: Window, now: int) -> int:
    """GPU-milliseconds that a part [from, until) counts in the window that ends now."""
    edge = now - window.reach
    since, until = max(part[0], edge), min(part[1], now)
    if until <= since:
        return 0
    scale = Scale.around(window, now)
    return scale.milliseconds(rate * (scale.g(until) - scale.g(since)), now)


def charge(run: Run, rate: int, window: Window, now: int, *, whole_run: bool = False) -> int:
    """Weighted GPU-milliseconds that the run takes from its budget; `whole_run` charges all of a
    funded run (the setting `window.charge = "run"`)."""
    if run.class_ != "funded":
        return 0
    return weighted(active(run) if whole_run else protected(run), rate, window, now)


def use(run: Run, rate: int, window: Window, now: int, usage_factor: int = USAGE_FACTOR) -> int:
    """Weighted GPU-milliseconds that the run adds to standing; `usage_factor` in thousandths."""
    whole = weighted(active(run), rate, window, now)
    return whole if run.class_ == "funded" else whole * usage_factor // 1000
