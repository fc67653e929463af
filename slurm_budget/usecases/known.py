"""Names that a person types, against all that the ledger has ever seen. What had nothing in the
period is known and gives an empty table; a mistyped name gives an error."""

from slurm_budget import machine
from slurm_budget.errors import BadInput
from slurm_budget.ledger.store import Ledger
from slurm_budget.text.nearest import listed, meant
from slurm_budget.usecases.report import Scope


def cluster(ledger: Ledger, typed: str, mine: str) -> str:
    """The cluster that was typed, in any case; `mine` is the configured one, empty where no file
    names it. BadInput for one of which the ledger has nothing."""
    for name in (typed, typed.lower()):
        if name == mine:
            return name
    known = ledger.known_clusters()
    for name in (typed, typed.lower()):
        if name in known:
            return name
    known |= {mine} if mine else set()
    raise BadInput(
        f"the ledger has nothing of a cluster {typed!r}",
        mend=meant(typed, known, f"it has: {listed(known)}"),
    )


def check(scope: Scope) -> None:
    """Raises BadInput for an account or a user of the question that nobody has ever heard of."""
    query, ledger = scope.query, scope.ledger
    strange = [name for name in query.accounts if scope.tree.resolve(name) is None]
    known = ledger.known_accounts(query.cluster) if strange else set()
    for name in strange:
        if name.lower() not in known:
            near = meant(name, known, "see `sbudget budget tree`")
            raise _nobody("account", name, query.cluster, near)
    strange = [name for name in query.users if machine.account(name) is None]
    known = ledger.known_users(query.cluster) if strange else set()
    for name in strange:
        if name not in known:
            near = meant(name, known, "see `sbudget report users`")
            raise _nobody("user", name, query.cluster, near)


def _nobody(what: str, name: str, cluster_: str, mend: str) -> BadInput:
    return BadInput(
        f"cluster {cluster_} has never had a budget or run of {what} {name!r}", mend=mend
    )
