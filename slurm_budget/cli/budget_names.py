"""What a person means by the names, numbers and moments of `sbudget budget`."""

from collections.abc import Iterable

from slurm_budget.cli.context import Context
from slurm_budget.errors import BadInput
from slurm_budget.ledger.budgets import Changeset
from slurm_budget.state.budget import BudgetTree
from slurm_budget.text import moments
from slurm_budget.text.nearest import meant
from slurm_budget.usecases import known


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
