"""Why a job waits: its class, Slurm's reason, who holds the GPUs, what the sweeper does. Pure."""

from collections.abc import Sequence

from slurm_budget.core import holders, live, reasons, why_budget
from slurm_budget.core.holders import Clock
from slurm_budget.core.marker import parse
from slurm_budget.core.retag import held_for_budget
from slurm_budget.core.why_runs import class_sentence
from slurm_budget.state.answers import Known
from slurm_budget.state.jobs import Job
from slurm_budget.text.spoken import spoken

SHORT_OF_BUDGET = frozenset({"budget", "wait", "never", "blind"})
MOST_NAMED = 5


def sentences(job: Job, known: Known, clock: Clock) -> list[str]:
    """What there is to say of a job in PENDING."""
    gpus = f"{job.gpu_total} GPUs" if job.gpu_total != 1 else "1 GPU"
    where = f" on {job.num_nodes} nodes" if job.num_nodes > 1 else ""
    tasks = f" for each of {job.tasks} tasks" if job.tasks > 1 else ""
    out = [
        f"Job {job.label} of {job.user} in {job.account} has waited since {clock(job.submit)}"
        f" ({spoken(max(known.now - job.submit, 0))}) for {gpus}{where}{tasks}."
    ]
    if not job.gpu_total:
        out[0] = out[0].replace(" for 0 GPUs", "")
        out.append("It asks for no GPU, so budgets do not concern it; only Slurm's reason counts.")
    else:
        out += _class(job, known)
    out.append(_reason(job))
    if job.expected is not None and job.expected > known.now:
        out.append(_when(job.reason, clock(job.expected)))
    if job.gpu_total and job.reason in live.WAITS_FOR_GPUS:
        if known.nodes is not None:
            queue = known.jobs or ()
            found = holders.holders(queue, known.nodes, job.partitions, known.policy, known.now)
            out.append(holders.sentence(found, job.partitions, known.now, clock))
        out += _sweeper(job, known, clock)
    return out


def _class(job: Job, known: Known) -> list[str]:
    mark = parse(job.admin_comment)
    if live.class_of(job) == "funded":
        funded = class_sentence(job, known.policy).removesuffix(".")
        protected = spoken(live.min_runtime(job, known.policy))
        most = ", the longest there is" if live.at_cap(job, known.policy) else ""
        return [f"{funded}; once it starts, it is protected for {protected}{most}."]
    out = [class_sentence(job, known.policy)]
    if mark is not None and mark.asked == "funded" and mark.why in SHORT_OF_BUDGET:
        said = why_budget.sentence(job, known.facts, known.policy, known.now)
        out += [said] if said else []
        if live.at_cap(job, known.policy):
            cap = spoken(known.policy.min_runtime_cap)
            out.append(f"Its protection would be {cap}, the longest there is.")
    return out


def _reason(job: Job) -> str:
    if held_for_budget(job) and job.reason.startswith("JobHeld"):
        return (
            f"Slurm's reason is {job.reason}: it is held until the budget allows it to be funded;"
            " `scontrol release JOBID` runs it preemptible at once."
        )
    word = job.reason or "None"
    told = reasons.plain(word)
    if word in ("Dependency", "DependencyNeverSatisfied") and job.dependency:
        told += f" ({job.dependency})"
    elif word == "BeginTime" and job.restarts:
        told = "it was requeued, and Slurm lets it start again after about two minutes"
    return f"Slurm's reason is {word}: {told}." if told else f"Slurm's reason is {word}."


def _when(reason: str, expected: str) -> str:
    if reason == "BeginTime":
        return f"It may start from {expected} on."
    return (
        f"Slurm expects it to start by {expected}, if all that runs takes its whole time limit;"
        " that may change."
    )


def _sweeper(job: Job, known: Known, clock: Clock) -> list[str]:
    """What the sweeper does so that it can start."""
    if live.class_of(job) != "funded":
        return ["Preemptible jobs run on idle GPUs; nobody makes way for them."]
    going = [i for i in known.intents or () if i.open and i.for_job == job.id]
    if going:
        last = max((i.grace_until or known.now) for i in going)
        verbs = ("makes", "is") if len(going) == 1 else ("make", "are")
        return [
            f"{_named([i.job_id for i in going])} {verbs[0]} way for it, and {verbs[1]} requeued"
            f" from {clock(last)} on."
        ]
    if known.outlook is None:
        return []
    if known.outlook.paused:
        return [f"The sweeper is paused ({known.outlook.paused}), so nobody makes way for it."]
    victims = known.outlook.victims.get(job.id)
    if victims:
        return [
            f"The next sweep would requeue {_named(victims).lower()} for it"
            f" (a warning first, then {spoken(known.policy.grace)} of grace)."
        ]
    if victims is not None:
        return [
            "It fits on what is free or what Slurm frees by itself, so nobody is requeued for it;"
            " Slurm's scheduler should start it soon."
        ]
    left = known.outlook.left.get(job.id)
    return [f"The next sweep would requeue nobody for it: {left}."] if left else []


def _named(ids: Sequence[int]) -> str:
    shown = ", ".join(str(number) for number in sorted(ids)[:MOST_NAMED])
    more = len(ids) - MOST_NAMED
    word = "Job" if len(ids) == 1 else "Jobs"
    return f"{word} {shown}" + (f" and {more} more" if more > 0 else "")
