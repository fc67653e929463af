"""Budgets in the ledger: history, optimistic locking, powers, undo; on both databases."""

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import text

from slurm_budget.errors import BadInput, BadInputs, Refused
from slurm_budget.ledger.store import Ledger
from slurm_budget.state.budget import Amount, BudgetNode, BudgetTree, UserBudget


def gpus(value: int) -> Amount:
    return Amount("gpus", value)


TREE = BudgetTree(
    "main",
    {
        "institute": BudgetNode("institute", amount=gpus(32), managers=("dean",)),
        "vision": BudgetNode(
            "vision",
            "institute",
            Amount("share", 50),
            users=(UserBudget("ana"), UserBudget("ben", gpus(4), valid_from=5, valid_until=9)),
            managers=("mara",),
            aliases=("sight",),
            description="faces & places",
        ),
        "language": BudgetNode("language", "institute", gpus(8), gres="gres/gpu:h100"),
    },
)


def with_gpus(tree: BudgetTree, name: str, value: int) -> BudgetTree:
    node = replace(tree.nodes[name], amount=gpus(value))
    return BudgetTree(tree.cluster, {**tree.nodes, name: node})


@pytest.fixture
def first(ledger: Ledger) -> int:
    return ledger.apply_changeset("main", TREE, "root", "root", "first", 0, 100)


def test_a_tree_comes_back_as_it_went_in(ledger: Ledger, first: int) -> None:
    assert ledger.budgets("main") == (TREE, first)
    assert list(ledger.budget_tree("main").nodes) == list(TREE.nodes)
    assert ledger.budget_tree("other") == BudgetTree("other")


def test_the_second_from_the_same_base_is_refused_and_sees_what_the_first_did(
    ledger: Ledger, first: int
) -> None:
    ledger.apply_changeset(
        "main", with_gpus(TREE, "vision", 12), "dean", "dean", "Q1 plan", first, 200
    )
    other = with_gpus(with_gpus(TREE, "vision", 20), "language", 4)
    with pytest.raises(Refused) as caught:
        ledger.apply_changeset("main", other, "root", "root", "mine", first, 300)
    told = str(caught.value)
    assert "by dean (Q1 plan)" in told
    assert "account vision: amount 50% -> 12 GPUs (you change this too)" in told
    assert "language" not in told
    assert ledger.budget_tree("main").nodes["vision"].amount == gpus(12)


def test_history_at_any_moment(ledger: Ledger, first: int) -> None:
    second = with_gpus(TREE, "vision", 12)
    number = ledger.apply_changeset("main", second, "dean", "dean", "less", first, 200)
    without = BudgetTree("main", {n: v for n, v in second.nodes.items() if n != "language"})
    last = ledger.apply_changeset("main", without, "root", "root", "gone", number, 300)
    for at, tree in ((99, BudgetTree("main")), (100, TREE), (250, second), (300, without)):
        assert ledger.budget_tree("main", at) == tree, at
    assert ledger.changeset_at("main", 250) == number
    assert [str(c) for c in ledger.diff("main", first, last)] == [
        "account language: removed with 8 GPUs",
        "account vision: amount 50% -> 12 GPUs",
    ]
    back = [str(c) for c in ledger.diff("main", last, first)]
    assert back[0] == "account vision: amount 12 GPUs -> 50%"
    log = ledger.log("main")
    assert [(c.author, c.reason, c.at, c.base) for c in log] == [
        ("root", "first", 100, 0),
        ("dean", "less", 200, first),
        ("root", "gone", 300, number),
    ]
    assert [len(c.changes) for c in log] == [3, 1, 1]


def test_undo_is_a_changeset_of_its_own(ledger: Ledger, first: int) -> None:
    one = ledger.apply_changeset(
        "main", with_gpus(TREE, "vision", 12), "dean", "dean", "less", first, 200
    )
    tree = with_gpus(ledger.budget_tree("main"), "language", 4)
    ledger.apply_changeset("main", tree, "dean", "dean", "other", one, 300)
    done = ledger.undo("main", one, "dean", "dean", "it was wrong", 400)
    assert ledger.budget_tree("main") == with_gpus(TREE, "language", 4)
    assert ledger.log("main")[-1].undoes == one
    again = ledger.undo("main", done, "dean", "dean", "it was right", 500)
    assert ledger.budget_tree("main").nodes["vision"].amount == gpus(12)
    assert again == ledger.budgets("main")[1]


def test_what_others_built_on_cannot_be_undone(ledger: Ledger, first: int) -> None:
    one = ledger.apply_changeset(
        "main", with_gpus(TREE, "vision", 12), "dean", "dean", "less", first, 200
    )
    ledger.apply_changeset(
        "main", with_gpus(TREE, "vision", 11), "dean", "dean", "even less", one, 300
    )
    with pytest.raises(Refused, match=r"others have built on it.*but it is 11 GPUs now"):
        ledger.undo("main", one, "dean", "dean", "no", 400)
    with pytest.raises(BadInput, match="no changeset 77"):
        ledger.undo("main", 77, "dean", "dean", "no", 400)


def test_managers_stay_below_their_node(ledger: Ledger, first: int) -> None:
    with pytest.raises(Refused, match="mara manages neither account institute"):
        ledger.apply_changeset(
            "main", with_gpus(TREE, "vision", 17), "mara", "mara", "more", first, 200
        )
    node = replace(TREE.nodes["vision"], users=(UserBudget("ana", gpus(2)),))
    tree = BudgetTree("main", {**TREE.nodes, "vision": node})
    ledger.apply_changeset("main", tree, "mara", "mara", "her thesis", first, 200)
    assert ledger.budget_tree("main") == tree


def test_only_root_and_admins_act_for_others(ledger: Ledger, first: int) -> None:
    tree = with_gpus(TREE, "vision", 12)
    with pytest.raises(Refused, match="eve may not act for dean"):
        ledger.apply_changeset("main", tree, "eve", "dean", "x", first, 200)
    with pytest.raises(Refused, match="mara may not make"):
        ledger.apply_changeset("main", tree, "adm", "mara", "x", first, 200, admins=["adm"])
    ledger.apply_changeset("main", tree, "adm", "dean", "asked by mail", first, 200, admins=["adm"])
    last = ledger.log("main")[-1]
    assert (last.author, last.acting_as) == ("adm", "dean")


def test_a_tree_that_breaks_a_rule_leaves_nothing(ledger: Ledger, first: int) -> None:
    tree = with_gpus(TREE, "vision", 30)
    with pytest.raises(BadInput, match="add up to"):
        ledger.apply_changeset("main", tree, "root", "root", "x", first, 200)
    bad = BudgetTree("main", {"A": BudgetNode("A"), "b": BudgetNode("b", "nowhere")})
    with pytest.raises(BadInputs):
        ledger.apply_changeset("main", bad, "root", "root", "x", first, 200)
    with pytest.raises(BadInput, match="needs a reason"):
        ledger.apply_changeset("main", TREE, "root", "root", " ", first, 200)
    assert ledger.budgets("main") == (TREE, first)
    assert len(ledger.log("main")) == 1


def test_nothing_to_change_is_no_changeset(ledger: Ledger, first: int) -> None:
    assert ledger.apply_changeset("main", TREE, "root", "root", "again", first, 200) == first
    assert len(ledger.log("main")) == 1


def test_clusters_have_budgets_of_their_own(ledger: Ledger, first: int) -> None:
    other = BudgetTree("gpu2", {"vision": BudgetNode("vision", amount=gpus(3))})
    ledger.apply_changeset("gpu2", other, "root", "root", "first", 0, 100)
    assert ledger.budget_tree("gpu2") == other
    assert ledger.budget_tree("main") == TREE
    assert len(ledger.log("gpu2")) == len(ledger.log("main")) == 1


@st.composite
def trees(draw: st.DrawFn) -> BudgetTree:
    """Trees that keep the rules: shares of a parent, small enough to add up."""
    names = draw(st.lists(st.sampled_from("abcd"), unique=True))
    users = st.lists(st.sampled_from(["ana", "ben"]), unique=True).map(sorted)
    nodes = {"top": BudgetNode("top", amount=gpus(8))}
    for place, name in enumerate(names):
        nodes[name] = BudgetNode(
            name,
            draw(st.sampled_from(["top", *names[:place]])),
            draw(st.none() | st.builds(Amount, st.just("share"), st.integers(0, 25))),
            users=tuple(UserBudget(user) for user in draw(users)),
            managers=draw(st.sampled_from([(), ("mara",), ("mara", "ned")])),
            overcommit=draw(st.booleans()),
            aliases=draw(st.sampled_from([(), ("x" + name,)])),
        )
    return BudgetTree("main", nodes)


@settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(trees(), trees())
def test_any_change_and_its_undo(ledger: Ledger, one: BudgetTree, two: BudgetTree) -> None:
    with ledger.engine.begin() as connection:
        for table in ("budget_entry_users", "budget_entries", "budget_changesets"):
            connection.execute(text(f"DELETE FROM {table}"))
    ledger._tree = None
    base = ledger.apply_changeset("main", one, "root", "root", "one", 0, 1)
    done = ledger.apply_changeset("main", two, "root", "root", "two", base, 2)
    assert ledger.budget_tree("main") == two
    if done != base:
        ledger.undo("main", done, "root", "root", "back", 3)
        assert ledger.budget_tree("main") == one
        assert ledger.budget_tree("main", 2) == two
