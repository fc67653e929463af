"""Budget trees: the arithmetic, the rules, and the file with its places."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_budget import budgetfile
from slurm_budget.core.budget import account_budgets, user_budgets
from slurm_budget.core.budget_rules import faults
from slurm_budget.errors import BadInput, BadInputs
from slurm_budget.state.budget import Amount, BudgetNode, BudgetTree, UserBudget

WEEK = 604_800
HOUR = 3_600_000

FILE = """\
cluster: main
accounts:
  institute:
    gpus: 32
    managers: [mara]
    accounts:
      vision:
        gpus: 16
        aliases: [seeing]
        users:
          ana:
          ben: {gpus: 4}
      language:
        share: 25
        users: [cleo, dan]
      maths: {gpu_hours: 100, valid_until: 2026-03-01}
"""


def load(text: str) -> BudgetTree:
    return budgetfile.load(text, "b.yaml", window=WEEK, now=0)


def test_amounts_of_the_three_kinds() -> None:
    budgets = account_budgets(load(FILE), WEEK, now=0)
    week = 168 * HOUR
    assert budgets == {
        "institute": 32 * week,
        "vision": 16 * week,
        "language": 8 * week,
        "maths": 100 * HOUR,
    }
    assert user_budgets(load(FILE), budgets, WEEK, 0) == {("vision", "ben"): 4 * week}


def test_a_budget_ends_at_valid_until() -> None:
    tree = load(FILE)
    end = tree.nodes["maths"].valid_until
    assert end is not None
    assert account_budgets(tree, WEEK, end - 1)["maths"] == 100 * HOUR
    assert account_budgets(tree, WEEK, end)["maths"] is None


def test_an_account_without_amount_is_the_sum_of_its_children_and_unset_is_not_zero() -> None:
    tree = load("cluster: c\naccounts:\n  a: {accounts: {b: {gpus: 2}, c: {gpus: 0}, d: }}\n  e:\n")
    budgets = account_budgets(tree, 3600, 0)
    assert budgets == {"a": 2 * HOUR, "b": 2 * HOUR, "c": 0, "d": None, "e": None}


def test_names_and_aliases_resolve_in_any_case() -> None:
    tree = load(FILE)
    assert tree.resolve("VISION") == "vision"
    assert tree.resolve("seeing") == "vision"
    assert tree.resolve("nobody") is None
    assert [node.name for node in tree.ancestors("vision")] == ["vision", "institute"]


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("a: 1", "b.yaml:1:1", "unknown key 'a'"),
        ("cluster: c\naccounts:\n  x: {gpu: 3}", "b.yaml:3:7", "did you mean gpus?"),
        ("cluster: c\naccounts:\n  x: {gpus: 2.5}", "b.yaml:3:7", "not a whole number"),
        ("cluster: c\naccounts:\n  x: {gpus: -1}", "b.yaml:3:7", "below zero"),
        ("cluster: c\naccounts:\n  x: {gpus: yes}", "b.yaml:3:7", "not a whole number"),
        ("cluster: c\naccounts:\n  x: {gpus: 1, share: 2}", "b.yaml:3:16", "keep one"),
        ("cluster: c\naccounts:\n  x: \n  X: ", "b.yaml:4:3", "Slurm folds names to lower case"),
        ("cluster: c\naccounts:\n  'a b': ", "b.yaml:3:3", "refuses"),
        ("cluster: c\naccounts:\n  root: ", "b.yaml:3:3", "belongs to Slurm"),
        ("cluster: c\naccounts:\n  x: {parent: y}\n  y: {parent: x}", "b.yaml:3:3", "ancestor"),
        ("cluster: c\naccounts:\n  x: &x {accounts: {y: *x}}", "b.yaml:3:6", "cycle"),
        ("cluster: c\naccounts:\n  x: {gpus: 3, accounts: {y: {gpus: 4}}}", "b.yaml:3:3", "672"),
        ("cluster: c\naccounts:\n  x: {share: 10}", "b.yaml:3:3", "no parent to share"),
        ("cluster: c\naccounts:\n  x: {share: 10, parent: q}", "b.yaml:3:3", "not there"),
        (
            "cluster: c\naccounts:\n  x: {gpus: 3, users: {u: {gpus: 4}}}",
            "b.yaml:3:3",
            "user u has",
        ),
        ("cluster: c\naccounts:\n  x: {gpus: 99999999999}", "b.yaml:3:3", "any cluster"),
        ("cluster: c\naccounts:\n  x: {valid_until: 2027-13-01}", "b.yaml:3:20", "no date"),
        ("cluster: c\n# \x07", "b.yaml", "not YAML"),
        ("cluster: c\naccounts:\n  x: {valid_from: soon}", "b.yaml:3:7", "not a date"),
        ("cluster: c\naccounts: [", "b.yaml:2:", "not YAML"),
        ("", "b.yaml", "no budgets"),
    ],
)
def test_every_fault_names_place_value_and_mend(text: str, place: str, words: str) -> None:
    with pytest.raises(BadInput) as caught:
        load(text)
    assert place in str(caught.value)
    assert words in str(caught.value)
    assert "mend:" in str(caught.value)


def test_one_run_reports_all_faults() -> None:
    with pytest.raises(BadInputs) as caught:
        load("cluster: c\naccounts:\n  x: {gpus: -1}\n  y: {gpus: 1.5}\n  z: {colour: red}\n")
    assert len(caught.value.faults) == 3


def test_overcommit_allows_children_above_their_parent() -> None:
    text = "cluster: c\naccounts:\n  x: {gpus: 3, overcommit: true, accounts: {y: {gpus: 4}}}"
    assert account_budgets(load(text), 3600, 0)["y"] == 4 * HOUR


NAMES = st.from_regex(r"[a-z][a-z0-9_]{0,6}", fullmatch=True).filter(
    lambda name: name not in {"root", "parent", "none", "all"}
)


@st.composite
def trees(draw: st.DrawFn) -> BudgetTree:
    """Good trees: amounts shrink downwards, so children never pass their parent."""
    names = draw(st.lists(NAMES, unique=True, min_size=1, max_size=8))
    nodes: dict[str, BudgetNode] = {}
    for i, name in enumerate(names):
        parent = draw(st.sampled_from([None, *nodes])) if nodes else None
        amount = draw(
            st.one_of(
                st.none(),
                st.builds(Amount, st.just("gpu_hours"), st.integers(0, 10 ** (9 - i))),
                st.builds(Amount, st.just("gpus"), st.integers(0, 10 ** (5 - i // 2)))
                if parent is None
                else st.builds(Amount, st.just("share"), st.integers(0, 10)),
            )
        )
        users = tuple(UserBudget(user) for user in draw(st.lists(NAMES, unique=True, max_size=3)))
        nodes[name] = BudgetNode(name, parent, amount, users=users, overcommit=True)
    ordered: dict[str, BudgetNode] = {}

    def visit(parent: str | None) -> None:
        for node in nodes.values():
            if node.parent == parent:
                ordered[node.name] = node
                visit(node.name)

    visit(None)
    return BudgetTree("main", ordered)


@given(trees())
def test_dump_and_load_give_the_same_tree(tree: BudgetTree) -> None:
    assert load(budgetfile.dump(tree)).nodes == tree.nodes


@given(trees())
def test_good_trees_have_no_faults_and_every_account_a_figure(tree: BudgetTree) -> None:
    assert faults(tree, WEEK, 0) == []
    budgets = account_budgets(tree, WEEK, 0)
    assert budgets.keys() == tree.nodes.keys()
    for name, node in tree.nodes.items():
        if node.amount is None:
            below = [budgets[child.name] for child in tree.children(name)]
            given_ = [ms for ms in below if ms is not None]
            assert budgets[name] == (sum(given_) if given_ else None)
