"""Every error that a person may see: what, where, and how to mend it; each knows its exit code.

The codes are the contract with cron and with monitoring; docs/errors.md shows one example of each.
"""

from enum import IntEnum


class Exit(IntEnum):
    """Exit codes of all our programs."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    PARTLY = 3
    REFUSED = 4
    STALE_PLAN = 5
    SLURM_UNREACHABLE = 6
    LEDGER_UNREACHABLE = 7
    CHANGES_PENDING = 8
    INTERRUPTED = 130


class SbudgetError(Exception):
    """A failure that we understand.

    `what` says what is wrong with its value, `where` names the place (a file with line and
    column, a command, a row), `mend` says what to do about it. `acted`: what a sweep had done
    before it failed.
    """

    code = Exit.FAILED
    acted = "acted on nothing"

    def __init__(self, what: str, *, where: str = "", mend: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.mend = mend

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        return f"{place}{self.what}" + (f"\n  mend: {self.mend}" if self.mend else "")


class BadInput(SbudgetError):
    """Something that a person or another program gave us cannot be right."""

    code = Exit.USAGE


class BadInputs(BadInput):
    """Several faults at once, so that one run shows all of them."""

    def __init__(self, faults: "list[BadInput]") -> None:
        super().__init__(f"{len(faults)} faults")
        self.faults = faults

    def __str__(self) -> str:
        return "\n".join(str(fault) for fault in self.faults)


class Refused(SbudgetError):
    """A guard said no; the message has the numbers and the flag that overrides it."""

    code = Exit.REFUSED


class StalePlan(SbudgetError):
    """What was reviewed is no longer what would happen."""

    code = Exit.STALE_PLAN


class SlurmUnreachable(SbudgetError):
    """Slurm did not answer, or answered oddly. Never to be read as "nothing there"."""

    code = Exit.SLURM_UNREACHABLE


class LedgerUnreachable(SbudgetError):
    """The ledger cannot be opened, read or written."""

    code = Exit.LEDGER_UNREACHABLE


class LedgerClosed(LedgerUnreachable):
    """It will not open by waiting: it is not there, is no ledger, or this user may not use it."""


class LeaseLost(SbudgetError):
    """Another sidecar may act now, so this one must not."""
