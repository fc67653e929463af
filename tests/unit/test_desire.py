"""What the budgets want of Slurm, and that getting it once is enough."""

from dataclasses import replace

import pytest
import slurmdbd_model as model
from hypothesis import given
from hypothesis import strategies as st
from sync_budgets import LAB, POLICY, node, plan, tree, trees, values

from slurm_budget.errors import BadInput
from slurm_budget.state.budget import Amount, BudgetTree, UserBudget
from slurm_budget.state.slurm import Association, Qos


def test_from_nothing() -> None:
    made = plan(LAB, model.slurm())
    assert values(made, "QOS preemptible") == {
        "priority": "0",
        "preemptmode": "requeue",
        "preemptexempttime": "00:20:00",
        "gracetime": "00:01:00",
        "usagefactor": "0.1",
    }
    assert values(made, "QOS funded-team") == {
        "priority": "1000",
        "preempt": "preemptible",
        "grptres": "gres/gpu=96",
    }
    assert values(made, "account team") == {
        "description": "team",
        "organization": "lab",
        "parent": "lab",
        "fairshare": "160000",
        "qos": "funded-team,normal,preemptible",
        "defaultqos": "preemptible",
    }
    assert values(made, "user ben in team") == {"fairshare": "40000"}
    assert values(made, "user ana in team") == {"fairshare": "120000"}, "what ben leaves"
    assert values(made, "user carl in other") == {"fairshare": "1"}, "nobody has a budget there"
    assert made.modified == 0


def test_once_is_enough() -> None:
    state = model.slurm()
    after = model.apply(state, plan(LAB, state))
    assert not plan(LAB, after)


def test_a_change_moves_its_own_numbers_only() -> None:
    after = model.apply(model.slurm(), plan(LAB, model.slurm()))
    more = tree(*(replace(n, amount=Amount("gpus", 12)) if n.name == "other" else n
                  for n in LAB.nodes.values()))  # fmt: skip
    made = plan(more, after)
    assert {c.title for c in made.changes} == {"QOS funded-other", "account other"}


def test_limits_are_in_whole_nodes_and_never_below_one() -> None:
    made = plan(tree(node("tiny", gpus=1)), model.slurm(), replace(POLICY, burst=1.0))
    assert values(made, "QOS funded-tiny")["grptres"] == "gres/gpu=8"


def test_limits_are_never_below_the_largest_job() -> None:
    row = Association("c", "tiny", parent="root", max_tres="gres/gpu=60")
    made = plan(tree(node("tiny", gpus=1)), model.slurm(row))
    assert values(made, "QOS funded-tiny")["grptres"] == "gres/gpu=64"


def test_typed_budget_and_change_of_type() -> None:
    typed = tree(node("lab", gpus=8, gres="gres/gpu:h100"))
    heavy = replace(POLICY, weights={"h100": 2000})
    state = model.slurm()
    made = plan(typed, state, heavy)
    assert values(made, "QOS funded-lab")["grptres"] == "gres/gpu:h100=24", "6 x 8 / weight 2"
    after = model.apply(state, made)
    untyped = tree(node("lab", gpus=8))
    assert values(plan(untyped, after, heavy), "QOS funded-lab") == {"grptres": "gres/gpu=48"}
    assert not plan(untyped, model.apply(after, plan(untyped, after, heavy)), heavy)


def test_backstop_from_the_half_life() -> None:
    made = plan(LAB, model.slurm(), replace(POLICY, backstop=1.5))
    assert values(made, "QOS funded-team")["grptresmins"] == "gres/gpu=349017"
    with pytest.raises(BadInput, match="PriorityDecayHalfLife is 0"):
        plan(LAB, replace(model.slurm(), half_life=0), replace(POLICY, backstop=1.5))


def test_backstop_taken_away_again() -> None:
    state = model.slurm()
    with_it = model.apply(state, plan(LAB, state, replace(POLICY, backstop=1.5)))
    made = plan(LAB, with_it)
    assert values(made, "QOS funded-team") == {"grptresmins": ""}
    assert not plan(LAB, model.apply(with_it, made))


def test_limits_that_are_not_ours_stay() -> None:
    state = model.slurm()
    after = model.apply(state, plan(LAB, state))
    by_hand = replace(after.qos["funded-team"], grp_tres="cpu=100,gres/gpu=96,mem=2000")
    assert not plan(LAB, replace(after, qos={**after.qos, "funded-team": by_hand}))


def test_zero_budget_is_not_no_budget() -> None:
    made = plan(tree(node("zero", gpus=0), node("none")), model.slurm())
    assert values(made, "QOS funded-zero")["grptres"] == "gres/gpu=0"
    assert values(made, "account zero")["fairshare"] == "0"
    assert values(made, "account none")["fairshare"] == "1"
    assert values(made, "account none")["qos"] == "normal,preemptible"
    assert not values(made, "QOS funded-none")


def test_a_budget_removed_limits_to_nothing_and_deletes_nothing() -> None:
    after = model.apply(model.slurm(), plan(LAB, model.slurm()))
    fewer = tree(*(n for n in LAB.nodes.values() if n.name != "other"))
    made = plan(fewer, after)
    assert values(made, "QOS funded-other") == {"grptres": "gres/gpu=0"}
    assert values(made, "account other") == {"fairshare": "1"}
    assert any("other: no budget now" in note for note in made.notes)
    assert not plan(fewer, model.apply(after, made))


def test_a_budget_past_its_date_is_none() -> None:
    dated = tree(node("lab", gpus=8, valid_until=1000))
    after = model.apply(model.slurm(), plan(dated, model.slurm(), now=999))
    made = plan(dated, after, now=1000)
    assert values(made, "QOS funded-lab") == {"grptres": "gres/gpu=0"}
    assert values(made, "account lab") == {"fairshare": "1"}


def test_what_the_site_has_set_stays() -> None:
    lab = Association(
        "c", "lab", parent="root", fairshare=7, own_qos=frozenset({"normal", "high"}),
        own_default_qos="high", grp_tres="cpu=100",
    )  # fmt: skip
    user = Association("c", "lab", "ana", fairshare=3, own_qos=frozenset({"high"}))
    state = model.slurm(lab, user, qos=(Qos("high"),))
    unfunded = plan(tree(node("lab")), state)
    assert values(unfunded, "account lab") == {"qos": "high,normal,preemptible"}
    assert values(unfunded, "user ana in lab") == {"qos": "high,preemptible"}
    assert any("DefaultQOS high is left" in note for note in unfunded.notes)
    model.apply(state, unfunded)
    funded = plan(tree(node("lab", gpus=8)), state)
    assert values(funded, "account lab") == {
        "fairshare": "80000",
        "qos": "funded-lab,high,normal,preemptible",
        "defaultqos": "preemptible",
    }
    assert values(funded, "user ana in lab") == {"qos": "funded-lab,high,preemptible"}
    model.apply(state, funded)


def test_a_list_below_that_is_not_in_the_tree_gets_what_its_default_needs() -> None:
    lab = Association("c", "lab", parent="root")
    below = Association("c", "below", parent="lab", own_qos=frozenset({"normal"}))
    state = model.slurm(lab, below)
    made = plan(tree(node("lab", gpus=8)), state)
    assert values(made, "account below") == {"qos": "normal,preemptible"}
    assert not plan(tree(node("lab", gpus=8)), model.apply(state, made))


def test_parent_rows_and_unknown_fairshare_are_left() -> None:
    rows = (
        Association("c", "lab", parent="root"),
        Association("c", "lab", "ana", fairshare="parent"),
        Association("c", "lab", "ben"),
    )
    budgets = tree(node("lab", gpus=8, users=(UserBudget("carl", Amount("gpus", 2)),)))
    made = plan(budgets, model.slurm(*rows))
    assert not values(made, "user ana in lab")
    assert values(made, "user ben in lab") == {"fairshare": "60000"}, "not in the tree, a sibling"


def test_partitions_of_a_user_get_the_same_number() -> None:
    rows = (
        Association("c", "lab", parent="root"),
        Association("c", "lab", "ana"),
        Association("c", "lab", "ana", "gpu"),
    )
    budgets = tree(node("lab", gpus=8, users=(UserBudget("ana", Amount("gpus", 2)),)))
    made = plan(budgets, model.slurm(*rows))
    assert values(made, "user ana in lab") == {"fairshare": "20000"}
    assert values(made, "user ana in lab, partition gpu") == {"fairshare": "20000"}


def test_names_fold_as_slurm_folds_them() -> None:
    rows = (Association("c", "lab", parent="root"), Association("c", "lab", "ana"))
    budgets = tree(node("lab", gpus=8, users=(UserBudget("Ana", Amount("gpus", 2)),)))
    made = plan(budgets, model.slurm(*rows))
    assert [c.title for c in made.changes if c.kind == "user"] == ["user ana in lab"]


def test_a_shared_qos_of_another_cluster_is_named() -> None:
    state = replace(model.slurm(), elsewhere={"funded-lab": ("d",)})
    assert any("used by cluster d" in note for note in plan(LAB, state).notes)


@given(trees(), trees(), st.sampled_from([0.0, 1.5]))
def test_any_budgets_settle_in_one_go_and_so_does_any_change(
    first: BudgetTree, second: BudgetTree, backstop: float
) -> None:
    policy = replace(POLICY, backstop=backstop)
    state = model.slurm()
    for budgets in (first, second, first):
        state = model.apply(state, plan(budgets, state, policy))
        assert not plan(budgets, state, policy).changes


def test_a_fairshare_says_of_which_budgets_it_is_how_much() -> None:
    made = plan(
        tree(
            node("lab", gpus=16),
            node("vision", "lab", gpus=12),
            node("sound", "lab", gpus=4),
            node("deep", "vision", gpus=2),
        ),
        model.slurm(),
    )
    why = {c.title: f.why for c in made.changes for f in c.fields if f.name == "fairshare"}
    assert why["account vision"] == (
        "2,016 GPU-hours a window, 75% of the 2,688 that the 2 budgets below lab add up to"
    )
    assert why["account deep"] == "336 GPU-hours a window, the only budget below vision"
    assert why["account lab"] == "2,688 GPU-hours a window, the only budget at the top"
