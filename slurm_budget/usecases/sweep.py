"""One sweep: observe, account, retag, choose, act, publish, say one sentence.

It reads everything afresh, keeps nothing in memory that matters, and can be killed anywhere. The
sentence is for people and for tests.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from slurm_budget.core import demand, live, notes, owed
from slurm_budget.core.choose import choose
from slurm_budget.core.repairs import repairs
from slurm_budget.core.retag import Verdicts, held_for_budget, verdicts
from slurm_budget.errors import LeaseLost, LedgerUnreachable, SbudgetError, SlurmUnreachable
from slurm_budget.ledger.store import Ledger
from slurm_budget.ports import JobPort
from slurm_budget.settings import Settings
from slurm_budget.state.answers import Outlook
from slurm_budget.state.choose import Candidate, Choice, Leave
from slurm_budget.state.sweep import Requeue, Retag, SweepPolicy
from slurm_budget.usecases.accounting import Source
from slurm_budget.usecases.act import Acted, Actor
from slurm_budget.usecases.fence import Fence
from slurm_budget.usecases.observe import World, observe
from slurm_budget.usecases.policy import hook_policy, sweep_policy
from slurm_budget.usecases.publish import publish, returns, snapshot, tell
from slurm_budget.usecases.sessions import Told, warn


@dataclass(frozen=True, slots=True)
class Decision:
    """What a sweep means to do, before anything is done."""

    verdicts: Verdicts
    choices: list[Choice]
    requeues: list[Requeue]
    left: list[Leave]
    demands: int
    notes: list[Leave] = field(default_factory=list)

    def outlook(self, paused: str) -> Outlook:
        """The same for answers about single jobs."""
        return Outlook(
            victims={c.job_id: tuple(run.job_id for run in c.victims) for c in self.choices},
            going={requeue.job.id: requeue.reason for requeue in self.requeues},
            left={leave.job_id: leave.reason for leave in self.left},
            paused=paused,
        )


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
        choices = {choice.job_id for choice in self.decision.choices if choice.victims}
        owing = len(choices | self.acted.serving)
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
        return ("would sweep: " if self.dry_run else "swept: ") + "; ".join(parts) + "."


def _ids(jobs: list[int]) -> str:
    shown = ", ".join(str(job) for job in jobs[:10])
    word = "job" if len(jobs) == 1 else "jobs"
    return f"{word} {shown}" + (f" and {len(jobs) - 10} more" if len(jobs) > 10 else "")


def decide(world: World, ledger: Ledger, policy: SweepPolicy) -> Decision:
    """Retag and choose, on what was observed. Nothing is changed."""
    found = verdicts(world.jobs, world.tree, world.accounts, world.users, world.user_use, policy)
    recent = ledger.intents_touched_since(world.cluster, world.now - policy.cooldown)
    going = ledger.open_intents(world.cluster)
    handled = notes.touched(recent, going, world.now)
    # runs that are going count as space below, so what they free is not freed twice
    served = notes.freed(recent)
    funded = {retag.job.id for retag in found.retags if retag.class_ == "preemptible"}
    jobs = [job for job in world.jobs if job.id not in funded]
    asked = owed.owed(jobs, world.nodes, served, policy, world.now)
    runs, left = owed.candidates(jobs, handled, policy, world.now)
    answers = choose(
        asked.demands,
        owed.space(
            world.nodes,
            world.jobs,
            [i.job_id for i in going],
            policy,
            world.now,
            world.preemption,
        ),
        runs,
        owed.may_yield(world.tree, world.accounts, world.user_use, policy),
        max_gpus=policy.max_gpus if policy.requeue != "never" else 0,
        by_owner=True,
    )
    choices = [answer for answer in answers if isinstance(answer, Choice)]
    requeues = _requeues(world, choices, runs, handled, policy)
    left += asked.left + [answer for answer in answers if isinstance(answer, Leave)]
    earlier = [swept.at for swept in ledger.last_sweeps(2, world.cluster)]
    said = notes.not_started(
        world.jobs, served, {intent.for_job for intent in going}, earlier, policy, world.now
    ) + notes.stale_preemptions(world.jobs, policy, world.now)
    return Decision(found, choices, requeues, left, len(asked.demands), said)


def _requeues(
    world: World,
    choices: list[Choice],
    runs: list[Candidate],
    handled: dict[int, int],
    policy: SweepPolicy,
) -> list[Requeue]:
    by_id = live.by_id(world.jobs)
    out: dict[int, Requeue] = {}
    for choice in choices:
        job = by_id[choice.job_id]
        for run in choice.victims:
            out[run.job_id] = Requeue(
                by_id[run.job_id],
                job.id,
                job.account,
                f"{job.account} is owed {job.gpu_total} GPUs for job {job.label}",
            )
    if policy.requeue != "never":
        for job, reason in repairs(
            world.jobs, world.nodes, handled, policy, world.now, world.preemption
        ):
            out.setdefault(job.id, Requeue(job, None, "", reason))
    if policy.requeue == "always" and any(job.pending for job in world.jobs):
        for run in runs:
            out.setdefault(
                run.job_id,
                Requeue(by_id[run.job_id], None, "", "its protection is over and jobs wait"),
            )
    return list(out.values())


def sweep(
    slurm: JobPort,
    ledger: Ledger,
    source: Callable[[str], Source],
    settings: Settings,
    now: int,
    *,
    fence: Fence,
    dry_run: bool = False,
    between: Callable[[str], None] = lambda step: None,
) -> Swept:
    """Sweep once; without the lease, or while paused, everything but the deeds.

    Raises SlurmUnreachable before anything was done, and LedgerUnreachable, which knows (`acted`)
    what was done before.
    """
    started = time.monotonic()
    policy = sweep_policy(settings)
    cluster = fence.cluster
    world = observe(slurm, ledger, source(cluster), settings, policy, now)
    decision = decide(world, ledger, policy)
    brake = ledger.brake(cluster)
    resumed = 0 if brake is None else brake.at
    actor = Actor(slurm, ledger, policy, now, fence, resumed=resumed, between=between)
    out = Swept(world, decision, actor.acted, dry_run=dry_run, idle=fence.why)
    paused = f"{brake.reason} ({brake.author})" if brake is not None and brake.paused else ""
    if paused and not out.idle:
        out.idle = f"paused: {paused}"
    if dry_run:
        return out
    try:
        if not out.idle:
            _act(slurm, out, actor, policy)
        if not fence.why and not out.failed:
            # harmless, so a pause does not stop it; the holder alone does it, or it is said twice
            out.told = warn(slurm, ledger, cluster, world.jobs, policy, now)
        _publish(out, ledger, settings, paused)
        if not fence.why:
            ledger.record_levels(cluster, now, demand.levels(world.jobs, world.nodes, world.tree))
        if fence.other is None:
            ledger.record_sweep(cluster, now, out.sentence(), time.monotonic() - started)
    except LeaseLost as lost:
        # who has it now publishes what is newer than this
        out.idle = f"lost the lease, acted no further: {lost.what}"
    except LedgerUnreachable as bad:
        if out.did_something:
            bad.acted = f"{out.sentence()[:-1]}; then failed"
        raise
    return out


def _publish(out: Swept, ledger: Ledger, settings: Settings, paused: str) -> None:
    """The deeds are done by now: that the file could not be written must not hide them."""
    world, found = out.world, out.decision.verdicts
    hook = hook_policy(settings, world.nodes, world.config, world.operators)
    back = returns(world, found, ledger, settings)
    try:
        publish(settings, snapshot(world, found, back, hook, world.now))
        tell(settings, ledger, world, out.decision.outlook(paused))
    except SbudgetError as bad:
        out.failed.append(bad)
        out.idle = "; ".join(filter(None, [out.idle, f"the snapshot stays as it was: {bad.what}"]))


def _act(slurm: JobPort, out: Swept, actor: Actor, policy: SweepPolicy) -> None:
    """Raises LeaseLost. Where Slurm does not answer any more nothing further is asked of it."""
    try:
        _deeds(slurm, out, actor, policy)
    except SlurmUnreachable as bad:
        out.failed.append(bad)
        out.idle = f"acted no further: {bad.what}"


def _deeds(slurm: JobPort, out: Swept, actor: Actor, policy: SweepPolicy) -> None:
    fence, cluster = actor.fence, out.world.cluster
    fence.hold()
    move_classes(slurm, out, policy, check=fence.check, between=actor.between)
    actor.open(cluster, out.decision.requeues)
    # what was seen longer ago than a lease lasts is looked at again
    old = fence.clock() - out.world.now > fence.ttl
    actor.advance(cluster, slurm.jobs(shares=False) if old else out.world.jobs)
    # that the requeued ones wait is seen, and recorded, by the next sweep
    fence.check()


def move_classes(
    slurm: JobPort,
    out: Swept,
    policy: SweepPolicy,
    *,
    check: Callable[[], None] = lambda: None,
    between: Callable[[str], None] = lambda step: None,
) -> None:
    """At most `max_updates` jobs; an array is one. What a budget gives up comes before what it
    gives, and if a job could not be moved out (it may have started) nothing is given before the
    next sweep has seen why: what is promised together stays within the budget."""
    wanted = sorted(out.decision.verdicts.retags, key=lambda retag: retag.class_ == "funded")
    kept, out.later = False, len(wanted)
    for retag in wanted[: policy.max_updates]:
        if kept and retag.class_ == "funded":
            break
        out.later -= 1
        check()
        where = live.address(retag.job)
        if retag.class_ == "funded" and held_for_budget(retag.job):
            # first, for a kill behind it leaves a job that waits, and none that is held for ever
            slurm.release(where)
            check()
        deed = slurm.retag(where, retag.qos, retag.admin_comment)
        if deed.outcome == "done":
            out.retagged.append(retag)
        else:
            kept = kept or live.class_of(retag.job) == "funded"
            if deed.outcome != "gone":
                out.refused.append((retag.job.id, deed.detail))
        between("retagged")
