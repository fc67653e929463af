"""Errors, messages and waiting."""

import sys
import time
from collections.abc import Callable

EXIT_OK, EXIT_FAILED, EXIT_USAGE = 0, 1, 2


class ClusterError(Exception):
    """Something that the person at the terminal can act on: what, where, how to mend it."""

    def __init__(self, what: str, *, where: str = "", mend: str = "", code: int = EXIT_FAILED):
        super().__init__(what)
        self.what, self.where, self.mend, self.code = what, where, mend, code

    def __str__(self) -> str:
        lines = [f"cluster: {self.what}"]
        if self.where:
            lines.append("  where: " + self.where.replace("\n", "\n    "))
        if self.mend:
            lines.append("  mend:  " + self.mend.replace("\n", "\n         "))
        return "\n".join(lines)


def say(message: str) -> None:
    """One line for one step.  On stdout, at once: `up` is watched by people and by CI logs."""
    print(message, flush=True)


def warn(message: str) -> None:
    print(f"cluster: {message}", file=sys.stderr, flush=True)


def until(condition: Callable[[], object], timeout: float, every: float = 0.1) -> bool:
    """Wait for a condition, never for a time.  False when it did not come."""
    end = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(every)
    return True
