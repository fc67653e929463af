"""What the sweeper has set out to do to one run, as the ledger keeps it."""

from dataclasses import dataclass
from typing import Literal

Step = Literal["planned", "signalled", "requeued", "done", "left"]
CLOSED: frozenset[str] = frozenset({"done", "left"})
GONE = "the job is gone"
"""The detail of an intent whose job was in no queue any more."""


@dataclass(frozen=True, slots=True)
class Intent:
    """One requeue, from its plan to its end. `gpus` is what it frees; `grace_until` when the warned
    run has had its time (None: not warned yet). `detail` is what the last step said."""

    id: int
    cluster: str
    job_id: int
    run_start: int
    victim_account: str
    for_job: int | None
    for_account: str
    gpus: int
    step: Step
    reason: str
    created: int
    updated: int
    grace_until: int | None = None
    detail: str = ""

    @property
    def open(self) -> bool:
        return self.step not in CLOSED
