"""The plots of the page, as inline SVG: each is drawn twice, for wide screens and for phones.

A plot has a caption, a sentence that says what is to be seen, and its figures in a table on the
same page; the shapes themselves are no content for a screen reader.
"""

from collections.abc import Callable, Sequence
from math import log

from slurm_budget.core.report_waits import ALL, WaitRow
from slurm_budget.core.series import Piece
from slurm_budget.render.axes import BOTTOM, TOP, Frame, grid, nice, times, when
from slurm_budget.render.cells import ratio
from slurm_budget.render.markup import Child, Markup, el, join
from slurm_budget.text.spoken import spoken

WIDE, NARROW = 960, 340
Draw = Callable[[int], Markup]
"""The inside of a plot for a width."""


def figure(id_: str, caption: str, says: str, legend: Sequence[tuple[str, str]], draw: Draw,
           height: Callable[[int], int]) -> Markup:  # fmt: skip
    """A plot with its caption, legend (class, words) and the sentence that stands for it."""
    plots = []
    for width, kind in ((WIDE, "wide"), (NARROW, "narrow")):
        plots.append(
            el(
                "svg",
                el("desc", says, id=f"{id_}-{kind}-desc"),
                draw(width),
                viewBox=f"0 0 {width} {height(width)}",
                role="img",
                class_=f"plot {kind}",
                aria_labelledby=f"{id_}-caption",
                aria_describedby=f"{id_}-{kind}-desc",
            )
        )
    keys = [el("li", el("i", class_=name), words) for name, words in legend]
    return el(
        "figure",
        el("figcaption", caption, id=f"{id_}-caption"),
        el("ul", keys, class_="legend") if keys else None,
        plots,
        el("p", says, class_="says"),
        id=id_,
    )


def mean(ms: int | None, piece: Piece) -> float:
    """GPU-milliseconds of a piece as GPUs."""
    return (ms or 0) / (piece.end - piece.start) / 1000


def use(pieces: Sequence[Piece], says: str) -> Markup:
    """GPUs in use by class, with what was promised and what there was."""

    def there(piece: Piece) -> float:
        return piece.capacity / piece.seen / 1000 if piece.seen else 0.0

    ticks = nice(max(max(mean(p.used, p), mean(p.budget, p), there(p)) for p in pieces))

    def draw(width: int) -> Markup:
        frame = Frame(width, _height(width), ticks[-1])
        spots = _spots(frame, pieces)
        funded = [(0.0, mean(p.funded, p)) for p in pieces]
        free = [(mean(p.funded, p), mean(p.used, p)) for p in pieces]
        budget = [None if p.budget is None else mean(p.budget, p) for p in pieces]
        levels = [there(p) if p.seen else None for p in pieces]
        return join(
            grid(frame, ticks),
            el("path", d=_bars(frame, spots, funded), class_="funded"),
            el("path", d=_bars(frame, spots, free), class_="preemptible"),
            el("path", d=_steps(frame, spots, levels), class_="there"),
            el("path", d=_steps(frame, spots, budget), class_="budget"),
            _under(frame, pieces),
            _hover(frame, spots, pieces, lambda p: (
                f"{mean(p.funded, p):.1f} funded, {mean(p.preemptible, p):.1f} preemptible")),
        )  # fmt: skip

    legend = [
        ("funded", "funded"), ("preemptible", "preemptible"),
        ("budget", "budget"), ("there", "GPUs that could be used"),
    ]  # fmt: skip
    return figure("plot-use", "GPUs in use, on average", says, legend, draw, _height)


def occupancy(pieces: Sequence[Piece], says: str) -> Markup:
    """The part of what there was that ran something."""

    def draw(width: int) -> Markup:
        frame = Frame(width, _low(width), 100)
        spots = _spots(frame, pieces)
        bars = [(0.0, min(100 * (p.occupancy or 0), 100)) for p in pieces]
        return join(
            grid(frame, [0, 50, 100], "%"),
            el("path", d=_bars(frame, spots, bars), class_="occupancy"),
            _under(frame, pieces),
            _hover(frame, spots, pieces, lambda p: (
                "not known" if p.occupancy is None else ratio(p.occupancy))),
        )  # fmt: skip

    return figure("plot-occupancy", "Occupancy: GPUs that ran something", says, [], draw, _low)


MARKS = ((1, "1 s"), (10, "10 s"), (60, "1 min"), (600, "10 min"), (3600, "1 h"), (6 * 3600, "6 h"),
         (86400, "1 day"), (604800, "1 week"), (28 * 86400, "4 weeks"))  # fmt: skip
BEAT = 26
"""Pixels between two lines of the plot of waits."""


def waits(rows: Sequence[WaitRow], says: str) -> Markup:
    """Half of the runs waited up to the ring, nine of ten up to the disc; a logarithmic scale."""
    longest = max(row.p90 for row in rows)
    until = next((at for at, _ in MARKS if at >= max(longest, 60)), MARKS[-1][0])
    marks = [(at, words) for at, words in MARKS if at <= until]

    def height(_: int) -> int:
        return TOP + BEAT * len(rows) + BOTTOM

    def draw(width: int) -> Markup:
        frame = Frame(width, height(width), 1, left=170 if width > 500 else 152)

        def x(wait: int) -> float:
            return frame.x(min(log(max(wait, 1)) / log(until), 1) * 0.95)

        # a phone has room for every other word, counted from the longest
        shown = marks if width > 500 else marks[::-1][::2]
        lines: list[Markup] = []
        for at, words in shown:
            lines.append(el("line", x1=x(at), x2=x(at), y1=TOP, y2=frame.height - BOTTOM))
            lines.append(el("text", words, x=x(at), y=frame.height - 5, class_="middle"))
        shapes = [
            _wait(row, frame, TOP + BEAT * (place + 0.5), x) for place, row in enumerate(rows)
        ]
        return join(el("g", lines, class_="grid"), shapes)

    legend = [("ring", "half waited no longer"), ("disc", "nine of ten waited no longer")]
    return figure("plot-waits", "How long runs waited", says, legend, draw, height)


def _wait(row: WaitRow, frame: Frame, y: float, x: Callable[[int], float]) -> Markup:
    size = {ALL: "all sizes", "1": "1 GPU"}.get(row.size, f"{row.size} GPUs")
    return el(
        "g",
        el("title", f"half within {spoken(row.p50)}, nine of ten within {spoken(row.p90)}"),
        el("text", f"{row.class_}, {size}", x=frame.left - 10, y=y + 4, class_="end"),
        el("line", x1=x(row.p50), x2=x(row.p90), y1=y, y2=y),
        el("circle", cx=x(row.p90), cy=y, r=6, class_="disc"),
        el("circle", cx=x(row.p50), cy=y, r=5, class_="ring"),
        class_=f"wait {row.class_}",
    )


def _height(width: int) -> int:
    return 280 if width > 500 else 220


def _low(width: int) -> int:
    return 150 if width > 500 else 130


Spots = Sequence[tuple[float, float]]
"""Where each piece begins and ends, in pixels."""


def _spots(frame: Frame, pieces: Sequence[Piece]) -> Spots:
    start, length = pieces[0].start, pieces[-1].end - pieces[0].start
    return [
        (frame.x((p.start - start) / length), frame.x((p.end - start) / length)) for p in pieces
    ]


def _bars(frame: Frame, spots: Spots, values: Sequence[tuple[float, float]]) -> str:
    """Bars from one value to another, with a gap of a pixel where there is room."""
    out = []
    for (left, right), (low, high) in zip(spots, values, strict=True):
        gap = 1 if right - left > 5 else 0
        if high > low:
            top, bottom = frame.y(high), frame.y(low)
            out.append(f"M{left:.1f} {bottom:.1f}V{top:.1f}H{right - gap:.1f}V{bottom:.1f}Z")
    return "".join(out)


def _steps(frame: Frame, spots: Spots, values: Sequence[float | None]) -> str:
    """A line in steps, broken where there is no value."""
    out, drawing = [], False
    for (left, right), value in zip(spots, values, strict=True):
        if value is not None:
            out.append(f"{'V' if drawing else f'M{left:.1f} '}{frame.y(value):.1f}H{right:.1f}")
        drawing = value is not None
    return "".join(out)


def _under(frame: Frame, pieces: Sequence[Piece]) -> Markup:
    return times(frame, [p.start for p in pieces], pieces[-1].end, 10 if frame.width > 500 else 4)


def _hover(
    frame: Frame, spots: Spots, pieces: Sequence[Piece], words: Callable[[Piece], str]
) -> Child:
    """What a pointer that rests on a piece is told."""
    out = []
    for (left, right), piece in zip(spots, pieces, strict=True):
        said = el("title", f"{when(piece.start, piece.end - piece.start)}: {words(piece)}")
        out.append(
            el("rect", said, x=left, y=TOP, width=right - left, height=frame.height - TOP - BOTTOM)
        )
    return el("g", out, class_="hover")
