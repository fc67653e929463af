"""The delivered share, from what runs and sweeps left in the ledger."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from slurm_budget.core import report_delivered as rows
from slurm_budget.core.budget import account_budgets
from slurm_budget.core.delivered import Delivered, Period, delivered, weights
from slurm_budget.core.division import Weights
from slurm_budget.core.report_requeues import RequeueRow
from slurm_budget.core.report_summary import Measure, summary
from slurm_budget.core.report_waits import WaitRow
from slurm_budget.errors import BadInput
from slurm_budget.state.budget import BudgetTree
from slurm_budget.state.report import Level
from slurm_budget.usecases.accounting import window_of
from slurm_budget.usecases.report import Scope, requeues, waits


@dataclass(frozen=True, slots=True)
class Found:
    """The division of the whole cluster, and its rows by account."""

    delivered: Delivered
    rows: list[rows.DeliveredRow]


def by_account(scope: Scope) -> list[rows.DeliveredRow]:
    """What each account got and deserved."""
    return [row for row in find(scope).rows if scope.wants(row.account)]


def in_short(scope: Scope) -> list[Measure]:
    """The period in a dozen lines."""
    if scope.query.accounts:
        raise BadInput("the summary is of the whole cluster", mend="leave out accounts=")
    return short(scope, find(scope), waits(scope), requeues(scope))


def short(
    scope: Scope, found: Found, waited: Iterable[WaitRow], stopped: Sequence[RequeueRow]
) -> list[Measure]:
    """The same from what was found already."""
    teams = rows.teams(scope.tree, found.rows)
    period = scope.query.end - scope.query.start
    return summary(found.delivered, period, teams, waited, stopped)


def looked(scope: Scope) -> tuple[list[tuple[int, int]], list[Level]]:
    """The stretches in which sweeps looked, and what they saw."""
    ledger, query = scope.ledger, scope.query
    times = ledger.sweep_times(query.cluster, query.start, query.end)
    stretches = rows.looked(times, query.start, query.end, scope.settings.snapshot.max_age)
    return stretches, ledger.levels(query.cluster, query.start, query.end)


def find(scope: Scope) -> Found:
    """What was delivered. Raises BadInput where no sweep looked: unknown is never zero."""
    ledger, query = scope.ledger, scope.query
    stretches, levels = looked(scope)
    if not stretches or not levels:
        raise BadInput(
            "no sweep has looked in this period, so what was waiting is not known",
            mend="ask for a period in which sweeps ran; `sbudget report usage` needs none",
        )
    periods = _periods(scope, stretches)
    with ledger.period(query.cluster, query.start, query.end) as period:
        changes = rows.changes(levels, period.spans(), scope.weights, scope.today)
        found = delivered(periods, changes)
    return Found(found, rows.delivered_rows(scope.tree, scope.account_budgets(), found))


def _periods(scope: Scope, stretches: list[tuple[int, int]]) -> list[Period]:
    """The stretches with the budgets in force in each."""
    cluster = scope.query.cluster
    edges = [change.at for change in scope.ledger.log(cluster)]
    pieces = rows.cut(stretches, edges)
    trees = {since: scope.ledger.budget_tree(cluster, since) for since, _ in pieces}
    ends = [
        at
        for tree in trees.values()
        for node in tree.nodes.values()
        for at in (node.valid_from, node.valid_until)
        if at is not None
    ]
    out = []
    tree = scope.tree
    for since, until in rows.cut(pieces, ends):
        tree = trees.get(since, tree)
        out.append(Period(since, until, _weights(scope, tree, since)))
    return out


def _weights(scope: Scope, tree: BudgetTree, at: int) -> dict[str, Weights]:
    """By the names of today, so that a renamed account is one."""
    window = window_of(scope.settings).budget_seconds
    found = weights(tree, account_budgets(tree, window, at))
    return {
        scope.today(name): one._replace(parent=one.parent and scope.today(one.parent))
        for name, one in found.items()
    }
