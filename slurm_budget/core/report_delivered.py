"""From what the ledger has seen to the delivered share of each account, and the month in a dozen
lines. The division itself is in core.delivered.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from slurm_budget.core.delivered import Delivered, Share
from slurm_budget.core.division import CLUSTER, Change
from slurm_budget.core.report import walk
from slurm_budget.core.weights import ONE_GPU, rate
from slurm_budget.state.budget import BudgetTree
from slurm_budget.state.report import Level, Span

GOOD = 0.95
"""A team that was delivered this much of what it deserved got what it was promised."""


@dataclass(frozen=True, slots=True)
class DeliveredRow:
    """An account with all below it; GPU-milliseconds, `budget` of the whole period."""

    account: str
    depth: int
    budget: int | None
    deserved: int
    got: int

    @property
    def delivered(self) -> float | None:
        """got / deserved; None where nothing was deserved."""
        return self.got / self.deserved if self.deserved else None


def looked(times: Sequence[int], start: int, end: int, longest: int) -> list[tuple[int, int]]:
    """The stretches of [start, end) in which what sweeps saw can be believed: from each of them to
    the next, `longest` seconds at most."""
    out: list[tuple[int, int]] = []
    for at, following in pairwise([*times, end]):
        since, until = max(at, start), min(following, at + longest, end)
        if out and since <= out[-1][1]:
            out[-1] = (out[-1][0], max(until, out[-1][1]))
        elif since < until:
            out.append((since, until))
    return out


def cut(stretches: Iterable[tuple[int, int]], edges: Iterable[int]) -> list[tuple[int, int]]:
    """The same stretches, cut where budgets change."""
    marks = sorted(set(edges))
    return [
        pair
        for since, until in stretches
        for pair in pairwise([since, *(at for at in marks if since < at < until), until])
    ]


def changes(
    levels: Iterable[Level],
    spans: Iterable[Span],
    weights: Mapping[str, int],
    canonical: Callable[[str], str],
) -> Iterator[Change]:
    """Everything that changes demand and capacity; `canonical` gives an account's name of today."""
    held: dict[tuple[str | None, str], int] = {}
    for level in levels:
        key = (level.account, level.kind)
        more = level.gpus - held.get(key, 0)
        if more:
            held[key] = level.gpus
            account = CLUSTER if level.account is None else canonical(level.account)
            yield Change(level.at, account, 0, more * weights.get(level.kind, ONE_GPU))
    names: dict[str, str] = {}
    for span in spans:
        amount = rate(span.gpus, weights)
        name: str | None = None
        if span.funded:
            name = names.get(span.account)
            if name is None:
                name = names[span.account] = canonical(span.account)
        yield Change(span.since, name, amount, 0)
        yield Change(span.until, name, -amount, 0)


def delivered_rows(
    tree: BudgetTree, budgets: Mapping[str, int | None], found: Delivered
) -> list[DeliveredRow]:
    """Every account of the tree, then those that had a budget earlier and have gone."""
    totals: dict[str, Share] = {}
    for name, share in found.own.items():
        above = [node.name for node in tree.ancestors(name)] if name in tree.nodes else [name]
        for account in above:
            total = totals.setdefault(account, Share())
            total.got += share.got
            total.deserved += share.deserved
    gone = sorted(totals.keys() - tree.nodes.keys())
    out = []
    for name, depth in [*walk(tree), *((name, 0) for name in gone)]:
        share = totals.get(name, Share())
        row = DeliveredRow(name, depth, budgets.get(name), round(share.deserved), share.got)
        out.append(row)
    return out


def teams(tree: BudgetTree, rows: Iterable[DeliveredRow]) -> list[DeliveredRow]:
    """The accounts at the bottom that deserved something, the worst first."""
    above = {node.parent for node in tree.nodes.values()}
    found = [row for row in rows if row.account not in above and row.delivered is not None]
    return sorted(found, key=lambda row: (row.delivered or 0, row.account))
