"""Gathers what `sbudget fit` decides by."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from slurm_budget.core import admission, fit, owed, request
from slurm_budget.core import fit_ground as ground
from slurm_budget.core.fit import Fit, MayYield, Shape
from slurm_budget.errors import BadInput
from slurm_budget.settings import Settings
from slurm_budget.state.choose import Choice
from slurm_budget.state.snapshot import Snapshot
from slurm_budget.text.nearest import listed, meant
from slurm_budget.usecases.look import OpenLedger, Sight, look
from slurm_budget.usecases.policy import sweep_policy

if TYPE_CHECKING:
    from slurm_budget.slurm.port import CommandSlurm

T = TypeVar("T")


def would_fit(
    slurm: "CommandSlurm",
    open_ledger: OpenLedger,
    settings: Settings,
    shape: Shape,
    now: int,
    *,
    user: str,
    named: bool,
    account: str | None,
    partition: str | None,
    gpu_type: str,
    limit: int | None,
    preemptible: bool,
) -> tuple[Fit, list[str]]:
    """The verdict and the place, and what could not be read. `named`: the user is not who asks.

    Raises SbudgetError where the snapshot or the nodes cannot be read: nothing can be said without
    them. BadInput for names that are not there, and for sizes that can never start."""
    sight = look(slurm, open_ledger, settings, now, deeply=True)
    if sight.facts is None:
        raise sight.failed["snapshot"]
    if sight.jobs is None or sight.nodes is None:
        raise sight.failed["slurm"]
    facts, jobs, nodes = sight.facts, sight.jobs, sight.nodes
    asker = _Asker(slurm, sight, facts, user, named=named)
    account = asker.account(account) if account else asker.default_account()
    part = partition or slurm.default_partition()
    ground.check(shape, nodes, part, gpu_type)
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
        fit.cut(shape, verdict),
        fit.where(answer, funded, yielding, policy),
        fit.ahead(jobs, parts),
    ]
    starts = answer if isinstance(answer, Choice) else None
    found = Fit(
        "rejected" if verdict.reject else verdict.class_ or "unchanged",
        verdict.why,
        tuple(filter(None, sentences)),
        starts.nodes if starts else None,
        tuple(run.job_id for run in starts.victims) if starts else (),
        facts.observed_at,
    )
    return found, sight.unread


@dataclass(frozen=True, slots=True)
class _Asker:
    """The user of the job, and the accounts that Slurm and the budgets know. Where slurmdbd does
    not answer, no name is called wrong."""

    slurm: "CommandSlurm"
    sight: Sight
    facts: Snapshot
    user: str
    named: bool

    def default_account(self) -> str:
        cluster = self.facts.cluster
        accounts = self.slurm.accounts_of(cluster, self.user)
        if not accounts:
            raise BadInput(
                f"{self.user} has no account on {cluster}", mend="name one with -A ACCOUNT"
            )
        return accounts[0]

    def account(self, typed: str) -> str:
        """The account that was typed, as Slurm spells it. BadInput where Slurm shows none, or with
        `named` where the user is not in it."""
        name, cluster = typed.lower(), self.facts.cluster
        mine = {*self.facts.accounts, *self.facts.aliases}
        if name not in mine:
            known = self._ask(lambda: self.slurm.accounts(cluster))
            if known is not None and name not in known:
                raise BadInput(
                    f"Slurm shows no account {typed!r} on cluster {cluster}",
                    mend=meant(name, mine | set(known), f"with a budget: {listed(mine)}"),
                )
        own = self._ask(lambda: self.slurm.accounts_of(cluster, self.user)) if self.named else None
        if own is not None and self._now(name) not in map(self._now, own):
            raise BadInput(
                f"{self.user} is not in account {name} on cluster {cluster}",
                mend=f"their accounts: {listed(own)}" if own else "Slurm shows no such user there",
            )
        return name

    def _now(self, name: str) -> str:
        return self.facts.aliases.get(name, name)

    def _ask(self, read: Callable[[], T]) -> T | None:
        return self.sight.attempt("accounts", read)


def _yielding(sight: Sight, settings: Settings) -> MayYield | None:
    world = sight.world
    if world is None:
        return None
    return owed.may_yield(world.tree, world.accounts, world.user_use, sweep_policy(settings))
