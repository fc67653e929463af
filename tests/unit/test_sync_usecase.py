"""apply_plan believes what it sees, not what Slurm answers; and what adoption takes over."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pytest
import slurmdbd_model as model
from sync_budgets import LAB, node, tree, values

from slurm_budget.core.adopt import adopt
from slurm_budget.core.desire import desire
from slurm_budget.core.guard import Overrides
from slurm_budget.core.plan import Change
from slurm_budget.errors import BadInput, Refused, StalePlan
from slurm_budget.settings import Settings, WindowSettings
from slurm_budget.state.budget import Amount, BudgetTree
from slurm_budget.state.slurm import (
    AccountInfo,
    Association,
    Qos,
    QosPolicy,
    SlurmState,
    Transaction,
    WriteReport,
)
from slurm_budget.usecases import sync

SETTINGS = Settings()
ALL = Overrides(allow_empty=True, max_change=1.0, below_running=True)


@dataclass
class Port:
    """A slurmdbd that loses the changes of some rows, and answers what it is told to."""

    state: SlurmState = field(default_factory=model.slurm)
    lost: frozenset[str] = frozenset()
    report: WriteReport = field(default_factory=WriteReport)
    used: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    log: Sequence[Transaction] = ()
    late: Mapping[str, str] = field(default_factory=dict)
    asked_in_use: int = 0
    asked_log: int = 0

    def observe(self, cluster: str) -> SlurmState:
        return self.state

    def in_force(self, state: SlurmState) -> SlurmState:
        return self.state

    def in_use(self) -> Mapping[str, Mapping[str, int]]:
        self.asked_in_use += 1
        return self.used

    def write(
        self,
        changes: Sequence[Change],
        state: SlurmState,
        progress: Callable[[int], None],
        stop: Callable[[], bool],
    ) -> WriteReport:
        kept = tuple(c for c in changes if c.title not in self.lost)
        self.state = model.apply(state, replace(model.plan_of(state), changes=kept))
        progress(len(kept))
        return self.report

    def lagging(self, qos: Iterable[Qos]) -> Mapping[str, str]:
        return self.late

    def transactions(self, cluster: str, since: int) -> list[Transaction]:
        self.asked_log += 1
        return list(self.log)


def run(port: Port, budgets: BudgetTree = LAB) -> sync.Outcome:
    prepared = sync.prepare(port, budgets, SETTINGS, 0)
    return sync.apply_plan(port, prepared, SETTINGS, 0, overrides=ALL)


def test_all_of_it_and_then_nothing() -> None:
    port = Port()
    done = run(port)
    assert len(done.applied) == 10
    assert not done.failed
    assert run(port) == sync.Outcome()


def test_what_slurm_says_it_did_and_did_not_is_a_failure() -> None:
    port = Port()
    run(port)
    port.lost = frozenset({"account other"})
    more = tree(*(replace(n, amount=Amount("gpus", 12)) if n.name == "other" else n
                  for n in LAB.nodes.values()))  # fmt: skip
    ((change, why),) = run(port, more).failed
    assert change.title == "account other"
    assert why == "Slurm gave no error, but fairshare is 80000, not 120000"
    port.lost = frozenset()
    assert [c.title for c in run(port, more).applied] == ["account other"]


def test_what_slurm_answered_is_the_reason() -> None:
    key = ("user", "other", "carl", "")
    port = Port(lost=frozenset({"user carl in other"}))
    port.report = WriteReport({key: "no such uid"})  # type: ignore[dict-item]
    assert [why for _, why in run(port).failed] == ["no such uid"]


def test_an_error_of_a_change_that_took_is_no_failure() -> None:
    port = Port(report=WriteReport({("account", "lab", "lab", ""): "timed out"}))
    assert run(port).failed == ()


def test_what_was_not_tried_is_left() -> None:
    port = Port(lost=frozenset({"user carl in other"}))
    port.report = WriteReport({}, frozenset({("user", "other", "carl", "")}), "interrupted")
    done = run(port)
    assert [c.title for c in done.left] == ["user carl in other"]
    assert done.stopped == "interrupted"


def test_a_slurmctld_that_does_not_know_yet_is_told_of() -> None:
    assert run(Port(late={"funded-lab": "unset"})).late == {"funded-lab": "unset"}


def test_slurm_is_asked_what_runs_only_when_a_limit_changes() -> None:
    port = Port()
    run(port)
    assert port.asked_in_use == 0
    port.used = {"funded-other": {"": 30}}
    less = tree(*(replace(n, amount=Amount("gpus", 4)) if n.name == "other" else n
                  for n in LAB.nodes.values()))  # fmt: skip
    prepared = sync.prepare(port, less, SETTINGS, 0)
    with pytest.raises(Refused, match="below the 30 GPUs"):
        sync.check(port, prepared, SETTINGS)
    assert port.asked_in_use == 1


def test_a_decaying_window_is_as_long_for_sync_as_for_the_ledger() -> None:
    """One GPU that is always busy adds up to half_life / ln 2: 242.4 GPU-hours for a week."""
    budgets = tree(node("steady", gpus=1), node("hours", amount=Amount("gpu_hours", 242)))
    decaying = SETTINGS.model_copy(update={"window": WindowSettings(kind="decay")})
    made = sync.prepare(Port(), budgets, decaying, 0).plan
    share = {name: int(values(made, f"account {name}")["fairshare"]) for name in budgets.nodes}
    assert share["hours"] / share["steady"] == pytest.approx(242 / 242.37, rel=0.002)


def test_a_type_that_is_not_accounted_names_the_line() -> None:
    typed = tree(node("lab", gpus=8, gres="gres/gpu:a100"))
    with pytest.raises(BadInput, match="does not account gres/gpu:a100") as bad:
        sync.prepare(Port(), typed, SETTINGS, 0)
    assert "AccountingStorageTRES=gres/gpu,gres/gpu:a100,gres/gpu:h100" in bad.value.mend
    assert bad.value.code == 2


def test_a_stale_plan_says_who() -> None:
    port = Port()
    run(port)
    reviewed = sync.make_plan(port, LAB, SETTINGS, 0)
    row = ("team", "", "")
    rows = dict(port.state.associations)
    rows[row] = replace(rows[row], fairshare=5)
    port.state = replace(port.state, associations=rows)
    port.log = [
        Transaction(
            60, "Modify Associations", "mara",
            frozenset({("account", "team", "team", "")}), frozenset({"fairshare"}),
        )
    ]  # fmt: skip
    prepared = sync.prepare(port, LAB, SETTINGS, 100)
    with pytest.raises(StalePlan, match="mara: Modify Associations, team: fairshare"):
        sync.apply_plan(port, prepared, SETTINGS, 100, reviewed=reviewed)
    noted = sync.with_drift(port, prepared, SETTINGS, 100, lambda at: LAB).plan.notes
    assert noted[0].startswith("by hand: account team: fairshare 5 was set by mara on 1970-01-01")
    other = tree(node("team", gpus=1), node("x", gpus=1))
    assert not sync.with_drift(port, prepared, SETTINGS, 100, lambda at: other).plan.notes[1:]


def test_other_settings_are_not_called_a_hand() -> None:
    """A sync under yesterday's settings looks as a hand would: there is no history of settings."""
    port = Port()
    run(port)
    port.log = [
        Transaction(
            60, "Add QOS", "root",
            frozenset({("qos", "", "preemptible", "")}), frozenset({"gracetime"}),
        )
    ]  # fmt: skip
    today = SETTINGS.model_copy(
        update={"qos": SETTINGS.qos.model_copy(update={"grace_time": SETTINGS.qos.grace_time + 60})}
    )
    prepared = sync.prepare(port, LAB, today, 100)
    (note,) = [n for n in sync.with_drift(port, prepared, today, 100, lambda at: LAB).plan.notes
               if "gracetime" in n]  # fmt: skip
    assert note.startswith("by hand, or by a sync under other settings: QOS preemptible: gracetime")
    assert "not by the budgets under today's settings" in note


def test_the_log_is_not_read_when_nothing_is_modified() -> None:
    port = Port()
    sync.with_drift(port, sync.prepare(port, LAB, SETTINGS, 0), SETTINGS, 0, lambda at: LAB)
    assert port.asked_log == 0


# adoption

SITE = (
    Association("c", "dept", parent="root", fairshare=30, grp_tres="cpu=64"),
    Association("c", "group", parent="dept", fairshare=20, own_qos=frozenset({"high", "normal"}),
                own_default_qos="high"),
    Association("c", "peer", parent="dept", fairshare=60),
    Association("c", "group", "ana", fairshare=4),
    Association("c", "dept", "ana"),
    Association("c", "group", "ben", fairshare="parent"),
    Association("c", "group", "ben", "gpu"),
    Association("c", "peer", "cleo", own_qos=frozenset({"high"}), own_default_qos="high"),
    Association("c", "odd+name", parent="root"),
    Association("c", "below", parent="odd+name"),
)  # fmt: skip


def test_an_adopted_cluster_keeps_all_that_people_set() -> None:
    state = model.slurm(*SITE, qos=(Qos("high"),))
    taken = adopt(state, {}, 64)
    assert [n.name for n in taken.tree.nodes.values()] == ["dept", "group", "peer"]
    assert [u.name for u in taken.tree.nodes["group"].users] == ["ana", "ben"]
    plan = sync.plans.make(desire(taken.tree, state, QosPolicy(), 604_800, 0), state, 0)
    after = model.apply(state, plan)
    for key, row in state.associations.items():
        now = after.associations[key]
        assert (now.fairshare, now.parent, now.grp_tres) == (
            row.fairshare,
            row.parent,
            row.grp_tres,
        )
        assert row.qos <= now.qos, "lists only grow"
        assert row.own_default_qos in ("", now.own_default_qos)
    assert not sync.plans.make(desire(taken.tree, after, QosPolicy(), 604_800, 0), after, 0)


def test_adoption_says_what_it_left_out_and_what_fairshare_stands_for() -> None:
    info = {"group": AccountInfo("Vision group", ("mara",)), "peer": AccountInfo("peer")}
    taken = adopt(model.slurm(*SITE, qos=(Qos("high"),)), info, 64)
    assert taken.tree.nodes["group"].managers == ("mara",)
    assert taken.tree.nodes["group"].description == "Vision group"
    assert taken.tree.nodes["peer"].description == ""
    assert [line.split(":")[0] for line in taken.skipped] == ["account odd+name", "account below"]
    assert "group: fairshare 20 is 25% of its siblings', 15.5 of 64 GPUs" in taken.suggestions
    assert "1 rows for one partition" in taken.leaves
