"""Which pending jobs are funded: decided afresh at each sweep, in the order of what is owed.

Jobs that asked for funded come in this order: those that Slurm could start before those that are
held, depend or lie in the future; those that are funded already, small ones last, so that what was
promised together still fits and no verdict flaps while nothing changes; accounts that have had less
of their budget first; then, in an account, the user who has used less, and age.

Each is funded while its protection fits every balance above it. The first that does not fit starts
to *save* at the budget that binds: nothing behind it is given what frees up there, or a gang would
wait for ever behind a stream of single GPUs. Small jobs pass in the fast lane, a part of each
budget on top of it that is there when the rest is spent. A job that costs more than a whole budget
will never fit; it saves for nothing, and is told so.

No job is moved to a QOS that none of its partitions allows: it would wait for ever.

    budget 100, charged 60:   A (30) funded, 10 left;  B (20) saves;  C (5) waits behind B;
                              D (5, small) funded by the fast lane
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import inf
from types import MappingProxyType

from slurm_budget.core import live
from slurm_budget.core.marker import Marker, merge, parse
from slurm_budget.core.standing import Standing
from slurm_budget.state.budget import BudgetTree
from slurm_budget.state.jobs import Job
from slurm_budget.state.slurm import Partition
from slurm_budget.state.sweep import Facts, Retag, SweepPolicy

HOLDS = frozenset({"JobHeldUser", "JobHeldAdmin", "Dependency", "DependencyNeverSatisfied",
                   "BeginTime", "JobArrayTaskLimit", "Reservation"})  # fmt: skip
"""Reasons by which a pending job waits for something other than GPUs."""

WORTH_SAYING = frozenset({"never", "account", "type", "partition"})
"""Reasons that are written even where the class stays: they tell the user something new."""

BUDGET_HOLD = "wait"
"""The marker's word for a job that the hook holds until a budget has enough left."""


@dataclass(frozen=True, slots=True)
class Verdicts:
    """`retags` in order; `accounts`, `users`: what is left after all promises; `why` the word for
    each job that asked for funded, `binding` whose budget it lacks; `reserved` what funded pending
    jobs will cost, by account."""

    retags: list[Retag]
    accounts: dict[str, Facts]
    users: dict[tuple[str, str], Facts]
    why: dict[int, str]
    binding: dict[int, str] = field(default_factory=dict)
    reserved: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class _Purse:
    """What is left at one budget while the queue is walked."""

    budget: int
    gres: str
    left: int
    lane: int
    saving: int = 0

    def fits(self, cost: int, small: bool) -> bool:
        if small:
            return cost <= self.left + self.lane
        return not self.saving and cost <= self.left


def verdicts(
    jobs: Iterable[Job],
    tree: BudgetTree,
    accounts: Mapping[str, Standing],
    users: Mapping[tuple[str, str], Standing],
    user_use: Mapping[tuple[str, str], int],
    policy: SweepPolicy,
    partitions: Mapping[str, Partition] = MappingProxyType({}),
) -> Verdicts:
    """Decide on every pending job. `accounts`, `users`: standings whose `reserved` holds the
    protected runs alone; `user_use`: GPU-milliseconds used by (account, user); `partitions`: what
    each asks of a job."""
    purses = {
        name: _purse(tree.nodes[name].gres, standing, policy)
        for name, standing in accounts.items()
        if standing.budget is not None
    }
    own = {
        key: _purse(tree.nodes[key[0]].gres, standing, policy)
        for key, standing in users.items()
        if key[0] in tree.nodes
    }
    out = Verdicts([], {}, {}, {})
    places = _places(accounts)
    for job in sorted(
        (job for job in jobs if job.pending and job.gpu_total and live.asked(job) == "funded"),
        key=lambda job: _order(job, tree, places, user_use, policy),
    ):
        why, binding = _decide(job, tree, purses, own, policy, partitions)
        out.why[job.id] = why
        if binding:
            out.binding[job.id] = binding
        if why in ("fits", "fast"):
            account = tree.resolve(job.account) or job.account
            out.reserved[account] = out.reserved.get(account, 0) + live.cost(job, policy)
        retag = _retag(job, tree, why, policy)
        if retag is not None and live.open_partitions(job, retag.qos, partitions):
            out.retags.append(retag)
    out.accounts.update({name: _facts(purse) for name, purse in purses.items()})
    out.users.update({key: _facts(purse) for key, purse in own.items()})
    return out


def _purse(gres: str, standing: Standing, policy: SweepPolicy) -> _Purse:
    budget = standing.budget or 0
    left = budget - standing.charge - standing.reserved
    return _Purse(budget, gres, left, int(budget * Fraction(policy.fast_lane).limit_denominator()))


def _facts(purse: _Purse) -> Facts:
    return Facts(purse.budget, purse.left - purse.saving, purse.left + purse.lane)


def _places(accounts: Mapping[str, Standing]) -> dict[str, int]:
    """The place of each account by standing, the least first; equal ones share it. An account of
    unknown or infinite standing has none. Comparing fractions for each job would cost seconds."""
    standings = {name: account.standing for name, account in accounts.items()}
    known = {name: at for name, at in standings.items() if at is not None and at != inf}
    order = {standing: place for place, standing in enumerate(sorted(set(known.values())))}
    return {name: order[standing] for name, standing in known.items()}


def _order(
    job: Job,
    tree: BudgetTree,
    places: Mapping[str, int],
    user_use: Mapping[tuple[str, str], int],
    policy: SweepPolicy,
) -> tuple[bool, bool, bool, float, str, int, int, int]:
    account = tree.resolve(job.account) or job.account
    funded = live.class_of(job) == "funded"
    return (
        job.reason in HOLDS and not held_for_budget(job),
        not funded,
        funded and live.small(job, policy),
        places.get(account, inf),
        account,
        user_use.get((account, job.user), 0),
        job.submit,
        job.id,
    )


def held_for_budget(job: Job) -> bool:
    """Whether the hook holds the job until a budget has enough left (on_exhausted = wait), and
    nobody else does.

    The hook's hold is JobHeldUser to Slurm. An administrator's on top of it is JobHeldAdmin; one of
    the user's own would not be told from it, so the hook refuses that. Who held a job that was
    requeued was not the hook.
    """
    mark = parse(job.admin_comment)
    waits = mark is not None and mark.why == BUDGET_HOLD
    return waits and job.priority == 0 and job.reason != "JobHeldAdmin" and not job.restarts


def _decide(
    job: Job,
    tree: BudgetTree,
    purses: dict[str, _Purse],
    own: dict[tuple[str, str], _Purse],
    policy: SweepPolicy,
    partitions: Mapping[str, Partition],
) -> tuple[str, str]:
    """(word of why, whose budget binds). Takes the cost from every purse above when it fits."""
    account = tree.resolve(job.account)
    if account is None or account not in purses:
        return "account", job.account
    if not live.open_partitions(job, live.funded_qos(account), partitions):
        return "partition", ""
    if not (job.requeue and job.batch) and (
        job.time_limit is None or job.time_limit > live.min_runtime(job, policy)
    ):
        return "requeue", ""
    chain = [(n.name, purses[n.name]) for n in tree.ancestors(account) if n.name in purses]
    if (account, job.user) in own:
        chain.insert(0, (f"{job.user} in {account}", own[account, job.user]))
    costs = [(name, purse, live.cost(job, policy, purse.gres)) for name, purse in chain]
    if costs[-1][2] == 0 or not any(cost for _, _, cost in costs):
        return "type", account
    small = live.small(job, policy)
    for name, purse, cost in costs:
        if cost > purse.budget + (purse.lane if small else 0):
            return "never", name
    for name, purse, cost in costs:
        if not purse.fits(cost, small):
            if not small and not purse.saving and job.reason not in HOLDS:
                purse.saving = min(cost, max(purse.left, 0))
                purse.saving = purse.saving or 1
            return "budget", name
    lane = False
    for _, purse, cost in costs:
        lane = lane or cost > purse.left - purse.saving
        purse.left -= cost
    return ("fast" if lane else "fits"), ""


def _retag(job: Job, tree: BudgetTree, why: str, policy: SweepPolicy) -> Retag | None:
    funded = why in ("fits", "fast")
    account = tree.resolve(job.account)
    qos = live.funded_qos(account) if funded and account else policy.preemptible_qos
    mark = parse(job.admin_comment)
    news = why in WORTH_SAYING and (mark is None or mark.why != why)
    # its user let it go: from now on a hold is theirs
    released = mark is not None and mark.why == BUDGET_HOLD and job.priority > 0
    if job.qos == qos and not news and not released:
        return None
    class_ = live.class_of_qos(qos)
    mark = Marker(class_, "funded", live.min_runtime(job, policy), why, job.requeue)
    return Retag(job, class_, qos, merge(job.admin_comment, mark), why)
