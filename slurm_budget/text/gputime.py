"""GPU-time for people: the one place where GPU-hours are rounded, so that a figure is the same
wherever it is shown. etc/sbudget.lua does the same.

Rounded down, whatever it is of, since 2.7 of a budget of 2.666 GPU-hours cannot be had; only what a
job needs is rounded up.
"""

MS_PER_GPU_HOUR = 3_600_000


def gpu_hours(ms: int, *, up: bool = False, grouped: bool = True) -> str:
    """GPU-milliseconds in GPU-hours: tenths from 10 on, hundredths from 1 on, else thousandths,
    without noughts at the end. `grouped`: with commas.

    >>> [gpu_hours(ms) for ms in (9_600_000, 599_400, 9_676_800_000, -600)]
    ['2.66', '0.166', '2,688', '-0.001']
    """
    if ms < 0:
        below = gpu_hours(-ms, up=not up, grouped=grouped)
        return below if below == "0" else "-" + below
    decimals = 1 if ms >= 10 * MS_PER_GPU_HOUR else 2 if ms >= MS_PER_GPU_HOUR else 3
    unit = MS_PER_GPU_HOUR // 10**decimals
    whole, rest = divmod(-(-ms // unit) if up else ms // unit, 10**decimals)
    digits = f"{rest:0{decimals}}".rstrip("0")
    return (f"{whole:,}" if grouped else str(whole)) + (f".{digits}" if digits else "")
