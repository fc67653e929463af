"""What an answer to a person is made of: rows of the accounting, and what the sweeper means to do.

Times are epoch seconds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from slurm_budget.state.intent import Intent
from slurm_budget.state.jobs import GpuCounts, Job, Node
from slurm_budget.state.snapshot import Snapshot
from slurm_budget.state.sweep import SweepPolicy


@dataclass(frozen=True, slots=True)
class Past:
    """One row of the accounting: a start of a job, or a job that never started (`start` None).

    `by` is the user who cancelled it, empty where nobody did; `exit_code` Slurm's `0:0`.
    """

    id: int
    label: str
    user: str
    account: str
    qos: str
    state: str
    submit: int
    start: int | None
    end: int | None
    gpus: GpuCounts
    nodes: str = ""
    exit_code: str = "0:0"
    by: str = ""
    admin_comment: str = ""

    @property
    def gpu_total(self) -> int:
        return sum(self.gpus.values())


@dataclass(frozen=True, slots=True)
class Outlook:
    """What a sweep would do now. `victims`: runs that would make way, by the job that is owed
    (none: it fits without); `going`: why a run would be requeued; `left`: why it is left alone."""

    victims: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    going: Mapping[int, str] = field(default_factory=dict)
    left: Mapping[int, str] = field(default_factory=dict)
    paused: str = ""


@dataclass(frozen=True, slots=True)
class Known:
    """All that an answer about one job may use. None: it could not be read, which is not "none".

    `jobs` is the whole queue, `past` the accounting of this job, oldest first, `intents` those of
    which it is the victim or the owed one; with `intents_cover` they are known between these
    two moments alone.
    """

    now: int
    policy: SweepPolicy
    jobs: Sequence[Job] | None
    nodes: Sequence[Node] | None = None
    past: Sequence[Past] | None = None
    facts: Snapshot | None = None
    intents: Sequence[Intent] | None = None
    intents_cover: tuple[int, int] | None = None
    outlook: Outlook | None = None
    past_days: int = 30


@dataclass(frozen=True, slots=True)
class Answer:
    """Sentences about one job, and the facts in them for programs."""

    job: str
    state: str
    sentences: tuple[str, ...]
    class_: str = ""
    why: str = ""
    reason: str = ""
    protected_until: int | None = None
