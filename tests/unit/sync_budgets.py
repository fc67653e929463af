"""Budget trees to sync, written and drawn, and the plan for one."""

from dataclasses import replace

from hypothesis import strategies as st

from slurm_budget.core import plan as plans
from slurm_budget.core.desire import desire
from slurm_budget.core.plan import Plan
from slurm_budget.state.budget import Amount, BudgetNode, BudgetTree, UserBudget
from slurm_budget.state.slurm import QosPolicy, SlurmState

WEEK = 604_800
POLICY = QosPolicy()


def node(
    name: str,
    parent: str | None = None,
    gpus: int | None = None,
    users: tuple[UserBudget, ...] = (),
    **more: object,
) -> BudgetNode:
    amount = None if gpus is None else Amount("gpus", gpus)
    return replace(BudgetNode(name, parent, amount, users=users), **more)  # type: ignore[arg-type]


def tree(*nodes: BudgetNode) -> BudgetTree:
    return BudgetTree("c", {n.name: n for n in nodes})


def plan(budgets: BudgetTree, state: SlurmState, policy: QosPolicy = POLICY, now: int = 0) -> Plan:
    return plans.make(desire(budgets, state, policy, WEEK, now), state, now)


def values(made: Plan, title: str) -> dict[str, str]:
    return {f.name: f.new for c in made.changes if c.title == title for f in c.fields}


LAB = tree(
    node("lab", gpus=32),
    node("team", "lab", 16, (UserBudget("ana"), UserBudget("ben", Amount("gpus", 4)))),
    node("other", "lab", 8, (UserBudget("carl"),)),
)


NAMES = ["a", "b", "c", "d", "e", "f"]
AMOUNTS = st.one_of(
    st.none(),
    st.integers(0, 64).map(lambda n: Amount("gpus", n)),
    st.integers(0, 5000).map(lambda n: Amount("gpu_hours", n)),
)


@st.composite
def trees(draw: st.DrawFn) -> BudgetTree:
    """Any shape, any amounts; sums are not checked here, so overcommit is drawn too."""
    nodes: dict[str, BudgetNode] = {}
    for name in draw(st.lists(st.sampled_from(NAMES), unique=True, max_size=6)):
        parent = draw(st.sampled_from([None, *nodes]))
        amount = draw(AMOUNTS)
        if parent is not None and draw(st.booleans()):
            amount = Amount("share", draw(st.integers(0, 100)))
        users = tuple(
            UserBudget(user, draw(AMOUNTS))
            for user in draw(st.lists(st.sampled_from("uvwx"), unique=True, max_size=3))
        )
        gres = draw(st.sampled_from(["gres/gpu", "gres/gpu:h100"]))
        nodes[name] = BudgetNode(name, parent, amount, gres, users)
    return BudgetTree("c", nodes)
