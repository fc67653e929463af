"""What a person means by the names, numbers and moments of `sbudget budget`."""

from collections.abc import Iterable

from slurm_budget import machine
from slurm_budget.cli.context import Context
from slurm_budget.errors import BadInput, SbudgetError
from slurm_budget.ledger.budgets import Changeset
from slurm_budget.slurm import people
from slurm_budget.state.budget import BudgetTree
from slurm_budget.text import moments
from slurm_budget.text.nearest import meant
from slurm_budget.usecases import known

SOON = 5.0
"""Seconds that Slurm has to answer a question on which nothing depends."""


def cluster(context: Context, /, typed: str | None) -> str:
    """The cluster whose budgets are looked at: the ledger must know one that was typed."""
    if typed is None:
        return context.cluster
    return known.cluster(context.ledger(), typed, context.cluster_named)


def changeset(context: Context, /, cluster_: str, typed: str | None) -> int | None:
    """The changeset that is meant by a number or by a moment; None: the last."""
    if typed is None:
        return None
    if not typed.isdecimal():
        return context.ledger().changeset_at(cluster_, moments.moment(typed, context.now))
    if int(typed) > context.ledger().budgets(cluster_)[1]:
        raise BadInput(f"there is no changeset {typed}", mend="see `sbudget budget log`")
    return int(typed)


def once(tree: BudgetTree, log: Iterable[Changeset], account: str) -> str:
    """The account that is meant, of now or of former times."""
    every = {change.account for one in log for change in one.changes}
    name = tree.resolve(account) or account.lower()
    if name not in every:
        raise BadInput(
            f"cluster {tree.cluster} has never had a budget for account {account!r}",
            mend=meant(account, every, "see `sbudget budget tree`"),
        )
    return name


def strangers(context: Context, /, names: Iterable[str]) -> list[str]:
    """Those who are neither users of this machine nor, where slurmdbd answers soon, of Slurm."""
    unknown = [name for name in dict.fromkeys(names) if machine.account(name) is None]
    if not unknown:
        return []
    commands = context.commands
    commands.timeout = min(SOON, commands.timeout)
    try:
        slurms = people.accounts_of(commands, context.cluster_named)
    except SbudgetError:
        return []
    return [name for name in unknown if name not in slurms]
