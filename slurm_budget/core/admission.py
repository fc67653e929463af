"""Whether a job is funded, decided as it is submitted.

    class asked     --qos=funded (or funded-*), or else a minimum runtime above 0: funded;
                    --qos=preemptible, or else a minimum runtime of 0: preemptible;
                    any other QOS: not ours, left as it is; nothing: the site's default
    protection m    what was declared, at most the cap; not declared: the time limit, at most the
                    site's default; never more than the time limit
    cost            weighted GPUs x m x array tasks that may run at once, in GPU-milliseconds
    funded          where the cost is at most balance - promised of the account, of every account
                    above that has a budget, and of the user's own budget if there is one

A small job (GPUs x time limit x tasks at once within the fast lane) looks at `fast` in place of
`balance`. What was promised to jobs since the snapshot is taken off both, up the whole tree, so
that a thousand submissions in one second cannot all spend the same hour.

A job that cannot be requeued, and an interactive one, holds its GPUs for its whole time limit; it
is funded only where that is all protected.

Names of budgets, in `promised` and in `Verdict.promise`: the account, or `account/user`.

This file says what is decided and etc/sbudget.lua does the same under slurmctld; one table of
cases and drawn requests keep them together.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from slurm_budget.core import admission_text as say
from slurm_budget.core.admission_job import MOST, Job, Room, Verdict, counted_type, gpus_of
from slurm_budget.core.request import Request
from slurm_budget.state.snapshot import AccountFacts, Policy, Snapshot, UserFacts

if TYPE_CHECKING:
    from slurm_budget.state.jobs import Class, GpuCounts

CLOCK_SKEW = 300
"""A snapshot may be so many seconds ahead of the clock that it is read by."""
DEEPEST = 64
"""Levels of a tree of accounts; more is a loop."""


class Promises(NamedTuple):
    """What was promised since the snapshot that is in force, and when."""

    made: tuple[tuple[int, Mapping[str, int]], ...] = ()

    def plus(self, now: int, promise: Mapping[str, int]) -> Promises:
        return Promises((*self.made, (now, promise))) if promise else self

    def since(self, observed_at: int) -> Promises:
        """What a snapshot observed then cannot have seen: anything of the same second or later."""
        return Promises(tuple(item for item in self.made if item[0] >= observed_at))

    def total(self) -> dict[str, int]:
        """GPU-milliseconds by budget."""
        out: dict[str, int] = {}
        for _, promise in self.made:
            for name, cost in promise.items():
                out[name] = min(out.get(name, 0) + cost, MOST)
        return out


def usable(snapshot: Snapshot | None, now: int) -> bool:
    """Neither missing, nor too old, nor of a time that is yet to come."""
    if snapshot is None:
        return False
    return -CLOCK_SKEW <= now - snapshot.observed_at <= snapshot.policy.max_age


def decide(
    request: Request,
    snapshot: Snapshot | None,
    now: int,
    promised: Mapping[str, int] | None = None,
    fallback: str = "preemptible",
) -> Verdict:
    """The verdict on one job. `fallback` is the QOS for it where the snapshot is not usable."""
    policy = snapshot.policy if snapshot is not None else Policy()
    blind = not usable(snapshot, now)
    keep = not blind or request.qos == policy.preemptible_qos
    qos = policy.preemptible_qos if keep else fallback
    gpus = gpus_of(request, policy)
    asked, default = class_asked(request, policy)
    if asked is None:
        return Verdict()
    if not gpus:
        # A funded QOS would let it preempt for CPUs, at no cost to any budget.
        return without_gpus(qos, policy) if is_funded(request.qos) else Verdict()
    account = None if blind or snapshot is None else _account(request.account, snapshot)
    if default and account is None:
        # Nothing was asked of us, and nothing is known to us: Slurm's own DefaultQOS rules.
        return Verdict()
    job = Job(request, policy, asked, gpus, qos, placed=not blind)
    if asked == "preemptible":
        return job.preemptible(*(("default", say.default()) if default else ("asked", say.asked())))
    if snapshot is None or blind:
        return job.preemptible("blind", say.blind())
    if account is None or not account.qos:
        return job.preemptible("account", say.no_account(request.account))
    if not _type_is_paid(account, gpus):
        return job.preemptible("type", say.wrong_type(account.name, account.gres))
    if not job.requeueable and job.limit > job.min_runtime:
        return job.preemptible(
            "requeue",
            say.unrequeueable(request.batch, job.limit, job.min_runtime, policy.min_runtime_cap),
        )
    rooms = _rooms(job, account, snapshot, promised or {})
    return _by_budget(job, account.qos, rooms, now)


def _by_budget(job: Job, qos: str, rooms: list[Room], now: int) -> Verdict:
    tight = min(rooms, key=lambda room: room.slack)
    if tight.slack >= 0:
        return job.funded(qos, rooms, tight)
    never = next((room for room in rooms if room.slack < 0 and room.cost > room.budget), None)
    on_exhausted = job.policy.on_exhausted
    if never is not None:
        word = "rejected" if on_exhausted == "reject" else "preemptible"
        lines = say.never(word, never.label, never.budget, never.cost)
        return (
            job.rejected("never", lines) if word == "rejected" else job.preemptible("never", lines)
        )
    back_in = None if tight.back_at is None else tight.back_at - now
    short = tight.label, tight.left, tight.budget, tight.cost, back_in
    if on_exhausted == "reject":
        return job.rejected("budget", say.rejected(*short))
    if on_exhausted == "wait" and not job.request.held:
        return job.preemptible("wait", say.held(*short), hold=True)
    return job.preemptible("budget", say.exhausted(*short))


def class_asked(request: Request, policy: Policy) -> tuple[Class | None, bool]:
    """(class, whether that is only the site's default); (None, False): a QOS that is not ours."""
    if is_funded(request.qos):
        return "funded", False
    if request.qos == policy.preemptible_qos:
        return "preemptible", False
    if request.qos:
        return None, False
    if request.declared is not None:
        return ("funded" if request.declared > 0 else "preemptible"), False
    return policy.default_class, True


def is_funded(qos: str) -> bool:
    """`funded` is what users ask by, and no QOS of Slurm's; `funded-vision` is one."""
    return qos == "funded" or qos.startswith("funded-")


def without_gpus(qos: str, policy: Policy) -> Verdict:
    said = (say.PREFIX + say.no_gpus(),) if policy.messages else ()
    return Verdict(changes={"qos": qos}, messages=said)


def _account(name: str | None, snapshot: Snapshot) -> AccountFacts | None:
    if name is None:
        return None
    found = snapshot.accounts.get(name)
    return found or snapshot.accounts.get(snapshot.aliases.get(name, ""))


def _type_is_paid(account: AccountFacts, gpus: GpuCounts) -> bool:
    only = counted_type(account.gres)
    return only is None or all(kind in ("", only) for kind in gpus)


def _rooms(
    job: Job, account: AccountFacts, snapshot: Snapshot, promised: Mapping[str, int]
) -> list[Room]:
    """Every budget that the job must fit: the user's own, the account's, and those above that
    count GPUs of its type."""
    rooms = []

    def add(name: str, label: str, facts: AccountFacts | UserFacts, gres: str) -> None:
        cost, spent = job.cost(gres), promised.get(name, 0)
        balance = facts.balance - spent
        left = facts.fast - spent if job.small else balance
        if cost > 0 or facts is account:
            rooms.append(Room(name, label, facts.budget, left, balance, cost, facts.back_at))

    own = snapshot.users.get((account.name, job.request.user))
    if own is not None:
        label = f"{own.user}'s budget in {own.account}"
        add(f"{own.account}/{own.user}", label, own, account.gres)
    at: AccountFacts | None = account
    for _ in range(DEEPEST):
        if at is None:
            break
        if at.qos:
            add(at.name, f"{at.name}'s budget", at, at.gres)
        at = snapshot.accounts.get(at.parent) if at.parent else None
    return rooms
