"""The delivered share: the worked example, odd cases, and the law against brute force."""

from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slurm_budget.core.delivered import Period, delivered, weights
from slurm_budget.core.division import CLUSTER, Change, Weights
from slurm_budget.state.budget import BudgetNode, BudgetTree

TREE = {
    "programme": Weights(None, 15, 0),
    "vision": Weights("programme", 10, 10),
    "speech": Weights("programme", 5, 5),
    "lab": Weights(None, 5, 5),
}


def share(tree: dict[str, Weights], demand: dict[str, int], capacity: int) -> dict[str, Fraction]:
    """What each account's own jobs deserve at one moment, said as plainly as it can be."""

    def wants(name: str) -> int:
        if not tree[name].whole:
            return 0
        own = demand.get(name, 0) if tree[name].own else 0
        return own + sum(wants(kid) for kid in tree if tree[kid].parent == name)

    out = {name: Fraction(0) for name in tree}

    def divide(name: str | None, left: Fraction) -> None:
        sides = {kid: (one.whole, wants(kid)) for kid, one in tree.items() if one.parent == name}
        if name is not None and tree[name].own:
            sides[""] = (tree[name].own, demand.get(name, 0))
        sides = {kid: side for kid, side in sides.items() if side[0]}
        got = dict.fromkeys(sides, Fraction(0))
        hungry = set(sides)
        while hungry and left > 0:
            level = left / sum(sides[kid][0] for kid in hungry)
            step = min(level, *((sides[k][1] - got[k]) / sides[k][0] for k in hungry))
            for kid in hungry:
                got[kid] += step * sides[kid][0]
                left -= step * sides[kid][0]
            hungry = {kid for kid in hungry if got[kid] < sides[kid][1]}
        for kid, amount in got.items():
            if kid:
                divide(kid, amount)
            else:
                out[str(name)] = amount

    # an account without children has all its jobs below itself
    divide(None, Fraction(capacity))
    return out


def brute(
    periods: list[Period], changes: list[Change]
) -> tuple[dict[str, int], dict[str, Fraction]]:
    """Second by second."""
    got: dict[str, int] = {}
    deserved: dict[str, Fraction] = {}
    for period in periods:
        for second in range(period.start, period.end):
            held = [step for step in changes if step.at <= second]
            capacity = sum(step.waiting for step in held if step.account == CLUSTER)
            demand = {
                name: sum(s.running + s.waiting for s in held if s.account == name)
                for name in period.weights
            }
            for name, amount in share(dict(period.weights), demand, capacity).items():
                deserved[name] = deserved.get(name, Fraction(0)) + amount
                running = sum(s.running for s in held if s.account == name)
                got[name] = got.get(name, 0) + running
    return got, deserved


def test_the_example_of_the_docstring() -> None:
    changes = [
        Change(0, CLUSTER, 0, 20),
        Change(0, "vision", 9, 9),
        Change(0, "speech", 4, 0),
        Change(0, "lab", 6, 0),
        Change(0, None, 1, 0),
    ]
    found = delivered([Period(0, 3600, TREE)], changes)
    assert {name: round(one.deserved / 3600, 9) for name, one in found.own.items()} == {
        "programme": 0, "vision": 11, "speech": 4, "lab": 5,
    }  # fmt: skip
    assert found.own["vision"].ratio == pytest.approx(9 / 11)
    assert found.own["programme"].ratio is None
    assert (found.capacity, found.busy, found.lent) == (72000, 72000, 3600)


def test_drained_nodes_are_owed_to_nobody() -> None:
    changes = [Change(0, CLUSTER, 0, 20), Change(0, "lab", 4, 30), Change(50, CLUSTER, 0, -20)]
    found = delivered([Period(0, 100, TREE)], changes)
    assert found.own["lab"].deserved == 20 * 50
    assert found.own["lab"].got == 4 * 100


def test_time_in_which_nobody_looked_counts_for_neither_side() -> None:
    changes = [Change(0, CLUSTER, 0, 20), Change(0, "lab", 5, 5)]
    found = delivered([Period(10, 20, TREE), Period(90, 100, TREE)], changes)
    assert (found.seconds, found.own["lab"].got, found.own["lab"].deserved) == (20, 100, 200)


def test_a_budget_that_changes_counts_from_then_on() -> None:
    other = TREE | {"lab": Weights(None, 15, 15)}
    changes = [Change(0, CLUSTER, 0, 20), Change(0, "lab", 0, 50), Change(0, "vision", 0, 50)]
    found = delivered([Period(0, 10, TREE), Period(10, 20, other)], changes)
    assert found.own["lab"].deserved == 5 * 10 + 10 * 10


def test_what_an_account_keeps_for_itself_is_owed_to_its_own_jobs() -> None:
    tree = BudgetTree(
        "c", {"top": BudgetNode("top"), "a": BudgetNode("a", "top"), "b": BudgetNode("b", "top")}
    )
    found = weights(tree, {"top": 10, "a": 6, "b": None})
    assert found == {
        "top": Weights(None, 10, 4), "a": Weights("top", 6, 6), "b": Weights("top", 0, 0),
    }  # fmt: skip
    changes = [Change(0, CLUSTER, 0, 20), *(Change(0, name, 0, 50) for name in found)]
    shares = delivered([Period(0, 1, found)], changes).own
    assert {name: one.deserved for name, one in shares.items()} == {"top": 8, "a": 12, "b": 0}


def test_an_account_that_wants_less_than_its_share_leaves_the_rest_whoever_below_is_short() -> None:
    tree = {"a": Weights(None, 5, 2), "kid": Weights("a", 1, 1), "b": Weights(None, 4, 4)}
    changes = [
        *(Change(0, CLUSTER, 0, 180), Change(0, "b", 0, 90)),
        *(Change(0, "a", 0, 70), Change(0, "kid", 0, 40)),
        *(Change(1, "a", 0, -5), Change(1, "kid", 0, -6)),
    ]
    shares = delivered([Period(0, 2, tree)], changes).own
    # b has 80 of its 90 while a and kid want more than 100, and 81 when they want 99
    assert shares["b"].deserved == pytest.approx(80 + 81)


@st.composite
def trees(draw: st.DrawFn) -> dict[str, Weights]:
    """Up to nine accounts, each below the cluster or an earlier one."""
    out: dict[str, Weights] = {}
    for place in range(draw(st.integers(1, 9))):
        parent = draw(st.sampled_from([None, *out]))
        weight = draw(st.integers(0, 6))
        out[f"a{place}"] = Weights(parent, weight, weight)
    above = {one.parent for one in out.values()}
    return {
        name: Weights(one.parent, one.whole, draw(st.integers(0, 3)) if name in above else one.own)
        for name, one in out.items()
    }


@st.composite
def stories(draw: st.DrawFn) -> tuple[list[Period], list[Change]]:
    tree = draw(trees())
    accounts = st.sampled_from([*tree, "stranger"])
    changes: list[Change] = []
    for _ in range(draw(st.integers(0, 25))):
        start = draw(st.integers(0, 30))
        end = draw(st.integers(start, 35))
        account, amount = draw(accounts), draw(st.integers(1, 9))
        running = draw(st.booleans())
        up = (amount, 0) if running else (0, amount)
        changes.append(Change(start, account, *up))
        if draw(st.booleans()):
            changes.append(Change(end, account, -up[0], -up[1]))
    level = 0
    for at in sorted(draw(st.lists(st.integers(0, 30), max_size=4))):
        new = draw(st.integers(0, 40))
        changes.append(Change(at, CLUSTER, 0, new - level))
        level = new
    cuts = sorted(draw(st.lists(st.integers(0, 40), min_size=2, max_size=5, unique=True)))
    periods = [
        Period(one, two, draw(trees()) | tree if draw(st.booleans()) else tree)
        for one, two in pairwise(cuts)
        if draw(st.integers(0, 3))
    ]
    return periods, changes


@settings(max_examples=300, deadline=None)
@given(story=stories())
def test_it_is_what_counting_second_by_second_gives(
    story: tuple[list[Period], list[Change]],
) -> None:
    periods, changes = story
    got, deserved = brute(periods, changes)
    found = delivered(periods, changes)
    assert {name: one.got for name, one in found.own.items()} == got
    for name, amount in deserved.items():
        assert found.own[name].deserved == pytest.approx(float(amount), rel=1e-9, abs=1e-9), name
