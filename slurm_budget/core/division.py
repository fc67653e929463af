"""A cluster divided down the budget tree, kept up as demand and capacity change.

In a node of the tree the division is one number, the level: GPUs per budget. A
child that wants less than level x budget has what it wants (it is *content*), every other one has
level x budget (it is *limited*). So a limited child whose demand moves, but stays above its share,
changes nothing at all; and a level that moves needs no visit to the limited leaves: the node keeps
the integral of its level, and a leaf that is limited from p to q deserves budget x (integral at q -
integral at p). Only a child that turns from one to the other is settled.

Rates are weighted thousandths of a GPU, times epoch seconds, results GPU-milliseconds.
"""

from collections.abc import Mapping
from typing import NamedTuple

CLUSTER = ""
"""The account of a change of capacity."""


class Change(NamedTuple):
    """From `at` on, an account's funded runs hold `running` more (or fewer), and its funded jobs
    wait for `waiting` more. Account None: `running` is lent, to preemptible runs. Account CLUSTER:
    `waiting` is GPUs that can be used."""

    at: int
    account: str | None
    running: int
    waiting: int


class Weights(NamedTuple):
    """One account in the division: what it weighs below its parent, and its own jobs below it."""

    parent: str | None
    whole: int
    own: int


class _Group:
    """An account with accounts below it, or the cluster (no parent). `content` is the demand of
    content kids, `hungry` the weight of limited ones."""

    __slots__ = (
        *("at", "content", "demand", "groups", "hungry", "integral", "kids", "level"),
        *("limited", "parent", "ratio", "weight"),
    )

    def __init__(self, parent: "_Group | None", weight: int, at: int) -> None:
        self.parent, self.weight, self.at = parent, weight, at
        self.demand = self.content = self.hungry = 0
        self.limited = False
        self.kids: list[_Group | _Leaf] = []
        self.groups: list[_Group] = []
        self.level = self.integral = self.ratio = 0.0

    def upto(self, now: int) -> float:
        """The integral of the level, brought up to now."""
        self.integral += self.level * (now - self.at)
        self.at = now
        return self.integral

    def turn(self, kid: "_Group | _Leaf", now: int) -> None:
        """A limited kid becomes content, or the other way round."""
        kid.settle(now)
        kid.limited = not kid.limited
        if kid.limited:
            self.content -= kid.demand
            self.hungry += kid.weight
        else:
            self.content += kid.demand
            self.hungry -= kid.weight

    def settle(self, now: int) -> None:
        """Only leaves get and deserve."""


class _Leaf:
    """An account's own jobs."""

    __slots__ = (
        *("demand", "deserved", "got", "limited", "mark", "parent", "ratio", "running"),
        *("since", "weight"),
    )

    def __init__(self, parent: _Group, weight: int, at: int) -> None:
        self.parent, self.weight, self.since = parent, weight, at
        self.demand = self.running = self.got = 0
        self.limited = False
        self.deserved = self.mark = self.ratio = 0.0

    def settle(self, now: int) -> None:
        """Add up what was got and deserved since the last time."""
        passed = now - self.since
        self.since = now
        self.got += self.running * passed
        integral = self.parent.upto(now)
        if self.limited:
            self.deserved += self.weight * (integral - self.mark)
        elif self.weight:
            self.deserved += self.demand * passed
        self.mark = integral


class Division:
    """The cluster divided among accounts, kept up as demand and capacity change."""

    def __init__(self, weights: Mapping[str, Weights], at: int) -> None:
        self.root = _Group(None, 1, at)
        self.leaves: dict[str, _Leaf] = {}
        self.capacity = 0
        self._stale: set[_Group] = set()
        below: dict[str | None, list[str]] = {}
        for name, one in weights.items():
            below.setdefault(one.parent, []).append(name)
        waiting = [(name, self.root, True) for name in below.get(None, ())]
        while waiting:
            name, parent, owed = waiting.pop()
            _, whole, own = weights[name]
            owed = owed and whole > 0
            if name in below:
                group = _Group(parent, whole, at)
                if owed:
                    parent.kids.append(group)
                    parent.groups.append(group)
                waiting += [(kid, group, owed) for kid in below[name]]
                parent, whole = group, own
            leaf = self.leaves[name] = _Leaf(parent, whole if owed else 0, at)
            if leaf.weight:
                parent.kids.append(leaf)

    def take(self, step: Change) -> None:
        """Something changed; `divide` makes it count."""
        if step.account == CLUSTER:
            self.capacity += step.waiting
            self._stale.add(self.root)
        leaf = self.leaves.get(step.account or "")
        if leaf is None:
            return
        leaf.settle(step.at)
        leaf.running += step.running
        more = step.running + step.waiting
        if leaf.weight and more:
            self._tell(leaf, more)

    def _tell(self, leaf: _Leaf, more: int) -> None:
        """Demand goes up the tree; stale is every division that may not be right any longer."""
        node: _Leaf | _Group = leaf
        while True:
            node.demand += more
            node.ratio = node.demand / node.weight
            above = node.parent
            if above is None:
                return
            if not node.limited:
                above.content += more
                self._stale.add(above)
            elif node.ratio <= above.level:  # else it takes no more and no less than before
                self._stale.add(above)
            node = above

    def divide(self, now: int) -> None:
        """Bring the levels up to what changed."""
        if self.root in self._stale:
            self._divide(self.root, self.capacity, now)
        while self._stale:
            group = self._stale.pop()
            if group.parent is not None and group.limited:
                self._divide(group, group.weight * group.parent.level, now)

    def _divide(self, group: _Group, share: float, now: int) -> None:
        """Find the level at which the kids' shares add up to `share`, and turn those that must.

        Newton's method on the sum of shares, which is concave in the level: whoever is believed
        limited, the first level is not above the right one, and then it only rises.
        """
        self._stale.discard(group)
        before, level = group.level, 0.0
        if group.demand <= share:
            if not group.hungry:
                return
            turned = [kid for kid in group.kids if kid.limited]
        else:
            level = (share - group.content) / group.hungry if group.hungry else 0.0
            turned = [kid for kid in group.kids if (kid.ratio > level) is not kid.limited]
        group.upto(now)
        while turned:
            for kid in turned:
                group.turn(kid, now)
            if not group.hungry:
                level = 0.0
                break
            level = (share - group.content) / group.hungry
            turned = [kid for kid in group.kids if kid.limited and kid.ratio <= level]
        group.level = level
        for below in group.groups:
            if below.limited:
                if level != before or not below.hungry or below in self._stale:
                    self._divide(below, below.weight * level, now)
            elif below.hungry:
                self._divide(below, below.demand, now)
