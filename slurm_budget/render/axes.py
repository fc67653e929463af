"""Scales, ticks and words of plots. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from math import floor, log10

from slurm_budget.render.markup import Markup, el
from slurm_budget.text import moments

LEFT, RIGHT, TOP, BOTTOM = 44, 8, 10, 22
"""What is left around a plot for its words, in pixels."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A plot of `width` x `height` pixels with `low`..`high` upwards in its inner part."""

    width: int
    height: int
    high: float
    left: int = LEFT

    def x(self, part: float) -> float:
        """`part` of the width, 0 to 1."""
        return self.left + part * (self.width - self.left - RIGHT)

    def y(self, value: float) -> float:
        inner = self.height - TOP - BOTTOM
        return TOP + inner * (1 - value / self.high)


def nice(most: float, count: int = 5) -> list[float]:
    """Round steps from 0 to at least `most`."""
    if most <= 0:
        return [0, 1]
    rough = most / count
    power = 10.0 ** floor(log10(rough))
    step = next(m * power for m in (1, 2, 2.5, 5, 10) if m * power >= rough * 0.999)
    out = [0.0]
    while out[-1] < most * 0.999:
        out.append(len(out) * step)
    return out


def plainly(value: float) -> str:
    """A round number without needless zeros."""
    return f"{value:.0f}" if value >= 10 or value == int(value) else f"{value:.3g}"


def grid(frame: Frame, ticks: Sequence[float], unit: str = "") -> Markup:
    """Lines across with their figures at the left."""
    parts = []
    for value in ticks:
        y = frame.y(value)
        parts.append(el("line", x1=frame.left, x2=frame.width - RIGHT, y1=y, y2=y))
        parts.append(el("text", plainly(value) + unit, x=frame.left - 6, y=y + 4, class_="end"))
    return el("g", parts, class_="grid")


def when(at: int, step: int) -> str:
    """A moment as it stands under a plot: the day, or the clock where steps are below six hours."""
    local = datetime.fromisoformat(moments.shown(at))
    if step >= 6 * 3600:
        return f"{local.day} {local:%b}"
    return f"{local:%H:%M}" if step >= 60 else f"{local:%H:%M:%S}"


def times(frame: Frame, starts: Sequence[int], end: int, most: int) -> Markup:
    """Moments under the plot, `most` of them at most."""
    length, step = end - starts[0], (starts[1] if len(starts) > 1 else end) - starts[0]
    day = 86400 // step if 86400 % step == 0 and step >= 6 * 3600 else 1
    every = max(-(-len(starts) // most), 1)
    every = -(-every // day) * day
    parts = []
    for at in starts[::every]:
        x = frame.x((at - starts[0]) / length)
        parts.append(el("line", x1=x, x2=x, y1=frame.height - BOTTOM, y2=frame.height - BOTTOM + 4))
        if x < frame.width - 40:
            parts.append(el("text", when(at, step), x=x, y=frame.height - 5))
    return el("g", parts, class_="times")
