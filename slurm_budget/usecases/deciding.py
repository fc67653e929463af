"""What a sweep means to do: the rules of the core, put to what was observed. Changes nothing."""

from dataclasses import dataclass, field

from slurm_budget.core import live, notes, owed
from slurm_budget.core.choose import choose
from slurm_budget.core.repairs import repairs
from slurm_budget.core.retag import Verdicts, verdicts
from slurm_budget.ledger.store import Ledger
from slurm_budget.state.answers import Outlook
from slurm_budget.state.choose import Candidate, Choice, Leave
from slurm_budget.state.sweep import Requeue, SweepPolicy
from slurm_budget.usecases.observe import World


@dataclass(frozen=True, slots=True)
class Decision:
    """What a sweep means to do, before anything is done. `owed`: ids of the jobs that are owed
    GPUs, whether anybody makes way for them or not."""

    verdicts: Verdicts
    choices: list[Choice]
    requeues: list[Requeue]
    left: list[Leave]
    owed: frozenset[int]
    notes: list[Leave] = field(default_factory=list)

    def outlook(self, paused: str) -> Outlook:
        """The same for answers about single jobs."""
        return Outlook(
            victims={c.job_id: tuple(run.job_id for run in c.victims) for c in self.choices},
            going={requeue.job.id: requeue.reason for requeue in self.requeues},
            left={leave.job_id: leave.reason for leave in self.left},
            paused=paused,
        )


def decide(world: World, ledger: Ledger, policy: SweepPolicy) -> Decision:
    """Retag and choose, on what was observed. Nothing is changed."""
    found = verdicts(
        world.jobs,
        world.tree,
        world.accounts,
        world.users,
        world.user_use,
        policy,
        world.preemption.partitions,
    )
    recent = ledger.intents_touched_since(world.cluster, world.now - policy.cooldown)
    going = ledger.open_intents(world.cluster)
    handled = notes.touched(recent, going, world.now)
    # runs that are going count as space below, so what they free is not freed twice
    served = notes.freed(recent)
    funded = {retag.job.id for retag in found.retags if retag.class_ == "preemptible"}
    jobs = [job for job in world.jobs if job.id not in funded]
    asked = owed.owed(jobs, world.nodes, served, policy, world.now, world.preemption)
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
    owing = {a.job_id for a in answers if isinstance(a, Leave) or a.victims}
    owing |= {job.id for job in jobs if job.pending and job.id in served}
    earlier = [swept.at for swept in ledger.last_sweeps(2, world.cluster)]
    said = notes.not_started(
        world.jobs, served, {intent.for_job for intent in going}, earlier, policy, world.now
    ) + notes.stale_preemptions(world.jobs, policy, world.now)
    return Decision(found, choices, requeues, left, frozenset(owing), said)


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
    waits = any(
        job.pending and job.gpu_total and job.reason in live.WAITS_FOR_GPUS for job in world.jobs
    )
    if policy.requeue == "always" and waits:
        for run in runs:
            freed = sum(requeue.job.gpu_total for requeue in out.values())
            if freed + by_id[run.job_id].gpu_total > policy.max_gpus:
                continue
            out.setdefault(
                run.job_id,
                Requeue(by_id[run.job_id], None, "", "its protection is over and jobs wait"),
            )
    return list(out.values())
