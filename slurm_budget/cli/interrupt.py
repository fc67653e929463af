"""Ctrl-C that waits for a safe moment.

A terminal sends SIGINT to sacctmgr as well, which would cut it off in the middle of a change. While
the signal is blocked it reaches neither us nor the commands that we start (they inherit the block);
it stays pending, and we look for it between calls.
"""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_SIGNALS = frozenset({signal.SIGINT, signal.SIGTERM})


@contextmanager
def held_back() -> Iterator[Callable[[], bool]]:
    """A block in which SIGINT and SIGTERM only make the function that it yields say True."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    seen = False

    def interrupted() -> bool:
        nonlocal seen
        seen = seen or bool(signal.sigpending() & _SIGNALS)
        return seen

    try:
        yield interrupted
    finally:
        # Taken out, since whoever asked has been heard.
        while signal.sigtimedwait(_SIGNALS, 0) is not None:
            pass
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
