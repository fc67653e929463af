"""Whose budget binds a job that asked to be funded, by the facts of the last snapshot. Pure."""

from slurm_budget.core import admission_text, live
from slurm_budget.core.admission_job import Room
from slurm_budget.state.jobs import Job
from slurm_budget.state.snapshot import AccountFacts, Snapshot, UserFacts
from slurm_budget.state.sweep import SweepPolicy

DEEPEST = 64
"""Levels of a tree of accounts; more is a loop."""


def tightest(job: Job, facts: Snapshot, policy: SweepPolicy) -> Room | None:
    """The budget with the least room for the job: its user's, its account's, or one above. None
    where there is no budget. GPU-milliseconds."""
    name = facts.aliases.get(job.account, job.account)
    small = live.small(job, policy)
    found: list[Room] = []

    def add(name: str, label: str, one: AccountFacts | UserFacts, gres: str) -> None:
        left = one.fast if small else one.balance
        cost = live.cost(job, policy, gres)
        found.append(Room(name, label, one.budget, left, one.balance, cost, one.back_at))

    own, account = facts.users.get((name, job.user)), facts.accounts.get(name)
    if own is not None and account is not None:
        add(f"{name}/{job.user}", f"{job.user}'s budget in {name}", own, account.gres)
    for _ in range(DEEPEST):
        if account is None:
            break
        if account.qos:
            add(account.name, f"{account.name}'s budget", account, account.gres)
        account = facts.accounts.get(account.parent) if account.parent else None
    return min(found, key=lambda room: room.slack, default=None)


def sentence(job: Job, facts: Snapshot | None, policy: SweepPolicy, now: int) -> str:
    """Whose budget has how much left, what the job needs, and when more is back; empty where there
    is nothing to say."""
    room = None if facts is None else tightest(job, facts, policy)
    if room is None:
        return ""
    if room.cost > room.budget:
        return (
            f"Its protection costs {admission_text.gpu_hours(room.cost, up=True)} GPU-hours, more"
            f" than {room.label} of {admission_text.gpu_hours(room.budget)}: it will never be"
            " funded so."
        )
    back_in = None if room.back_at is None else room.back_at - now
    said = admission_text.out_of(room.label, room.left, room.budget, room.cost, back_in)
    if room.slack >= 0:
        return f"{said[:1].upper()}{said[1:]} That fits now: the next sweep funds it, in its turn."
    return said[:1].upper() + said[1:]
