"""Gathers what `sbudget balance` shows: the snapshot for what is left, the queue for what runs, and
the ledger, where it can be read, for what is charged and comes back."""

from typing import TYPE_CHECKING

from slurm_budget.core import balance as rules
from slurm_budget.core.balance import Balance, Returns
from slurm_budget.errors import BadInput
from slurm_budget.settings import Settings
from slurm_budget.state.snapshot import Snapshot
from slurm_budget.text.nearest import listed, meant
from slurm_budget.usecases.look import OpenLedger, Sight, look
from slurm_budget.usecases.policy import sweep_policy

if TYPE_CHECKING:
    from slurm_budget.ledger.store import Ledger
    from slurm_budget.slurm.port import CommandSlurm

SOON = (3600, 86400)
"""Seconds within which is said how much comes back, before the whole window."""


def balances(
    slurm: "CommandSlurm",
    open_ledger: OpenLedger,
    settings: Settings,
    account: str | None,
    user: str,
    now: int,
) -> tuple[list[Balance], list[str]]:
    """One for the account that was named, or for each of the user's own; and what was not read.

    Raises SbudgetError where there is no snapshot that can be used: what is left is decided there,
    by the sweep. BadInput for an account that has no budget line.
    """
    sight = look(slurm, open_ledger, settings, now, deeply=False, nodes=False)
    if sight.facts is None:
        raise sight.failed["snapshot"]
    facts = sight.facts
    names = [_named(account, facts)] if account else _own(slurm, facts, user)
    ledger = sight.ledger
    known = None
    if ledger is not None:
        known = sight.attempt(
            "ledger",
            # of the same moment as what is left, or they would not add up
            lambda: _from_ledger(ledger, facts.cluster, names, settings, facts.observed_at),
        )
    policy = sweep_policy(settings)
    found = []
    for name in names:
        charged, back = (known or {}).get(name, (None, None))
        found.append(rules.balance(name, user, facts, sight.jobs, policy, now, charged, back))
    return found, _unread(sight, now, facts, settings)


def _named(account: str, facts: Snapshot) -> str:
    name = account.lower()
    name = facts.aliases.get(name, name)
    if name not in facts.accounts:
        raise BadInput(
            f"account {account!r} is not among the budgets",
            mend=meant(account, facts.accounts, f"there are: {listed(facts.accounts)}"),
        )
    return name


def _own(slurm: "CommandSlurm", facts: Snapshot, user: str) -> list[str]:
    has = [facts.aliases.get(a, a) for a in slurm.accounts_of(facts.cluster, user)]
    names = list(dict.fromkeys(name for name in has if name in facts.accounts))
    if not names:
        tops = [a.name for a in facts.accounts.values() if a.parent is None]
        raise BadInput(
            f"{user} is in no account of the budgets of cluster {facts.cluster}",
            mend=f"name one: sbudget balance {tops[0] if tops else 'ACCOUNT'}",
        )
    return names


def _from_ledger(
    ledger: "Ledger", cluster: str, names: list[str], settings: Settings, now: int
) -> dict[str, tuple[int, Returns]]:
    """(charge, what comes back) by account, as of `now`."""
    from slurm_budget.core.back import decaying, leaving
    from slurm_budget.core.budget import account_budgets
    from slurm_budget.core.standing import standings
    from slurm_budget.usecases.accounting import sums_now, window_of
    from slurm_budget.usecases.across import charged
    from slurm_budget.usecases.charged import charged_parts

    window = window_of(settings)
    tree = ledger.budget_tree(cluster, now)
    budgets = account_budgets(tree, window.budget_seconds, now)
    found = standings(tree, budgets, sums_now(ledger, cluster, settings, now), {})
    found = charged(found, tree, ledger, settings, now)
    charge = {name: found[name].charge for name in names if name in found}
    if window.kind == "decay":
        return {
            name: (
                ms,
                tuple((s, decaying(ms, window.half_life, s)) for s in (*SOON, window.half_life)),
            )
            for name, ms in charge.items()
        }
    spans = (*(s for s in SOON if s < window.length), window.length)
    out = {}
    for name, parts in charged_parts(tree, charge, ledger, settings, now).items():
        so_far = [(start, min(end, now), rate) for start, end, rate in parts]
        out[name] = (
            charge[name], tuple((s, leaving(so_far, window.length, now, s)) for s in spans)
        )  # fmt: skip
    return out


def _unread(sight: Sight, now: int, facts: Snapshot, settings: Settings) -> list[str]:
    out = sight.unread
    age = now - facts.observed_at
    if age > settings.snapshot.max_age:
        out.append(f"nothing newer than {age} s: no sweep has published a snapshot since")
    return out
