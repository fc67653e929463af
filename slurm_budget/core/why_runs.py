"""Why a job runs as it does: its class, until when it is left alone, and what comes then. Pure."""

from slurm_budget.core import live
from slurm_budget.core.holders import Clock
from slurm_budget.core.marker import WHY, parse
from slurm_budget.state.answers import Known
from slurm_budget.state.intent import Intent
from slurm_budget.state.jobs import Job
from slurm_budget.state.sweep import SweepPolicy
from slurm_budget.text.spoken import spoken


def sentences(job: Job, known: Known, clock: Clock) -> list[str]:
    """What there is to say of a job in RUNNING."""
    start = known.now if job.start is None else job.start
    gpus = f"{job.gpu_total} GPUs" if job.gpu_total != 1 else "1 GPU"
    out = [
        f"Job {job.label} of {job.user} in {job.account} has run since {clock(start)}"
        f" ({spoken(max(known.now - start, 0))}) on {', '.join(job.nodes)} with {gpus}."
    ]
    if not job.gpu_total:
        return [*out, "It has no GPU, so budgets and the sweeper leave it alone."]
    out.append(class_sentence(job, known.policy))
    until = live.protected_until(job, known.policy)
    if live.class_of(job) != "funded":
        return [*out, _preemptible(job, known, clock), *_going(job, known, clock)]
    if until > known.now:
        then = "goes on for as long as nobody is owed its GPUs"
        if not (job.batch and job.requeue):
            then = "is left to its end all the same, since it cannot be requeued"
        protected = f"It is protected until {clock(until)}, {spoken(until - known.now)} more"
        if live.at_cap(job, known.policy):
            protected += f" ({spoken(known.policy.min_runtime_cap)} in all, the longest there is)"
        return [*out, f"{protected}; after that it {then}."]
    out.append(
        f"Its protection ended at {clock(until)}, {spoken(known.now - until)} ago; it goes on for"
        " as long as nobody is owed its GPUs."
    )
    return [*out, *_yields(job, known, clock)]


def class_sentence(job: Job, policy: SweepPolicy) -> str:
    """The class and the hook's or the sweep's reason for it."""
    mark, class_ = parse(job.admin_comment), live.class_of(job)
    if class_ != "funded" and job.qos != policy.preemptible_qos:
        return f"It is neither funded nor preemptible: its QOS {job.qos or '(none)'} is not ours."
    if mark is None:
        return f"It is {class_} by its QOS {job.qos}; the submit hook has written nothing on it."
    if mark.class_ != class_:
        return f"It is {class_}: its QOS was changed to {job.qos} after the hook's verdict."
    asked = " though it asked to be funded" if mark.asked != class_ else ""
    return f"It is {class_}{asked}: {WHY.get(mark.why, mark.why)}."


def _preemptible(job: Job, known: Known, clock: Clock) -> str:
    if job.qos != known.policy.preemptible_qos:
        return "What may preempt it is the site's own setting."
    frees = (job.start or known.now) + known.policy.exempt
    deed = "requeues" if job.requeue and job.batch else "cancels (it cannot be requeued)"
    if frees > known.now:
        return (
            f"It costs no budget. Slurm leaves it alone until {clock(frees)}; from then on a funded"
            f" job that finds no room may take its GPUs, and Slurm {deed} it."
        )
    return (
        "It costs no budget. A funded job that finds no room may take its GPUs at any moment, and"
        f" Slurm {deed} it."
    )


def _yields(job: Job, known: Known, clock: Clock) -> list[str]:
    """For a funded run past its protection: whether it makes way, and for whom."""
    if not job.batch:
        return ["It is interactive, so it cannot be requeued and is left to its end."]
    if not job.requeue:
        return ["It cannot be requeued (--no-requeue), so it is left to its end."]
    going = _going(job, known, clock)
    if going or known.outlook is None:
        return going
    if known.outlook.paused:
        return [f"The sweeper is paused ({known.outlook.paused}), so nothing is requeued."]
    if job.id in known.outlook.left:
        return [f"The sweeper leaves it for now: {known.outlook.left[job.id]}."]
    return ["The next sweep would leave it alone: nobody who is owed GPUs needs these."]


def _going(job: Job, known: Known, clock: Clock) -> list[str]:
    """That it makes way, and why; empty where it does not, as far as is known."""
    for intent in known.intents or ():
        if intent.open and intent.job_id == job.id and intent.run_start == job.start:
            return [_warned(intent, clock)]
    found = known.outlook
    if found is None or found.paused or job.id not in found.going:
        return []
    why = found.going[job.id]
    return [f"The next sweep would warn it and, after its grace, requeue it: {why}."]


def _warned(intent: Intent, clock: Clock) -> str:
    if intent.step == "planned":
        return f"The sweeper is about to warn and requeue it: {intent.reason}."
    when = "now" if intent.grace_until is None else f"from {clock(intent.grace_until)} on"
    return f"It was warned, and is requeued {when}: {intent.reason}."
