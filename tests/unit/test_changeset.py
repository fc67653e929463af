"""Changes of budgets: a changeset and its inverse are nothing; who may change what."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_budget.core.changeset import (
    WHOLE,
    Change,
    apply,
    canonical,
    conflicts,
    diff,
    forbidden,
    inverse,
)
from slurm_budget.errors import Refused
from slurm_budget.state.budget import Amount, BudgetNode, BudgetTree, UserBudget

amounts = st.none() | st.builds(
    Amount, st.sampled_from(["gpus", "gpu_hours", "share"]), st.integers(0, 99)
)
moments = st.none() | st.integers(0, 10)
users = st.lists(
    st.builds(UserBudget, st.sampled_from(["ana", "ben", "cleo"]), amounts, moments, moments),
    unique_by=lambda user: user.name,
).map(tuple)
NAMES = ["a", "b", "c", "d"]


@st.composite
def trees(draw: st.DrawFn) -> BudgetTree:
    names = draw(st.lists(st.sampled_from(NAMES), unique=True))
    nodes = {}
    for place, name in enumerate(names):
        nodes[name] = BudgetNode(
            name,
            draw(st.none() | st.sampled_from(names[:place])) if place else None,
            draw(amounts),
            users=draw(users),
            managers=draw(st.sampled_from([(), ("mara",), ("mara", "ned")])),
            overcommit=draw(st.booleans()),
            valid_until=draw(moments),
            aliases=draw(st.sampled_from([(), ("x" + name,)])),
            description=draw(st.sampled_from(["", "a team"])),
        )
    return canonical(BudgetTree("c", nodes))


@given(trees(), trees())
def test_applying_what_differs_leads_from_one_to_the_other(
    old: BudgetTree, new: BudgetTree
) -> None:
    assert apply(old, diff(old, new)) == new
    assert bool(diff(old, new)) == (old != new)


@given(trees(), trees())
def test_a_changeset_and_its_inverse_are_nothing(old: BudgetTree, new: BudgetTree) -> None:
    changes = diff(old, new)
    assert apply(apply(old, changes), inverse(changes)) == old
    assert inverse(inverse(changes)) == changes


TREE = BudgetTree(
    "c",
    {
        "lab": BudgetNode("lab", amount=Amount("gpus", 32), managers=("dean",)),
        "vision": BudgetNode(
            "vision", "lab", Amount("gpus", 16), users=(UserBudget("ana"),), managers=("mara",)
        ),
        "faces": BudgetNode("faces", "vision", Amount("gpus", 4)),
        "speech": BudgetNode("speech", "lab", Amount("gpus", 8), managers=("sue",)),
    },
)


def changed(**nodes: BudgetNode | None) -> list[Change]:
    kept = {**TREE.nodes, **nodes}
    return diff(TREE, BudgetTree("c", {n: node for n, node in kept.items() if node is not None}))


def with_gpus(name: str, gpus: int) -> BudgetNode:
    return replace(TREE.nodes[name], amount=Amount("gpus", gpus))


def test_changes_read_like_sentences() -> None:
    assert [str(c) for c in changed(vision=with_gpus("vision", 20))] == [
        "account vision: amount 16 GPUs -> 20 GPUs"
    ]
    assert [str(c) for c in changed(faces=None)] == ["account faces: removed with 4 GPUs"]
    user = replace(TREE.nodes["vision"], users=(UserBudget("ana", Amount("share", 50)),))
    assert [str(c) for c in changed(vision=user)] == ["user ana in vision: amount - -> 50%"]


def test_a_manager_changes_what_is_below_and_never_the_own_amount() -> None:
    below = changed(faces=with_gpus("faces", 5))
    own = changed(vision=with_gpus("vision", 17))
    members = changed(vision=replace(TREE.nodes["vision"], users=(UserBudget("ben"),)))
    assert forbidden(below, TREE, "mara") == []
    assert forbidden(members, TREE, "mara") == []
    assert forbidden(own, TREE, "mara") == [
        "account vision: amount 16 GPUs -> 17 GPUs: mara manages neither account lab nor anything"
        " above it"
    ]
    assert forbidden(own, TREE, "dean") == []
    assert len(forbidden(below, TREE, "sue")) == 1
    assert forbidden(own, TREE, "root") == forbidden(own, TREE, "adm", ["adm"]) == []


def test_nobody_makes_themselves_a_manager() -> None:
    grab = replace(TREE.nodes["faces"], managers=("eve",), amount=Amount("gpus", 9))
    assert len(forbidden(changed(faces=grab), TREE, "eve")) == 2
    new = {
        "own": BudgetNode("own", "lab", managers=("eve",)),
        "deep": BudgetNode("deep", "own", Amount("gpus", 1)),
    }
    assert len(forbidden(changed(**new), TREE, "eve")) == 2
    assert forbidden(changed(**new), TREE, "dean") == []


def test_a_move_needs_power_over_both_places() -> None:
    move = changed(faces=replace(TREE.nodes["faces"], parent="speech"))
    assert len(forbidden(move, TREE, "mara")) == 1
    assert len(forbidden(move, TREE, "sue")) == 1
    assert forbidden(move, TREE, "dean") == []


def test_conflicts_are_changes_of_the_same_thing() -> None:
    one = changed(vision=with_gpus("vision", 20))
    same = changed(vision=with_gpus("vision", 21))
    other = changed(vision=replace(TREE.nodes["vision"], description="x"))
    gone = changed(vision=None, faces=None)
    assert len(conflicts(one, same)) == 1
    assert conflicts(one, other) == []
    assert len(conflicts(one, gone)) == len(conflicts(gone, one)) == 1
    member = changed(vision=replace(TREE.nodes["vision"], users=()))
    assert len(conflicts(member, gone)) == 1
    assert conflicts(member, one) == []


def test_a_change_of_what_is_no_longer_there_is_refused() -> None:
    with pytest.raises(Refused, match="but it is 16 GPUs now"):
        apply(TREE, [Change("vision", "", "amount", Amount("gpus", 1), Amount("gpus", 2))])
    with pytest.raises(Refused, match="not there"):
        apply(TREE, [Change("gone", "", "amount", None, None)])
    with pytest.raises(Refused, match="not there"):
        apply(TREE, [Change("vision", "zoe", "amount", None, None)])
    with pytest.raises(Refused):
        apply(TREE, [Change("vision", "", WHOLE, None, BudgetNode("vision"))])
