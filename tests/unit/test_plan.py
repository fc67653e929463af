"""Plans as values: JSON, digests, the guard, and what makes a plan stale."""

from dataclasses import replace

import pytest
import slurmdbd_model as model
from hypothesis import given
from sync_budgets import LAB, POLICY, WEEK, node, plan, tree, trees

from slurm_budget.core import guard
from slurm_budget.core import plan as plans
from slurm_budget.core.desire import desire
from slurm_budget.core.guard import Overrides
from slurm_budget.core.plan import Plan
from slurm_budget.errors import BadInput, Refused, StalePlan
from slurm_budget.render import plan as render
from slurm_budget.state.budget import Amount, BudgetTree
from slurm_budget.state.slurm import SlurmState

EMPTY = BudgetTree("c")


def synced(budgets: BudgetTree = LAB) -> SlurmState:
    state = model.slurm()
    return model.apply(state, plan(budgets, state))


def refusals(
    budgets: BudgetTree,
    state: SlurmState,
    over: Overrides | None = None,
    in_use: dict[str, dict[str, int]] | None = None,
) -> list[str]:
    made = plan(budgets, state)
    return [
        str(bad) for bad in guard.refusals(made, budgets, state, POLICY, 0.3, in_use or {}, over)
    ]


def digested(budgets: BudgetTree, state: SlurmState, now: int = 0) -> Plan:
    digest = plans.budget_digest(budgets, POLICY, WEEK, now)
    return plans.make(desire(budgets, state, POLICY, WEEK, now), state, now, digest)


@given(trees())
def test_json_round_trip(budgets: BudgetTree) -> None:
    made = digested(budgets, model.slurm())
    assert plans.from_json(plans.to_json(made)) == made


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"slurm_budget_plan": 1}', '{"slurm_budget_plan": 99}', "\x00"]
)
def test_what_is_no_plan_is_said_so(text: str) -> None:
    with pytest.raises(BadInput, match="plan"):
        plans.from_json(text, "p.json")


def test_first_sync_is_never_too_much() -> None:
    assert refusals(LAB, model.slurm()) == []


def test_too_much_change_is_refused_with_the_numbers() -> None:
    less = tree(*(replace(n, amount=Amount("gpus", 1)) for n in LAB.nodes.values()))
    (said,) = refusals(less, synced())
    assert "7 of 9 QOS, accounts and users that exist would change" in said
    assert "allowed 30%" in said
    assert "--max-change" in said
    assert refusals(less, synced(), Overrides(max_change=1.0)) == []


def test_emptied_budgets_are_refused_with_the_numbers() -> None:
    said = refusals(EMPTY, synced())
    assert any("name 0 accounts, Slurm has 3 funded QOS" in one for one in said)
    assert any("--allow-empty" in one for one in said)


def test_a_slurm_without_root_is_refused() -> None:
    (said,) = refusals(LAB, SlurmState("c"))
    assert "0 associations" in said


def test_a_limit_below_what_runs_is_refused_with_the_numbers() -> None:
    less = tree(*(replace(n, amount=Amount("gpus", 4)) if n.name == "other" else n
                  for n in LAB.nodes.values()))  # fmt: skip
    in_use = {"funded-other": {"": 32, "h100": 32}}
    (said,) = refusals(less, synced(), in_use=in_use)
    assert "limit gres/gpu=24 is below the 32 GPUs" in said
    assert "--below-running" in said
    assert refusals(less, synced(), Overrides(below_running=True), in_use) == []
    assert refusals(less, synced(), in_use={"funded-other": {"": 24}}) == []


def test_typed_limits_are_compared_with_that_type() -> None:
    before = tree(node("lab", gpus=8, gres="gres/gpu:h100"), node("b"), node("d"), node("e"))
    after = tree(*(replace(n, amount=Amount("gpus", 1)) if n.name == "lab" else n
                   for n in before.nodes.values()))  # fmt: skip
    over = Overrides(max_change=1.0)
    state = synced(before)
    assert refusals(after, state, over, {"funded-lab": {"": 40, "h100": 8, "a100": 32}}) == []
    (said,) = refusals(after, state, over, {"funded-lab": {"": 16, "h100": 16}})
    assert "gres/gpu:h100=8 is below the 16" in said


def test_all_refusals_come_at_once() -> None:
    with pytest.raises(Refused) as bad:
        guard.check([Refused("one", mend="x"), Refused("two", mend="y")])
    assert "one" in str(bad.value)
    assert "two" in str(bad.value)
    assert bad.value.code == 4


def test_a_plan_is_fresh_until_something_changes() -> None:
    state = synced()
    reviewed = digested(LAB, state)
    guard.stale(reviewed, digested(LAB, state, now=100))


def test_a_change_by_hand_makes_it_stale_and_is_shown() -> None:
    state = synced()
    reviewed = digested(LAB, state)
    key = ("team", "", "")
    by_hand = {**state.associations, key: replace(state.associations[key], fairshare=5)}
    with pytest.raises(StalePlan, match="Slurm's associations") as bad:
        guard.stale(reviewed, digested(LAB, replace(state, associations=by_hand)))
    assert "account team, fairshare: planned no change, now 5 -> 160000" in str(bad.value)
    assert bad.value.code == 5


def test_a_change_of_budgets_makes_it_stale() -> None:
    state = synced()
    with pytest.raises(StalePlan, match="the budgets or settings"):
        guard.stale(digested(LAB, state), digested(EMPTY, state))


def test_another_clusters_plan_is_stale() -> None:
    made = digested(LAB, model.slurm())
    with pytest.raises(StalePlan, match="for cluster d"):
        guard.stale(replace(made, cluster="d"), made)


def test_digest_does_not_depend_on_order() -> None:
    state = synced()
    turned = dict(reversed(state.associations.items()))
    assert plans.state_digest(state) == plans.state_digest(replace(state, associations=turned))


def test_plain_text_is_grouped_and_gives_reasons() -> None:
    text = render.plain(plan(LAB, model.slurm()))
    assert text.splitlines()[0] == (
        "cluster c: QOS 4 to create; accounts 3 to create; users 3 to create (0 exist)"
    )
    team = text[text.index("\nteam\n") : text.index("\nother\n")]
    assert "+ QOS funded-team" in team
    assert "+ user ben in team" in team
    assert "6 x 16 GPUs, in whole nodes of 8" in team
    assert render.rich_text(plan(LAB, model.slurm())).plain == text


def test_nothing_to_do_is_one_line() -> None:
    assert render.plain(plan(LAB, synced())) == ("cluster c: nothing to do, 9 as the budgets say")


def test_markdown_shows_old_and_new() -> None:
    more = tree(*(replace(n, amount=Amount("gpus", 12)) if n.name == "other" else n
                  for n in LAB.nodes.values()))  # fmt: skip
    text = render.markdown(plan(more, synced()))
    assert "| ~ | QOS funded-other | grptres | `gres/gpu=48` | `gres/gpu=72` |" in text
