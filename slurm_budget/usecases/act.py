"""Carrying out requeues, one written step after another, so that a kill anywhere is finished by
the next sweep and nothing is done twice.

    planned -> (signal) -> signalled -> (grace) -> (requeue) -> requeued -> (seen pending) -> done
                 any step may end in: left, with its reason

Each step is in the ledger before the next deed. A kill between a deed and its record is safe: a
second signal is harmless, and a requeue is only sent to the run that was meant, known by its start
time, so that a job that has started anew is never hit. Deeds and records are for the holder of the
lease alone (usecases/fence).
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from slurm_budget.core import gang, live
from slurm_budget.core.clock import TOLERANCE
from slurm_budget.core.exempt import NOT_OBSERVED
from slurm_budget.core.retag import HOLDS
from slurm_budget.ledger.store import Ledger
from slurm_budget.ports import JobPort
from slurm_budget.state.intent import GONE, Intent, Step
from slurm_budget.state.jobs import Job, Node
from slurm_budget.state.slurm import Preemption
from slurm_budget.state.sweep import Requeue, SweepPolicy
from slurm_budget.usecases.fence import Fence

SIGNALING = "SIGNALING"
"""Slurm's state of a running job for the moment in which it hands on a signal, such as ours."""


@dataclass(slots=True)
class Acted:
    """What was done in this sweep: job ids, and GPUs freed. `warned` are in their grace,
    `serving` the owed jobs that all this is for."""

    signalled: list[int] = field(default_factory=list)
    requeued: list[int] = field(default_factory=list)
    left: list[tuple[int, str]] = field(default_factory=list)
    held: list[int] = field(default_factory=list)
    warned: list[int] = field(default_factory=list)
    serving: set[int] = field(default_factory=set)
    gpus: int = 0


@dataclass(slots=True)
class Actor:
    """Takes intents as far as they can go now. Of what was to go for one job together all goes, or
    what lets it start (core/gang), by `nodes` and `preemption` as observed. `between` is called
    after each written step, where the world may stop. A run that was warned before `resumed` (epoch
    seconds) is warned again: it has worked on since. Raises LeaseLost when another sidecar took
    over, SlurmUnreachable when a deed gets no answer: the step is not written, and the next sweep
    finds out how it went."""

    slurm: JobPort
    ledger: Ledger
    policy: SweepPolicy
    now: int
    fence: Fence
    nodes: Sequence[Node] = ()
    preemption: Preemption = NOT_OBSERVED
    resumed: int = 0
    between: Callable[[str], None] = lambda step: None
    acted: Acted = field(default_factory=Acted)
    _ending: set[int] = field(default_factory=set)
    """Jobs whose runs go, or end, in this sweep."""

    def open(self, cluster: str, found: Iterable[Requeue]) -> None:
        """Write down what shall be requeued: all of it or, if we are killed, nothing, so that
        never half of what a gang needs is requeued."""
        wanted = [
            Intent(
                id=0,
                cluster=cluster,
                job_id=item.job.id,
                run_start=item.job.start or 0,
                victim_account=item.job.account,
                for_job=item.for_job,
                for_account=item.for_account,
                gpus=item.job.gpu_total,
                step="planned",
                reason=item.reason,
                created=self.now,
                updated=self.now,
            )
            for item in found
        ]
        if wanted:
            self.ledger.plan_requeues(wanted, token=self.fence.token)
            self.between("planned")

    def advance(self, cluster: str, jobs: Sequence[Job]) -> None:
        """Take every open intent on; `jobs` is what slurmctld just said."""
        by_id = live.by_id(jobs)
        going, lacking = list[Intent](), set[int]()
        for intent in self.ledger.open_intents(cluster):
            job = by_id.get(intent.job_id)
            reason = self._obsolete(intent, job, by_id.get(intent.for_job or 0))
            if reason is None:
                going.append(intent)
                continue
            self._close(intent, job, reason)
            if intent.for_job is not None and intent.step != "requeued":
                lacking.add(intent.for_job)
        if going:
            since = min(intent.created for intent in going)
            touched = self.ledger.intents_touched_since(cluster, since)
            lacking |= gang.incomplete(going, touched)  # we may have been killed behind that step
        for for_job in sorted(lacking):
            going = self._without_vain(for_job, going, jobs)
        looked_at = set[int]()
        while ahead := [intent for intent in going if intent.id not in looked_at]:
            intent = ahead[0]
            looked_at.add(intent.id)
            step = self._take(intent, by_id[intent.job_id])
            if step in ("left", "requeued"):
                going.remove(intent)
            if intent.for_job is not None:
                self.acted.serving.add(intent.for_job)
                going = self._without_vain(intent.for_job, going, jobs) if step == "left" else going

    def _take(self, intent: Intent, job: Job) -> Step:
        """One run as far as it can go now; the step that it is at then."""
        step = intent.step
        if job.state == SIGNALING:
            self.acted.warned.append(job.id)
            return step
        if step == "planned" or (step == "signalled" and intent.updated < self.resumed):
            step = self._signal(intent, job)
        if step == "signalled" and self.now >= self._grace_until(intent):
            return self._requeue(intent, job)
        if step == "signalled":
            self.acted.warned.append(job.id)
        return step

    def _without_vain(self, for_job: int, going: list[Intent], jobs: Sequence[Job]) -> list[Intent]:
        """What shall go still, now that a run stays, or has ended, that was to go for a job too."""
        if not any(intent.for_job == for_job for intent in going):
            return going
        vain = gang.in_vain(
            for_job,
            going,
            self._ending,
            jobs,
            self.nodes,
            self.policy,
            self.now,
            self.preemption,
        )
        for intent in vain:
            why = f"job {for_job} would not start by it, now that another run does not make way"
            self._step(intent, "left", why)
            self.acted.left.append((intent.job_id, why))
        gone = {intent.job_id for intent in vain}
        self.acted.warned = [job for job in self.acted.warned if job not in gone]
        return [intent for intent in going if intent not in vain]

    def _grace_until(self, intent: Intent) -> int:
        if intent.grace_until is None or intent.updated > self.now + TOLERANCE:
            # of a clock that was ahead: since it was set back nobody has acted for a cooldown
            return self.now
        return intent.grace_until

    def _obsolete(self, intent: Intent, job: Job | None, owed: Job | None) -> str | None:
        """Why an intent needs no further deed; None when it does."""
        if job is None:
            return GONE
        if _over(intent, job):
            return f"the run is over (the job is {job.state})"
        if not job.running and job.state != SIGNALING:
            return f"the run does not run (the job is {job.state})"
        if live.protected_until(job, self.policy) > self.now:
            return "the run is protected"
        if self.policy.requeue == "never":
            return "requeues are off (sweep.requeue)"
        if intent.for_job is not None and not _still_owed(owed):
            return f"job {intent.for_job} waits no more"
        return None

    def _close(self, intent: Intent, job: Job | None, reason: str) -> None:
        """An intent whose run is over was carried out, by us before a kill or by Slurm."""
        over = job is not None and _over(intent, job)
        requeued = over and intent.step in ("signalled", "requeued")
        if job is not None and job.state == "COMPLETING":
            self._ending.add(job.id)
        self._step(intent, "done" if requeued else "left", reason)
        if requeued and job is not None and job.pending and job.reason.startswith("JobHeld"):
            self.acted.held.append(job.id)
        elif not requeued:
            self.acted.left.append((intent.job_id, reason))

    def _signal(self, intent: Intent, job: Job) -> Step:
        if self.policy.grace > 0:
            self.fence.check()
            deed = self.slurm.signal(live.address(job), self.policy.signal)
            if deed.outcome == "failed":
                # not warned: try again at the next sweep, the job's work comes first
                self.acted.left.append((job.id, f"not signalled: {deed.detail}"))
                return "planned"
            if deed.outcome != "done":
                self._step(intent, "left", deed.detail)
                self.acted.left.append((job.id, deed.detail))
                return "left"
            self.acted.signalled.append(job.id)
        at = self.now
        if at < self.resumed <= at + TOLERANCE:
            at = self.resumed  # this sweep began before; one warning is enough
        self.ledger.advance_intent(
            intent.id,
            "signalled",
            at,
            f"SIG{self.policy.signal}" if self.policy.grace else "no grace",
            grace_until=at + self.policy.grace,
            token=self.fence.token,
        )
        self.between("signalled")
        return "signalled" if self.policy.grace == 0 else "planned"

    def _requeue(self, intent: Intent, job: Job) -> Step:
        self.fence.check()
        deed = self.slurm.requeue(live.address(job))
        if deed.outcome != "done":
            self._step(intent, "left", deed.detail)
            self.acted.left.append((job.id, deed.detail))
            return "left"
        self._step(intent, "requeued", "scontrol requeue Incomplete")
        self.acted.requeued.append(job.id)
        self.acted.gpus += job.gpu_total
        self._ending.add(job.id)
        return "requeued"

    def _step(self, intent: Intent, step: Step, detail: str) -> None:
        self.ledger.advance_intent(intent.id, step, self.now, detail, token=self.fence.token)
        self.between(step)


def _still_owed(job: Job | None) -> bool:
    """Whether the job that a run makes way for still waits for GPUs, as a funded one."""
    return (
        job is not None
        and job.pending
        and job.reason not in HOLDS
        and live.class_of(job) == "funded"
    )


def _over(intent: Intent, job: Job) -> bool:
    """Whether the run that was meant has ended, or is about to."""
    holds = job.state in live.HOLDING and job.state != "COMPLETING"
    return job.start != intent.run_start or not holds
