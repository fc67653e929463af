"""Gathers what `sbudget fit` decides by."""

from typing import TYPE_CHECKING

from slurm_budget.core import admission, fit, owed, request
from slurm_budget.core.fit import Fit, MayYield, Shape
from slurm_budget.errors import BadInput
from slurm_budget.settings import Settings
from slurm_budget.state.choose import Choice
from slurm_budget.usecases.look import OpenLedger, Sight, look
from slurm_budget.usecases.policy import sweep_policy

if TYPE_CHECKING:
    from slurm_budget.slurm.port import CommandSlurm


def would_fit(
    slurm: "CommandSlurm",
    open_ledger: OpenLedger,
    settings: Settings,
    shape: Shape,
    now: int,
    *,
    user: str,
    account: str | None,
    partition: str | None,
    gpu_type: str,
    limit: int | None,
    preemptible: bool,
) -> tuple[Fit, list[str]]:
    """The verdict and the place, and what could not be read. Raises SbudgetError where the snapshot
    or the nodes cannot be read: nothing can be said without them."""
    sight = look(slurm, open_ledger, settings, now, deeply=True)
    if sight.facts is None:
        raise sight.failed["snapshot"]
    if sight.jobs is None or sight.nodes is None:
        raise sight.failed["slurm"]
    facts, jobs, nodes = sight.facts, sight.jobs, sight.nodes
    account = account or _default_account(slurm, facts.cluster, user)
    part = partition or slurm.default_partition()
    parts = (
        frozenset(part.split(",")) if part else frozenset(p for n in nodes for p in n.partitions)
    )
    desc = fit.job_desc(
        shape, user, account, part, gpu_type, max(limit or 0, shape.seconds),
        "preemptible" if preemptible else "funded",
    )  # fmt: skip
    told = facts._replace(policy=facts.policy._replace(messages=True))
    verdict = admission.decide(request.read(desc), told, now)
    funded = verdict.class_ == "funded"
    policy = sweep_policy(settings)
    largest = max((node.gpu_total for node in nodes if parts & set(node.partitions)), default=0)
    wanted = fit.demand(shape, user, account, parts, gpu_type, largest)
    yielding = _yielding(sight, settings)
    answer = fit.place(wanted, jobs, nodes, policy, now, funded=funded, yielding=yielding)
    sentences = [
        *fit.said(verdict.messages),
        fit.where(answer, funded, yielding, policy),
        *filter(None, [fit.ahead(jobs, parts)]),
    ]
    starts = answer if isinstance(answer, Choice) else None
    found = Fit(
        "rejected" if verdict.reject else verdict.class_ or "unchanged",
        verdict.why,
        tuple(sentences),
        starts.nodes if starts else None,
        tuple(run.job_id for run in starts.victims) if starts else (),
    )
    return found, sight.unread


def _default_account(slurm: "CommandSlurm", cluster: str, user: str) -> str:
    accounts = slurm.accounts_of(cluster, user)
    if not accounts:
        raise BadInput(f"{user} has no account on {cluster}", mend="name one with -A ACCOUNT")
    return accounts[0]


def _yielding(sight: Sight, settings: Settings) -> MayYield | None:
    world = sight.world
    if world is None:
        return None
    return owed.may_yield(world.tree, world.accounts, world.user_use, sweep_policy(settings))
