"""Plain immutable values that the layers hand each other; no behaviour beyond derived figures.

Units: times are epoch seconds (int), GPU-time is an integer of weighted GPU-milliseconds, a rate is
an integer of weighted thousandths of a GPU (so rate x seconds is GPU-milliseconds).
"""
