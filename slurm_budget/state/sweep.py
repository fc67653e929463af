"""What a sweep works by and what it found; plain values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from slurm_budget.state.jobs import Class, Job


@dataclass(frozen=True, slots=True)
class SweepPolicy:
    """The settings of a sweep. Seconds; `margin`, `fast_lane` as fractions; weights in thousandths.

    `exempt` is the PreemptExemptTime of preemptible runs: after it Slurm frees them by itself, and
    `preempt_grace` the GraceTime that it gives them then.
    """

    patience: int = 60
    grace: int = 60
    margin: float = 0.05
    cooldown: int = 900
    max_gpus: int = 64
    max_updates: int = 200
    requeue: Literal["owed", "always", "never"] = "owed"
    fast_lane: float = 0.05
    fast_lane_gpu_time: int = 7200
    min_runtime: int = 3600
    min_runtime_cap: int = 28800
    exempt: int = 1200
    preempt_grace: int = 0
    signal: str = "CONT"
    session_warning: int = 600
    preemptible_qos: str = "preemptible"
    weights: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Retag:
    """A pending job to move to another class, and why (a word of core.marker.WHY)."""

    job: Job
    class_: Class
    qos: str
    admin_comment: str
    why: str


@dataclass(frozen=True, slots=True)
class Requeue:
    """A run that shall make way. `for_job` None: for the repair of its node, or `always`."""

    job: Job
    for_job: int | None
    for_account: str
    reason: str


@dataclass(frozen=True, slots=True)
class Facts:
    """What is left for an account or a user, as the snapshot will say. GPU-milliseconds."""

    budget: int
    balance: int
    fast: int
