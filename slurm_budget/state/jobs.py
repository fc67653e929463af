"""Jobs, runs and nodes as Slurm shows them, in one spelling for all versions."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

Class = Literal["funded", "preemptible"]
GpuCounts = Mapping[str, int]
"""GPUs by type; the key of an untyped one is the empty string."""


@dataclass(frozen=True, slots=True)
class Job:
    """A job that slurmctld knows now. `id` is the raw id: an array task that has split off has its
    own; the tasks that still wait together share the array's and count in `tasks`.

    `gpus_on`: whole GPUs by node; empty while it holds none, or where that is not known.
    `max_nodes` None: as many as it likes. `per_node`, `per_task`: GPUs that it asked for by node
    or by task.
    """

    id: int
    label: str
    user: str
    account: str
    partitions: tuple[str, ...]
    qos: str
    state: str
    reason: str
    submit: int
    eligible: int | None
    start: int | None
    end: int | None
    time_limit: int | None
    gpus: GpuCounts
    nodes: tuple[str, ...]
    num_nodes: int
    priority: int
    requeue: bool
    batch: bool
    admin_comment: str
    comment: str = ""
    tasks: int = 1
    at_once: int = 1
    restarts: int = 0
    gpus_on: Mapping[str, int] = field(default_factory=dict)
    preempt_time: int | None = None
    array: int | None = None
    features: str = ""
    dependency: str = ""
    per_node: int | None = None
    cpus: int = 0
    exclusive: bool = False
    max_nodes: int | None = None
    per_task: int | None = None
    used: int | None = None
    """Seconds that a run has run, without those in which it was suspended."""
    suspended: int = 0
    names_nodes: bool = False
    excluded: tuple[str, ...] = ()
    """Nodes on which it must not run (`--exclude`)."""
    expected: int | None = None
    """When Slurm expects a pending job to start, as far as it has planned."""

    @property
    def gpu_total(self) -> int:
        """Whole GPUs of one task."""
        return sum(self.gpus.values())

    @property
    def running(self) -> bool:
        return self.state == "RUNNING"

    @property
    def pending(self) -> bool:
        return self.state == "PENDING"


@dataclass(frozen=True, slots=True)
class Ended:
    """A job that has ended and that slurmctld still knows, which it does for MinJobAge.

    `submit`, `start` and `end` in epoch seconds; None where it never started."""

    id: int
    state: str
    submit: int
    start: int | None
    end: int | None


class Queue(NamedTuple):
    """What slurmctld knows of jobs at one moment."""

    jobs: list[Job]
    """Those that live: they wait, run, or hold GPUs still."""
    ended: list[Ended]


@dataclass(frozen=True, slots=True)
class Run:
    """One start of one job in the accounting; `(cluster, job_id, start)` is its key.

    `end` None: it has not ended. `min_runtime` None: the job declared none that we know of.
    `suspended` are seconds between start and end in which it did not run. `eligible` is when it
    could have started, `time_limit` its seconds; None where the source does not tell (or no limit).
    """

    cluster: str
    job_id: int
    start: int
    end: int | None
    submit: int
    user: str
    account: str
    qos: str
    partition: str
    state: str
    gpus: GpuCounts
    num_nodes: int
    suspended: int = 0
    class_: Class = "preemptible"
    min_runtime: int | None = None
    eligible: int | None = None
    time_limit: int | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """Where a node stands in the topology: see state.choose.NodeSpace."""

    switches: tuple[str, ...] = ()
    island: str = ""


@dataclass(frozen=True, slots=True)
class Node:
    """A node: `gpus` is what it has, `state` Slurm's base state with its flags, upper case.

    `topology` is what slurmctld says of its place, from 25.05 on; `place` is known where the
    topology was asked for.
    """

    name: str
    state: str
    flags: frozenset[str]
    gpus: GpuCounts
    partitions: tuple[str, ...]
    cpus: int = 0
    cpus_used: int = 0
    gpus_used: int = 0
    reason: str = ""
    features: frozenset[str] = frozenset()
    topology: str = ""
    place: Place = Place()

    @property
    def gpu_total(self) -> int:
        return sum(self.gpus.values())

    @property
    def usable(self) -> bool:
        """Whether a job could start here."""
        bad = {
            "DRAIN",
            "DOWN",
            "FAIL",
            "MAINT",
            "NOT_RESPONDING",
            "REBOOT",
            "REBOOT_ISSUED",
            "POWERED_DOWN",
            "PLANNED_DOWN",
        }
        return self.state in ("IDLE", "MIXED", "ALLOCATED", "COMPLETING") and not (self.flags & bad)


@dataclass(frozen=True, slots=True)
class Deed:
    """How an action on a job went. `gone`: it had ended, started or been requeued meanwhile, which
    is benign; `refused`: Slurm will never do it; `failed`: it may work another time. That Slurm did
    not answer is none of these: it may have been done, or be done later (SlurmUnreachable)."""

    outcome: Literal["done", "gone", "refused", "failed"]
    detail: str
