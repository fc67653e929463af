"""Reports from the ledger. Slurm is not asked, so they are quick and work when it is down."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from slurm_budget.core import report as rows
from slurm_budget.core.budget import account_budgets, user_budgets
from slurm_budget.core.report_requeues import RequeueRow, requeue_rows
from slurm_budget.core.report_waits import WaitRow, wait_rows
from slurm_budget.core.weights import rate
from slurm_budget.errors import BadInput
from slurm_budget.ledger.store import Ledger
from slurm_budget.settings import Settings
from slurm_budget.state.budget import BudgetTree
from slurm_budget.usecases.accounting import usage_factor_of, weights_of, window_of

INTENT_BEFORE = 86400
"""An intent is made at most so many seconds before its run ends."""


@dataclass(frozen=True, slots=True)
class Query:
    """What is asked for: [start, end) in epoch seconds, `end` not after now. `windowed`: `start`
    was not given, and the period is the window of the settings. No `accounts`, no `users`: all."""

    cluster: str
    start: int
    end: int
    windowed: bool = False
    accounts: tuple[str, ...] = ()
    users: tuple[str, ...] = ()


@dataclass(frozen=True)
class Scope:
    """A question with what it is put to."""

    ledger: Ledger
    settings: Settings
    query: Query

    @cached_property
    def tree(self) -> BudgetTree:
        """The budgets in force when the period ends."""
        return self.ledger.budget_tree(self.query.cluster, self.query.end)

    @cached_property
    def weights(self) -> dict[str, int]:
        """GPU weights in thousandths."""
        return weights_of(self.settings)

    @cached_property
    def swept(self) -> int | None:
        """When the last sweep looked, which brings what has run; None: none has."""
        return self.ledger.newest_sweep(self.query.cluster)[0]

    @cached_property
    def _wanted(self) -> frozenset[str] | None:
        if not self.query.accounts:
            return None
        out: set[str] = set()
        for given in self.query.accounts:
            name = self.tree.resolve(given)
            out |= {given.lower()} if name is None else {n.name for n in self.tree.subtree(name)}
        return frozenset(out)

    def wants(self, account: str, user: str | None = None) -> bool:
        """Whether rows of this account (it or one above it was named) and user were asked for."""
        if self._wanted is not None and self.today(account) not in self._wanted:
            return False
        return user is None or not self.query.users or user in self.query.users

    def today(self, account: str) -> str:
        """The name that an account has when the period ends."""
        return self.tree.resolve(account) or account

    def of_period(self, per_window: int) -> int:
        """GPU-milliseconds per window, for the length of this period."""
        query, window = self.query, window_of(self.settings)
        if query.windowed:
            return per_window
        return per_window * (query.end - query.start) // window.budget_seconds

    def account_budgets(self) -> dict[str, int | None]:
        """GPU-milliseconds of the period by account."""
        window = window_of(self.settings).budget_seconds
        found = account_budgets(self.tree, window, self.query.end)
        return {k: None if ms is None else self.of_period(ms) for k, ms in found.items()}

    def sums(self) -> rows.ThreeSums:
        """Charge and use: those of the window, which are kept up, or of another period."""
        query, factor = self.query, usage_factor_of(self.settings)
        whole = self.settings.window.charge == "run"
        if not query.windowed:
            with self.ledger.period(query.cluster, query.start, query.end) as period:
                return rows.sums_of(period.used(), self.weights, factor, whole_run=whole)
        window = window_of(self.settings)
        return rows.ThreeSums(
            *(
                self.ledger.sums(
                    query.cluster, window, query.end, self.weights, each, whole_run=whole
                )
                for each in (factor, 0, 1000)
            )
        )

    def capacity(self, weights: Mapping[str, int]) -> int:
        """GPU-milliseconds that there were, as far as sweeps have looked; 0 where none has."""
        query, total, at, gpus = self.query, 0, self.query.start, 0
        by_type: dict[str, int] = {}
        for level in self.ledger.levels(query.cluster, query.start, query.end):
            if level.account is None:
                since = max(level.at, query.start)
                total, at = total + gpus * (since - at), since
                by_type[level.kind] = level.gpus
                gpus = rate(by_type, weights)
        return total + gpus * (query.end - at)


def budgets(scope: Scope) -> list[rows.BudgetRow]:
    """Budget, use and charge of every account."""
    found = rows.budget_rows(scope.tree, scope.account_budgets(), scope.sums())
    return [row for row in found if scope.wants(row.account)]


def users(scope: Scope) -> list[rows.BudgetRow]:
    """The same of every user in an account."""
    window = window_of(scope.settings).budget_seconds
    accounts = account_budgets(scope.tree, window, scope.query.end)
    own = user_budgets(scope.tree, accounts, window, scope.query.end)
    given = {key: scope.of_period(ms) for key, ms in own.items()}
    found = rows.user_rows(scope.tree, given, scope.sums())
    return [row for row in found if scope.wants(row.account, row.user)]


def usage(scope: Scope) -> list[rows.UsageRow]:
    """GPU-time by account and user, as sreport counts it."""
    query = scope.query
    with scope.ledger.period(query.cluster, query.start, query.end) as period:
        used = [one for one in period.used() if not query.users or one.user in query.users]
    found = rows.usage_rows(query.cluster, scope.tree, used)
    return [row for row in found if scope.wants(row.account)]


def waits(scope: Scope) -> list[WaitRow]:
    """How long the runs that started in the period had waited."""
    query = scope.query
    with scope.ledger.period(query.cluster, query.start, query.end) as period:
        starts = (one for one in period.starts() if scope.wants(one.account))
        return wait_rows(starts, scope.weights, scope.settings.sweep.fast_lane_gpu_time)


def requeues(scope: Scope) -> list[RequeueRow]:
    """Runs that were stopped from outside in the period."""
    query = scope.query
    with scope.ledger.period(query.cluster, query.start, query.end) as period:
        runs = [run for run in period.interrupted() if scope.wants(run.account, run.user)]
    intents = scope.ledger.intents_since(query.cluster, query.start - INTENT_BEFORE)
    return requeue_rows(runs, intents, scope.weights)


def need_capacity(scope: Scope, *, weighted: bool) -> int:
    """What per cent are of, or a refusal: unknown is never zero."""
    found = scope.capacity(scope.weights if weighted else {})
    if not found:
        raise BadInput(
            "per cent of what? No sweep has looked at the nodes in this period",
            mend="use -t hours, or a period in which sweeps ran",
        )
    return found
