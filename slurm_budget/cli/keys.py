"""Keys as they are pressed, for a live view."""

import os
import select
import sys
import termios
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Pressed = Callable[[float], str]
"""Waits so many seconds for a key; empty where none came."""


@contextmanager
def keys() -> Iterator[Pressed]:
    """Read single keys without echo; the terminal is put back whatever happens. Where standard
    input is no terminal, no key ever comes."""
    if not sys.stdin.isatty():
        yield lambda seconds: _wait([], seconds)
        return
    number = sys.stdin.fileno()
    before = termios.tcgetattr(number)
    try:
        tty.setcbreak(number)
        yield lambda seconds: _wait([number], seconds)
    finally:
        termios.tcsetattr(number, termios.TCSADRAIN, before)


def _wait(numbers: list[int], seconds: float) -> str:
    ready, _, _ = select.select(numbers, [], [], seconds)
    return os.read(ready[0], 1).decode(errors="replace") if ready else ""
