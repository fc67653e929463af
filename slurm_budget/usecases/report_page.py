"""Everything that the page for managers shows, from the same rows as the reports in text."""

from collections.abc import Sequence
from dataclasses import dataclass

from slurm_budget.core import report_delivered as rows
from slurm_budget.core import series
from slurm_budget.core.budget import account_budgets
from slurm_budget.core.report import BudgetRow
from slurm_budget.core.report_delivered import DeliveredRow
from slurm_budget.core.report_requeues import RequeueRow
from slurm_budget.core.report_summary import Measure
from slurm_budget.core.report_waits import WaitRow
from slurm_budget.errors import BadInput
from slurm_budget.usecases import report
from slurm_budget.usecases import report_delivered as share
from slurm_budget.usecases.accounting import window_of
from slurm_budget.usecases.report import Scope


@dataclass(frozen=True, slots=True)
class Page:
    """[start, end) of a cluster. `unknown` says why `delivered` and `measures` are empty; `as_of`
    is when the last sweep looked (None: none has)."""

    cluster: str
    start: int
    end: int
    budgets: Sequence[BudgetRow]
    delivered: Sequence[DeliveredRow]
    measures: Sequence[Measure]
    pieces: Sequence[series.Piece]
    waits: Sequence[WaitRow]
    requeues: Sequence[RequeueRow]
    unknown: str = ""
    as_of: int | None = None


def page(scope: Scope) -> Page:
    """The page of the whole cluster; where no sweep looked it says so, and shows what ran."""
    query = scope.query
    waited, stopped = report.waits(scope), report.requeues(scope)
    unknown, found = "", None
    try:
        found = share.find(scope)
    except BadInput as bad:
        unknown = bad.what
    return Page(
        query.cluster,
        query.start,
        query.end,
        report.budgets(scope),
        found.rows if found else [],
        share.short(scope, found, waited, stopped) if found else [],
        pieces(scope),
        waited,
        stopped,
        unknown,
        scope.swept,
    )


def pieces(scope: Scope) -> list[series.Piece]:
    """Use over time, with the budgets in force as each piece begins."""
    query, ledger = scope.query, scope.ledger
    stretches, levels = share.looked(scope)
    with ledger.period(query.cluster, query.start, query.end) as period:
        changes = rows.changes(levels, period.spans(), scope.weights, str)
        seen = stretches if levels else []
        out = series.series(series.marks(query.start, query.end), seen, changes)
    window = window_of(scope.settings).budget_seconds
    changed = {change.at for change in ledger.log(query.cluster)}
    last, tree = query.start, ledger.budget_tree(query.cluster, query.start)
    for piece in out:
        if any(last < at <= piece.start for at in changed):
            tree = ledger.budget_tree(query.cluster, piece.start)
        last = piece.start
        per_window = series.promised(tree, account_budgets(tree, window, piece.start))
        if per_window is not None:
            piece.budget = per_window * (piece.end - piece.start) // window
    return out
