from fractions import Fraction
from math import inf

from hypothesis import given
from hypothesis import strategies as st

from slurm_budget.core.budget import account_budgets, user_budgets
from slurm_budget.core.standing import (
    Key,
    Standing,
    Sums,
    standings,
    unknown_accounts,
    user_standings,
    worse,
)
from slurm_budget.state.budget import Amount, BudgetNode, BudgetTree, UserBudget


def gpu_hours(value: int) -> Amount:
    return Amount("gpu_hours", value)


TREE = BudgetTree(
    "c",
    {
        "institute": BudgetNode("institute", amount=gpu_hours(100)),
        "vision": BudgetNode(
            "vision",
            "institute",
            gpu_hours(60),
            users=(UserBudget("ana", gpu_hours(30)), UserBudget("ben")),
            aliases=("sight",),
        ),
        "language": BudgetNode("language", "institute", gpu_hours(20)),
        "speech": BudgetNode("speech", "language", gpu_hours(10), gres="gres/gpu:h100"),
        "guests": BudgetNode("guests"),
    },
)
BUDGETS = account_budgets(TREE, 604800, 0)
HOUR = 3_600_000
accounts = st.sampled_from([*TREE.nodes, "sight", "nobody", ""])
keys = st.tuples(accounts, st.sampled_from(["ana", "ben"]), st.sampled_from(["", "h100"]))
figures = st.dictionaries(keys, st.integers(0, 10**9))


def stand(use: dict[Key, int] | None = None, **others: dict[Key, int]) -> dict[str, Standing]:
    sums = Sums(others.get("charge", {}), use or {})
    return standings(TREE, BUDGETS, sums, others.get("reserved", {}))


@given(figures, figures, figures)
def test_children_and_own_jobs_add_up_to_their_parent(
    charge: dict[Key, int], use: dict[Key, int], reserved: dict[Key, int]
) -> None:
    found = standings(TREE, BUDGETS, Sums(charge, use), reserved)

    def direct(amounts: dict[Key, int], account: str) -> int:
        return sum(amount for key, amount in amounts.items() if key[0] == account)

    for figure, amounts in (("charge", charge), ("use", use), ("reserved", reserved)):
        children = getattr(found["vision"], figure) + getattr(found["language"], figure)
        assert getattr(found["institute"], figure) == children + direct(amounts, "institute")
        assert getattr(found["guests"], figure) == direct(amounts, "guests")


def test_an_alias_is_its_account() -> None:
    assert stand({("sight", "ana", ""): 5})["vision"].use == 5


def test_a_budget_of_one_type_counts_that_type_alone() -> None:
    found = stand({("speech", "ana", ""): 5, ("speech", "ana", "h100"): 3})
    assert (found["speech"].use, found["language"].use) == (3, 8)


def test_no_budget_is_not_a_budget_of_nothing() -> None:
    none = Standing("x", None, 0, 0, 5)
    assert (none.balance, none.standing) == (None, None)
    assert Standing("x", 0, 0, 0, 5).standing == inf
    assert Standing("x", 0, 0, 0, 0).standing == Fraction(0)
    assert Standing("x", 10, 4, 3, 5).balance == 3
    assert Standing("x", 10, 4, 3, 5).standing == Fraction(1, 2)


def test_users_with_a_budget_of_their_own() -> None:
    users = user_budgets(TREE, BUDGETS, 604800, 0)
    use = {("vision", "ana", ""): 6 * HOUR, ("vision", "ben", ""): 9, ("guests", "ana", ""): 7}
    found = user_standings(TREE, users, Sums({}, use), {("sight", "ana", ""): HOUR})
    assert list(found) == [("vision", "ana")]
    ana = found["vision", "ana"]
    assert (ana.use, ana.balance, ana.standing) == (6 * HOUR, 29 * HOUR, Fraction(1, 5))


def test_accounts_that_no_budget_names_are_listed() -> None:
    assert unknown_accounts(TREE, Sums({}, {("x", "u", ""): 3, ("sight", "u", ""): 1})) == {"x": 3}


def test_worse_compares_below_the_common_ancestor() -> None:
    use = {("vision", "ana", ""): 30 * HOUR, ("speech", "ana", "h100"): 12 * HOUR}
    found = stand(use)
    # vision 30/60 against language 12/20, though speech itself is at 12/10
    assert worse("speech", "vision", TREE, found, 0.05)
    assert not worse("vision", "speech", TREE, found, 0.05)
    assert not worse("speech", "vision", TREE, found, 0.10), "by more than the margin, not by it"
    assert not worse("vision", "vision", TREE, found, 0)


def test_worse_without_a_budget_or_with_a_budget_of_nothing() -> None:
    found = stand({("vision", "ana", ""): 90 * HOUR})
    assert worse("guests", "vision", TREE, found, 0.05)
    assert not worse("vision", "guests", TREE, found, 0.05)
    nothing = {**found, "language": Standing("language", 0, 0, 0, 1)}
    assert worse("language", "vision", TREE, nothing, 0.05)
    assert not worse("vision", "language", TREE, nothing, 0.05)


def test_worse_between_an_account_and_one_below_it() -> None:
    # the institute keeps 100 - 60 - 20 = 20 for its own jobs
    found = stand({("institute", "dean", ""): 19 * HOUR, ("vision", "ana", ""): 6 * HOUR})
    assert worse("institute", "vision", TREE, found, 0.05)
    assert not worse("vision", "institute", TREE, found, 0.05)
