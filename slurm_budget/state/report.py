"""What the ledger tells reports. Seconds and epoch seconds; GPUs by type."""

from dataclasses import dataclass

from slurm_budget.state.jobs import GpuCounts


@dataclass(frozen=True, slots=True)
class Used:
    """Runs of one user with the same GPUs: their seconds in a period, and those of them that were
    protected."""

    account: str
    user: str
    gpus: GpuCounts
    funded: bool
    runs: int
    seconds: int
    charged: int


@dataclass(frozen=True, slots=True)
class Span:
    """When a run held its GPUs."""

    account: str
    gpus: GpuCounts
    funded: bool
    since: int
    until: int


@dataclass(frozen=True, slots=True)
class Start:
    """A run that started: how long it had been ready, and its time limit (None: not known)."""

    account: str
    gpus: GpuCounts
    funded: bool
    waited: int
    time_limit: int | None


@dataclass(frozen=True, slots=True)
class Level:
    """From `at` on an account waits for so many GPUs of a type; account None: there are so many."""

    at: int
    account: str | None
    kind: str
    gpus: int
