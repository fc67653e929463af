"""observe -> desire -> diff -> guard -> apply -> observe again -> must be empty."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from slurm_budget.core import drift, guard
from slurm_budget.core import plan as plans
from slurm_budget.core.desire import desire
from slurm_budget.core.guard import Overrides
from slurm_budget.core.plan import Change, Plan
from slurm_budget.errors import BadInput, StalePlan
from slurm_budget.ports import AssociationPort
from slurm_budget.settings import Settings
from slurm_budget.state.budget import BudgetTree
from slurm_budget.state.slurm import Desired, QosPolicy, RowKey, SlurmState
from slurm_budget.text import tres
from slurm_budget.usecases.accounting import weights_of, window_of


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a sync went. `applied` took; `failed` did not, with what Slurm said or how it looks now;
    `left` were not tried, and `stopped` says why (empty: it went through). `late` are QOS
    whose limit slurmdbd has and slurmctld does not know, with what it has instead."""

    applied: tuple[Change, ...] = ()
    failed: tuple[tuple[Change, str], ...] = ()
    left: tuple[Change, ...] = ()
    stopped: str = ""
    late: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Prepared:
    """A plan with what it was made from."""

    plan: Plan
    state: SlurmState
    tree: BudgetTree
    policy: QosPolicy


def policy_of(settings: Settings) -> QosPolicy:
    """The settings that the core needs, as it knows them."""
    qos = settings.qos
    return QosPolicy(
        preempt_exempt_time=qos.preempt_exempt_time,
        grace_time=qos.grace_time,
        usage_factor=qos.usage_factor,
        burst=qos.burst,
        backstop=qos.backstop,
        funded_priority=qos.funded_priority,
        preemptible_priority=qos.preemptible_priority,
        weights=weights_of(settings),
    )


def prepare(slurm: AssociationPort, tree: BudgetTree, settings: Settings, now: int) -> Prepared:
    """Observe and plan; nothing is changed. `now` in epoch seconds.

    Raises SlurmUnreachable where Slurm does not answer, BadInput where it does not account the GPUs
    that a budget counts.
    """
    policy = policy_of(settings)
    window = window_of(settings).budget_seconds
    digest = plans.budget_digest(tree, policy, window, now)

    def planned(state: SlurmState) -> Prepared:
        desired = desire(tree, state, policy, window, now)
        _accounted(desired, state)
        return Prepared(plans.make(desired, state, now, digest), state, tree, policy)

    quick = planned(slurm.observe(tree.cluster))
    # What is in force takes Slurm twice as long to say, and only new lists depend on it.
    return planned(slurm.in_force(quick.state)) if quick.plan else quick


def make_plan(slurm: AssociationPort, tree: BudgetTree, settings: Settings, now: int) -> Plan:
    """What sync would do now."""
    return prepare(slurm, tree, settings, now).plan


def _accounted(desired: Desired, state: SlurmState) -> None:
    """A limit on a TRES that Slurm does not account cannot be written, and its use is free."""
    kinds = {"gres/gpu"}
    for item in desired.wanted:
        kinds.update(tres.limits(item.fields.get("grptres", "")))
    missing = sorted(kinds - state.tres)
    if missing:
        have = sorted(name for name in state.tres if name.startswith("gres/"))
        raise BadInput(
            f"Slurm does not account {', '.join(missing)}, so no limit can name it",
            where="slurm.conf",
            mend=f"set AccountingStorageTRES={','.join(sorted({*have, *missing}))} and restart"
            " slurmctld",
        )


DRIFT_DAYS = 30
"""How far back the transaction log is read for who changed something by hand."""


def with_drift(
    slurm: AssociationPort,
    prepared: Prepared,
    settings: Settings,
    now: int,
    tree_at: Callable[[int], BudgetTree],
) -> Prepared:
    """The same plan with a note for each field that somebody changed by hand, as far as can be
    told, and who.

    `tree_at(time)` gives the budgets of an epoch second. Asks Slurm only if something would be
    modified; raises SlurmUnreachable where the log cannot be read.
    """
    plan = prepared.plan
    if not plan.modified:
        return prepared
    known: list[tuple[BudgetTree, drift.Wants]] = []
    window = window_of(settings).budget_seconds

    def wanted_at(time: int) -> drift.Wants:
        tree = tree_at(time)
        for seen, wants in known:
            if seen == tree:
                return wants
        then = desire(tree, prepared.state, prepared.policy, window, time)
        wants = {(item.key, k): v for item in then.wanted for k, v in item.fields.items()}
        known.append((tree, wants))
        return wants

    log = slurm.transactions(plan.cluster, now - DRIFT_DAYS * 86400)
    found = drift.find(plan, log, wanted_at)
    notes = tuple(map(str, found)) + plan.notes
    return replace(prepared, plan=replace(plan, notes=notes))


def check_reviewed(slurm: AssociationPort, prepared: Prepared, reviewed: Plan) -> None:
    """Raise StalePlan, with who changed what since, when `reviewed` is not what would happen."""
    try:
        guard.stale(reviewed, prepared.plan)
    except StalePlan as stale:
        log = slurm.transactions(prepared.plan.cluster, reviewed.made_at)
        lines = [f"\n  {line}" for line in drift.since(log)]
        said = "\n  in Slurm since then:" + "".join(lines) if lines else ""
        raise StalePlan(stale.what + said, where=stale.where, mend=stale.mend) from None


def check(
    slurm: AssociationPort,
    prepared: Prepared,
    settings: Settings,
    overrides: Overrides | None = None,
) -> None:
    """The guard. Raises Refused with every reason; asks Slurm what runs only if a limit changes."""
    in_use = slurm.in_use() if guard.lowered(prepared.plan) else {}
    guard.check(
        guard.refusals(
            prepared.plan,
            prepared.tree,
            prepared.state,
            prepared.policy,
            settings.sync.max_change,
            in_use,
            overrides,
        )
    )


def apply_plan(
    slurm: AssociationPort,
    prepared: Prepared,
    settings: Settings,
    now: int,
    *,
    reviewed: Plan | None = None,
    overrides: Overrides | None = None,
    progress: Callable[[int], None] = lambda rows: None,
    stop: Callable[[], bool] = lambda: False,
) -> Outcome:
    """Apply, then observe again: what did not take is a failure, whatever Slurm answered.

    Raises StalePlan when `reviewed` is not what would happen now, Refused from the guard,
    SlurmUnreachable when Slurm cannot be read. `stop` is asked between calls.
    """
    if reviewed is not None:
        check_reviewed(slurm, prepared, reviewed)
    check(slurm, prepared, settings, overrides)
    if not prepared.plan:
        return Outcome()
    report = slurm.write(prepared.plan.changes, prepared.state, progress, stop)
    seen = prepare(slurm, prepared.tree, settings, now)
    after = seen.plan
    still = {change.key: change for change in after.changes}
    planned = {change.key: change for change in prepared.plan.changes}
    applied, failed, left = [], [], []
    for key, change in planned.items():
        if key not in still:
            applied.append(change)
        elif key in report.not_tried:
            left.append(still[key])
        else:
            failed.append((still[key], _why(key, still[key], report.failed.get(key, ""))))
    failed += [
        (change, "it was right before, and is not now")
        for key, change in still.items()
        if key not in planned
    ]
    touched = [c.name for c in applied if c.kind == "qos" and c.value("grptres") is not None]
    late = slurm.lagging([seen.state.qos[name] for name in touched])
    return Outcome(tuple(applied), tuple(failed), tuple(left), report.stopped, late)


def _why(key: RowKey, now: Change, said: str) -> str:
    if said:
        return said
    if now.action == "create":
        return f"Slurm gave no error, but there is no {key[0]} {key[2]}"
    values = ", ".join(f"{f.name} is {f.old or 'unset'}, not {f.new}" for f in now.fields)
    return f"Slurm gave no error, but {values}"
