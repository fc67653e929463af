"""Delivered share: of the GPU-time that an account was owed, how much did it get?

    delivered = GPU-hours got / GPU-hours deserved

*Got* is what its funded runs held. *Deserved* is worked out moment by moment: the GPUs that can be
used are divided down the budget tree, by budget, among the accounts that have something to do. Its
*demand*, what its funded runs hold and its funded jobs wait for, is the most that an account
deserves; what it does not want goes to its siblings, again by budget (weighted max-min). Its share
of 20 GPUs, at one moment:

    account    budget  demand   deserved
    programme      15      22         15   20 GPUs for 15 : 5, and both want more than their part
      vision       10      18         11   15 GPUs for 10 : 5; speech wants 1 less, vision has it
      speech        5       4          4
    lab             5       6          5

Over time shares are added up: had vision held 9 GPUs for the hour in which it deserved 11, it would
have been delivered 82%. More than 100% is idle GPUs of others, or a run that keeps what it was
given while others wait out its protection.

An account without a budget deserves nothing. What an account keeps beside its children (its budget
less theirs) is owed to its own jobs. GPUs on drained nodes are nobody's.

Rates are weighted thousandths of a GPU, times epoch seconds, results GPU-milliseconds.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from slurm_budget.core.division import CLUSTER, Change, Division, Weights
from slurm_budget.state.budget import BudgetTree


@dataclass(frozen=True, slots=True)
class Period:
    """[start, end) with the budgets in force in it."""

    start: int
    end: int
    weights: Mapping[str, Weights]


@dataclass(slots=True)
class Share:
    """GPU-milliseconds; `ratio` None where nothing was deserved."""

    got: int = 0
    deserved: float = 0.0

    @property
    def ratio(self) -> float | None:
        return self.got / self.deserved if self.deserved > 0 else None


@dataclass(slots=True)
class Delivered:
    """GPU-milliseconds in `seconds` seconds: `own` of each account's own jobs (without those below
    it), `capacity` what there was, `busy` what ran of it, `lent` what of that was preemptible."""

    own: dict[str, Share] = field(default_factory=dict)
    capacity: int = 0
    busy: int = 0
    lent: int = 0
    seconds: int = 0


def weights(tree: BudgetTree, budgets: Mapping[str, int | None]) -> dict[str, Weights]:
    """What divides the cluster: budgets in GPU-milliseconds of any one period."""
    below: dict[str, int] = {}
    for node in tree.nodes.values():
        if node.parent is not None:
            below[node.parent] = below.get(node.parent, 0) + (budgets.get(node.name) or 0)
    out = {}
    for name, node in tree.nodes.items():
        whole = budgets.get(name) or 0
        own = max(whole - below[name], 0) if name in below else whole
        out[name] = Weights(node.parent, whole, own)
    return out


@dataclass(slots=True)
class _Now:
    """What holds at the moment that was reached."""

    held: dict[str, tuple[int, int]] = field(default_factory=dict)
    capacity: int = 0
    busy: int = 0
    lent: int = 0

    def take(self, step: Change) -> None:
        if step.account == CLUSTER:
            self.capacity += step.waiting
            return
        self.busy += step.running
        if step.account is None:
            self.lent += step.running
            return
        running, waiting = self.held.get(step.account, (0, 0))
        self.held[step.account] = running + step.running, waiting + step.waiting

    def divide(self, period: Period) -> Division:
        """The division as the period begins."""
        division = Division(period.weights, period.start)
        division.take(Change(period.start, CLUSTER, 0, self.capacity))
        for account, (running, waiting) in self.held.items():
            division.take(Change(period.start, account, running, waiting))
        return division

    def add(self, out: Delivered, seconds: int) -> None:
        out.seconds += seconds
        out.capacity += self.capacity * seconds
        out.busy += self.busy * seconds
        out.lent += self.lent * seconds


def delivered(periods: Sequence[Period], changes: Iterable[Change]) -> Delivered:
    """What each account got and deserved in the periods, which are in order and do not overlap.

    `changes` in any order; those before a period say what holds when it begins.
    """
    out, now = Delivered(), _Now()
    steps = sorted(changes, key=lambda step: step.at)
    place = 0
    for period in periods:
        while place < len(steps) and steps[place].at <= period.start:
            now.take(steps[place])
            place += 1
        division = now.divide(period)
        last = period.start
        while place < len(steps) and steps[place].at < period.end:
            step = steps[place]
            place += 1
            if step.at > last:
                division.divide(last)
                now.add(out, step.at - last)
                last = step.at
            now.take(step)
            division.take(step)
        division.divide(last)
        now.add(out, period.end - last)
        for name, leaf in division.leaves.items():
            leaf.settle(period.end)
            share = out.own.setdefault(name, Share())
            share.got += leaf.got
            share.deserved += leaf.deserved
    return out
