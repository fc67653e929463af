"""What is left of a budget, what runs on it, and when how much comes back: sentences. Pure.

GPU-time in weighted GPU-milliseconds, times in epoch seconds.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from slurm_budget.core import live
from slurm_budget.core.admission_text import gpu_hours
from slurm_budget.core.holders import Clock
from slurm_budget.state.jobs import Job
from slurm_budget.state.snapshot import AccountFacts, Snapshot, UserFacts
from slurm_budget.state.sweep import SweepPolicy
from slurm_budget.text.spoken import spoken

MOST_RUNS = 10
DEEPEST = 64

Returns = tuple[tuple[int, int], ...]
"""(within so many seconds, GPU-milliseconds that come back)."""


@dataclass(frozen=True, slots=True)
class RunOn:
    """A run that the budget pays, or has paid: `until` its protection ends."""

    job: str
    user: str
    account: str
    gpus: int
    until: int


@dataclass(frozen=True, slots=True)
class Balance:
    """One account. `above` are the budgets above it, nearest first; `own` the asking user's own.

    None: not known. `charged` needs the ledger; `returns` too: (within so many seconds, GPU-time
    that comes back). `runs` and the figures of waiting jobs need the queue.
    """

    facts: AccountFacts
    above: tuple[AccountFacts, ...]
    own: UserFacts | None
    as_of: int
    runs: tuple[RunOn, ...] | None = None
    past_gpus: int = 0
    waiting_jobs: int = 0
    waiting_gpus: int = 0
    charged: int | None = None
    returns: Returns | None = None


def chain(name: str, facts: Snapshot) -> tuple[AccountFacts, ...]:
    """Accounts above one that have a budget, nearest first."""
    out: list[AccountFacts] = []
    at = facts.accounts[name].parent
    while at is not None and at in facts.accounts and len(out) < DEEPEST:
        if facts.accounts[at].qos:
            out.append(facts.accounts[at])
        at = facts.accounts[at].parent
    return tuple(out)


def below(name: str, accounts: Mapping[str, AccountFacts]) -> set[str]:
    """The account and all below it."""
    found = {name}
    grown = True
    while grown:
        more = {a.name for a in accounts.values() if a.parent in found} - found
        found |= more
        grown = bool(more)
    return found


def balance(
    name: str,
    user: str,
    facts: Snapshot,
    jobs: Iterable[Job] | None,
    policy: SweepPolicy,
    now: int,
    charged: int | None = None,
    returns: Returns | None = None,
) -> Balance:
    """Everything about one account that is in `facts`."""
    runs: tuple[RunOn, ...] | None = None
    past = waiting_jobs = waiting_gpus = 0
    if jobs is not None:
        names = below(name, facts.accounts)
        mine = [
            (job, facts.aliases.get(job.account, job.account))
            for job in jobs
            if job.gpu_total and live.class_of(job) == "funded"
        ]
        mine = [(job, account) for job, account in mine if account in names]
        running = [
            RunOn(job.label, job.user, account, job.gpu_total, live.protected_until(job, policy))
            for job, account in mine
            if job.state in live.HOLDING
        ]
        runs = tuple(sorted((r for r in running if r.until > now), key=lambda r: (r.until, r.job)))
        past = sum(run.gpus for run in running if run.until <= now)
        waits = [job for job, _ in mine if job.pending]
        waiting_jobs = sum(job.tasks for job in waits)
        waiting_gpus = sum(job.gpu_total * job.at_once for job in waits)
    return Balance(
        facts.accounts[name], chain(name, facts), facts.users.get((name, user)),
        facts.observed_at, runs, past, waiting_jobs, waiting_gpus, charged, returns,
    )  # fmt: skip


def sentences(found: Balance, now: int, clock: Clock) -> list[str]:
    """For people; the first line says it all."""
    facts = found.facts
    if not facts.qos:
        return [f"{facts.name} has no budget: its jobs are preemptible, on idle GPUs."]
    ago = spoken(max(now - found.as_of, 0))
    age = f" (as of the sweep at {clock(found.as_of)}, {ago} ago)"
    out = [
        f"{facts.name}: {gpu_hours(facts.balance)} of {gpu_hours(facts.budget)} GPU-hours are left"
        f" for new jobs{age}."
    ]
    tight = min((a for a in found.above), key=lambda a: a.balance, default=None)
    if tight is not None and tight.balance < facts.balance:
        out.append(
            f"But {tight.name} above it has {gpu_hours(tight.balance)} left; a job must fit both."
        )
    if found.own is not None:
        out.append(
            f"{found.own.user}'s own budget in it: {gpu_hours(found.own.balance)} of"
            f" {gpu_hours(found.own.budget)} GPU-hours are left."
        )
    if facts.fast > max(facts.balance, 0):
        out.append(f"Small jobs find {gpu_hours(facts.fast)} GPU-hours (the fast lane).")
    if found.charged is not None:
        promised = max(facts.budget - found.charged - facts.balance, 0)
        out.append(
            f"Charged in the window: {gpu_hours(found.charged)}; promised to jobs that run"
            f" or wait: {gpu_hours(promised)}."
        )
    out += _running(found, clock)
    out += _back(found, now, clock)
    return out


def _running(found: Balance, clock: Clock) -> list[str]:
    if found.runs is None:
        return []
    out = []
    if found.runs:
        total = sum(run.gpus for run in found.runs)
        out.append(f"Protected now: {_gpus(total)}.")
        out += [
            f"  job {run.job} of {run.user}: {_gpus(run.gpus)} until {clock(run.until)}"
            for run in found.runs[:MOST_RUNS]
        ]
        if len(found.runs) > MOST_RUNS:
            out.append(f"  and {len(found.runs) - MOST_RUNS} more")
    else:
        out.append("Nothing runs under its protection now.")
    if found.past_gpus:
        out.append(
            f"Past their protection, at no charge, run {_gpus(found.past_gpus)}, until somebody is"
            " owed them."
        )
    if found.waiting_jobs:
        word = "job waits" if found.waiting_jobs == 1 else "jobs wait"
        out.append(f"{found.waiting_jobs} funded {word} for {_gpus(found.waiting_gpus)}.")
    return out


def _back(found: Balance, now: int, clock: Clock) -> list[str]:
    out = []
    if found.returns is not None:
        told = [f"{gpu_hours(ms)} within {spoken(s)}" for s, ms in found.returns if ms > 0]
        out.append(
            f"GPU-hours that come back: {', '.join(told)}." if told else "Nothing is charged."
        )
    back = [at for at in _backs(found) if at is not None]
    if back and min(found.facts.balance, *(a.balance for a in found.above), 1) <= 0:
        at = max(back)
        out.append(f"More is back at {clock(at)}, in {spoken(max(at - now, 0))}.")
    return out


def _backs(found: Balance) -> Sequence[int | None]:
    return [a.back_at for a in (found.facts, *found.above) if a.balance <= 0]


def _gpus(count: int) -> str:
    return "1 GPU" if count == 1 else f"{count} GPUs"
