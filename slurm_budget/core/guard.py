"""What a plan must not do unless somebody says so. Pure; fails closed.

Each refusal has the numbers and the flag that overrides it. Creating rows is never refused; only
what exists can be damaged.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from slurm_budget.core.plan import Change, Plan
from slurm_budget.errors import Refused, StalePlan
from slurm_budget.state.budget import BudgetTree
from slurm_budget.state.slurm import ROOT, QosPolicy, SlurmState
from slurm_budget.text import tres

LIMIT_FIELDS = ("grptres",)


@dataclass(frozen=True, slots=True)
class Overrides:
    """What the caller takes upon themselves."""

    allow_empty: bool = False
    max_change: float | None = None
    below_running: bool = False


def lowered(plan: Plan) -> list[Change]:
    """Changes that set a limit of a QOS that exists: only these can fall below what runs."""
    return [
        change
        for change in plan.changes
        if change.kind == "qos"
        and change.action == "modify"
        and any(field.name in LIMIT_FIELDS for field in change.fields)
    ]


def refusals(
    plan: Plan,
    tree: BudgetTree,
    state: SlurmState,
    policy: QosPolicy,
    max_change: float,
    in_use: Mapping[str, Mapping[str, int]],
    overrides: Overrides | None = None,
) -> list[Refused]:
    """Every reason not to apply this plan. `in_use`: GPUs that run now, by QOS and type; the key of
    all types together is the empty string."""
    over = overrides or Overrides()
    out = []
    if not over.allow_empty:
        out += _empty(plan, tree, state, policy)
    allowed = max_change if over.max_change is None else over.max_change
    if plan.existing and plan.modified / plan.existing > allowed:
        out.append(
            Refused(
                f"{plan.modified} of {plan.existing} QOS, accounts and users that exist would"
                f" change ({plan.modified / plan.existing:.0%}, allowed {allowed:.0%})",
                mend="look at the plan; if it is right, --max-change 100 (per cent)",
            )
        )
    if not over.below_running:
        out += [bad for change in lowered(plan) for bad in _below(change, in_use)]
    return out


def check(refused: list[Refused]) -> None:
    """Raise them as one."""
    if len(refused) == 1:
        raise refused[0]
    if refused:
        raise Refused("the guard refuses:\n" + "\n".join(str(one) for one in refused))


def _empty(plan: Plan, tree: BudgetTree, state: SlurmState, policy: QosPolicy) -> list[Refused]:
    if (ROOT, "", "") not in state.associations:
        return [
            Refused(
                f"Slurm shows {len(state.associations)} associations of cluster {plan.cluster} and"
                " no root account among them, so it was not read whole",
                mend="check `sacctmgr show assoc` and your permission; --allow-empty to go on",
            )
        ]
    funded = sum(name.startswith(policy.funded_prefix) for name in state.qos)
    if not tree.nodes and funded:
        return [
            Refused(
                f"the budgets of cluster {plan.cluster} name 0 accounts, Slurm has {funded} funded"
                " QOS, which would all be limited to nothing",
                mend="check `sbudget budget show`; --allow-empty if all budgets shall go",
            )
        ]
    return []


def _below(change: Change, in_use: Mapping[str, Mapping[str, int]]) -> list[Refused]:
    used = in_use.get(change.name, {})
    out = []
    for name, value in tres.limits(change.value("grptres") or "").items():
        running = used.get(name.removeprefix("gres/gpu").removeprefix(":"), 0)
        if value.isdigit() and int(value) < running:
            out.append(
                Refused(
                    f"{change.title}: the limit {name}={value} is below the {running} GPUs that"
                    " run in it now (they would go on, but nothing new starts)",
                    mend="wait until they end, or --below-running",
                )
            )
    return out


def stale(reviewed: Plan, fresh: Plan) -> None:
    """Raise StalePlan when Slurm or the budgets are not what they were when `reviewed` was made."""
    if reviewed.cluster != fresh.cluster:
        raise StalePlan(
            f"the plan is for cluster {reviewed.cluster}, this is {fresh.cluster}",
            mend="make a plan for this cluster",
        )
    changed = [
        name
        for name, same in (
            ("Slurm's associations or QOS", reviewed.slurm_digest == fresh.slurm_digest),
            ("the budgets or settings", reviewed.budget_digest == fresh.budget_digest),
        )
        if not same
    ]
    if changed:
        raise StalePlan(
            f"{' and '.join(changed)} changed since the plan was made"
            + "".join(f"\n  {line}" for line in differences(reviewed, fresh)),
            mend="make the plan again, review it, then sync that one",
        )


def differences(reviewed: Plan, fresh: Plan, most: int = 20) -> list[str]:
    """How the fresh plan differs from the reviewed one, a line each."""
    old = {(c.key, f.name): f for c in reviewed.changes for f in c.fields}
    new = {(c.key, f.name): f for c in fresh.changes for f in c.fields}
    titles = {c.key: c.title for c in (*reviewed.changes, *fresh.changes)}
    out = []
    for key in sorted(old.keys() | new.keys()):
        was, now = old.get(key), new.get(key)
        if (was and (was.old, was.new)) == (now and (now.old, now.new)):
            continue
        left = f"{was.old or 'unset'} -> {was.new}" if was else "no change"
        right = f"{now.old or 'unset'} -> {now.new}" if now else "no change"
        out.append(f"{titles[key[0]]}, {key[1]}: planned {left}, now {right}")
    if len(out) > most:
        out[most:] = [f"and {len(out) - most} more"]
    return out or ["in what the plan does not change"]
