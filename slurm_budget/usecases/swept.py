"""What a sweep saw and did, and the one sentence that it says."""

from dataclasses import dataclass, field

from slurm_budget.errors import SbudgetError
from slurm_budget.state.sweep import Retag
from slurm_budget.usecases.act import Acted
from slurm_budget.usecases.deciding import Decision
from slurm_budget.usecases.observe import World
from slurm_budget.usecases.sessions import Told


@dataclass(slots=True)
class Swept:
    """What a sweep saw and did. `idle`: why it did not act, or not to the end. `failed`: what could
    not be done at the end or in the middle, for the next sweep to do."""

    world: World
    decision: Decision
    acted: Acted
    retagged: list[Retag] = field(default_factory=list)
    refused: list[tuple[int, str]] = field(default_factory=list)
    later: int = 0
    told: Told = field(default_factory=Told)
    idle: str = ""
    failed: list[SbudgetError] = field(default_factory=list)
    dry_run: bool = False

    @property
    def did_something(self) -> bool:
        """Whether anything was done."""
        return bool(self.retagged or self.acted.signalled or self.acted.requeued or self.told.jobs)

    def sentence(self) -> str:
        """One sentence: what there is, what was done, why not more."""
        running = sum(job.running for job in self.world.jobs)
        pending = sum(job.tasks for job in self.world.jobs if job.pending)
        owing = len(self.decision.owed | self.acted.serving)
        parts = [f"{running} running, {pending} waiting, {owing or 'nobody'} owed"]
        if self.retagged:
            parts.append(f"retagged {_ids([retag.job.id for retag in self.retagged])}")
        if self.later:
            parts.append(f"{self.later} more to retag at the next sweep")
        if self.acted.signalled:
            parts.append(f"signalled {_ids(self.acted.signalled)}")
        if self.acted.warned:
            parts.append(f"{_ids(self.acted.warned)} still in grace")
        if self.acted.requeued:
            parts.append(f"requeued {_ids(self.acted.requeued)} ({self.acted.gpus} GPUs)")
        for job, why in self.acted.left + self.refused + self.told.left:
            parts.append(f"left job {job}: {why}")
        if self.acted.held:
            parts.append(f"held after its requeue: {_ids(self.acted.held)}, release it by hand")
        parts += [f"job {note.job_id} {note.reason}" for note in self.decision.notes]
        if self.world.lost:
            parts.append(
                f"ended {_ids(self.world.lost)} in the ledger, which the accounting believes to run"
            )
        if self.world.behind:
            late = ", ".join(self.world.behind)
            parts.append(f"budgets across clusters may lack the newest runs of {late}")
        if self.told.jobs:
            parts.append(f"warned the session of {_ids(self.told.jobs)}")
        if self.world.bad_rows:
            parts.append(f"{self.world.bad_rows} accounting rows could not be read")
        if self.idle:
            parts.append(self.idle)
        if len(parts) == 1 and not owing:
            parts.append("nothing to do")
        elif len(parts) == 1 and not self.decision.requeues:
            parts.append("nobody makes way yet")
        return ("would sweep: " if self.dry_run else "swept: ") + "; ".join(parts) + "."


def _ids(jobs: list[int]) -> str:
    shown = ", ".join(str(job) for job in jobs[:10])
    word = "job" if len(jobs) == 1 else "jobs"
    return f"{word} {shown}" + (f" and {len(jobs) - 10} more" if len(jobs) > 10 else "")
