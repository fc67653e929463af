"""A model of what slurmdbd does with a plan: lists and DefaultQOS are inherited from above."""

from dataclasses import replace

from slurm_budget.core import limits
from slurm_budget.core.plan import Change, Plan
from slurm_budget.state.slurm import Association, AssocKey, Qos, SlurmState
from slurm_budget.text import durations, tres

ROOT_ROW = Association("c", "root", own_qos=frozenset({"normal"}), qos=frozenset({"normal"}))
TRES = frozenset({"gres/gpu", "gres/gpu:h100", "cpu"})


def slurm(*rows: Association, qos: tuple[Qos, ...] = ()) -> SlurmState:
    """A cluster of nodes with 8 GPUs, root's rows and `rows`."""
    everything = (ROOT_ROW, Association("c", "root", "root"), *rows)
    state = SlurmState(
        cluster="c",
        associations={row.key: row for row in everything},
        qos={row.name: row for row in (Qos("normal"), *qos)},
        tres=TRES,
        node_gpus={"": 8, "h100": 8},
    )
    return inherit(state)


def inherit(state: SlurmState) -> SlurmState:
    """Fill in what is in force from what each row says itself."""
    done: dict[AssocKey, Association] = {}

    def settle(key: AssocKey) -> Association:
        if key in done:
            return done[key]
        row = state.associations[key]
        above = (row.account, "", "") if row.user else (row.parent, "", "")
        parent = settle(above) if above in state.associations and above != key else None
        done[key] = replace(
            row,
            qos=row.own_qos or (parent.qos if parent else frozenset()),
            default_qos=row.own_default_qos or (parent.default_qos if parent else ""),
        )
        return done[key]

    return replace(state, associations={key: settle(key) for key in state.associations})


def apply(state: SlurmState, plan: Plan) -> SlurmState:
    """The state after the plan; fails where Slurm would refuse."""
    rows, qos = dict(state.associations), dict(state.qos)
    for change in plan.changes:
        values = {field.name: field.new for field in change.fields}
        if change.kind == "qos":
            assert (change.name in qos) == (change.action == "modify")
            qos[change.name] = _qos(qos.get(change.name, Qos(change.name)), change, values)
            continue
        user = change.name if change.kind == "user" else ""
        key = (change.account, user, change.partition)
        assert (key in rows) == (change.action == "modify")
        row = rows.get(key, Association(state.cluster, change.account, user, change.partition))
        if user:
            assert (change.account, "", "") in rows, "a user before the account"
        rows[key] = _row(row, values)
        if not user:
            assert (rows[key].parent, "", "") in rows or row.account == "root", "no such parent"
    after = inherit(replace(state, associations=rows, qos=qos))
    for row in after.associations.values():
        assert not row.default_qos or row.default_qos in row.qos, (
            f"{row.key} cannot use its default"
        )
        assert row.qos <= set(after.qos)
    return after


def _row(row: Association, values: dict[str, str]) -> Association:
    share = values.get("fairshare", str(row.fairshare))
    return replace(
        row,
        parent=values.get("parent", row.parent),
        fairshare="parent" if share == "parent" else int(share),
        own_qos=frozenset(values["qos"].split(",")) if "qos" in values else row.own_qos,
        own_default_qos=values.get("defaultqos", row.own_default_qos),
    )


def _limit(old: str, change: Change, name: str) -> str:
    new = change.value(name)
    if new is None:
        return old
    items = tres.limits(old) | tres.limits(limits.to_set(limits.gpu_part(old), new))
    return tres.canonical(",".join(f"{k}={v}" for k, v in items.items() if v != "-1"))


def _qos(row: Qos, change: Change, values: dict[str, str]) -> Qos:
    exempt = values.get("preemptexempttime")
    grace = values.get("gracetime")
    return replace(
        row,
        priority=int(values.get("priority", row.priority)),
        preempt=frozenset(filter(None, values["preempt"].split(",")))
        if "preempt" in values
        else row.preempt,
        preempt_mode=values.get("preemptmode", row.preempt_mode),
        preempt_exempt_time=int(durations.elapsed(exempt)) if exempt else row.preempt_exempt_time,
        grace_time=int(durations.elapsed(grace)) if grace else row.grace_time,
        usage_factor=float(values.get("usagefactor", row.usage_factor)),
        grp_tres=_limit(row.grp_tres, change, "grptres"),
        grp_tres_mins=_limit(row.grp_tres_mins, change, "grptresmins"),
    )


def plan_of(state: SlurmState) -> Plan:
    """A plan without changes, to be filled."""
    return Plan(state.cluster, 0, ())
