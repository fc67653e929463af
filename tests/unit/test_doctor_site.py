"""The doctor's rules beside slurm.conf: each fault has its level and names what mends it."""

import pytest

from slurm_budget.core import doctor_site as site
from slurm_budget.core.doctor import Finding
from slurm_budget.state.budget import Amount, BudgetNode, BudgetTree, UserBudget
from slurm_budget.state.jobs import Node
from slurm_budget.state.slurm import Partition

TREE = BudgetTree(
    "main",
    {
        "top": BudgetNode("top", None, Amount("gpus", 8)),
        "a": BudgetNode(
            "a", "top", Amount("gpus", 4), users=(UserBudget("ana"),), aliases=("old",)
        ),
    },
)
TYPED = BudgetTree(
    "main", {"top": BudgetNode("top", None, Amount("gpus", 8), gres="gres/gpu:h100")}
)


def bad(found: "list[Finding] | Finding") -> list[tuple[str, str]]:
    """Check and level of what is not well; each such has something that mends it."""
    listed = found if isinstance(found, list) else [found]
    assert all(bool(one.mend) == (one.level != "ok") for one in listed), listed
    return [(one.check, one.level) for one in listed if one.level != "ok"]


def node(name: str, **gpus: int) -> Node:
    return Node(name, "IDLE", frozenset(), gpus, ("gpu",))


@pytest.mark.parametrize(
    ("controller", "here", "expected"),
    [
        ("22.05.8", "slurm-wlm 22.05.8", []),
        ("26.05.5", "slurm 26.05.1", []),
        ("20.11.9", "slurm-wlm 20.11.9", [("version", "error")]),
        ("27.05.0", "slurm 27.05.0", [("version", "warning")]),
        ("24.11.5", "slurm-wlm 22.05.8", [("commands", "warning")]),
        ("", "slurm-wlm 22.05.8", [("version", "warning")]),
    ],
)
def test_versions(controller: str, here: str, expected: list[tuple[str, str]]) -> None:
    assert bad(site.versions(controller, here)) == expected


@pytest.mark.parametrize(
    ("controller", "level"),
    [(1000, "ok"), (1005, "ok"), (995, "ok"), (1006, "error"), (990, "error"), (None, "warning")],
)
def test_clocks_that_differ_by_more_than_a_sidecar_bears(controller: int, level: str) -> None:
    assert site.clock(controller, 1000).level == level


def test_a_clock_ahead_and_one_behind_are_told_apart() -> None:
    assert site.clock(1060, 1000).what == "slurmctld's is 60 s ahead this host's"
    assert site.clock(940, 1000).what == "slurmctld's is 60 s behind this host's"


@pytest.mark.parametrize(
    ("uid", "level", "tells", "expected"),
    [
        (0, "", True, []),
        (64030, "", True, []),
        (900, "Administrator", False, []),
        (900, "Administrator", True, [("permission", "warning")]),
        (900, "Operator", False, [("permission", "error")]),
        (900, "None", False, [("permission", "error")]),
        (900, "", False, [("permission", "error")]),
    ],
)
def test_who_may_requeue_and_retag(
    uid: int, level: str, tells: bool, expected: list[tuple[str, str]]
) -> None:
    assert bad(site.permission("sweeper", uid, 64030, level, tells)) == expected


def test_what_an_operator_lacks_is_said_with_the_command() -> None:
    found = site.permission("sweeper", 900, 64030, "operator", False)
    assert "AdminComment" in found.what
    assert "sacctmgr modify user sweeper set adminlevel=administrator" in found.mend


@pytest.mark.parametrize(
    ("text", "expected"),
    [("300 sec", []), ("60 sec", []), ("59 sec", [("MinJobAge", "warning")])],
)
def test_ended_jobs_stay_for_two_beats(text: str, expected: list[tuple[str, str]]) -> None:
    assert bad(site.min_job_age({"MinJobAge": text}, 30)) == expected


def test_gpu_types_need_a_weight_each_once_weights_are_set() -> None:
    nodes, tres = [node("n1", h100=8), node("n2", **{"1g.10gb": 7})], "gres/gpu,gres/gpu:h100"
    assert site.gpu_types(nodes, {}, TREE, tres) == []
    (found,) = [f for f in site.gpu_types(nodes, {"h100"}, TREE, tres) if f.level != "ok"]
    assert (found.check, found.what) == ("gpu weights", "no weight for 1g.10gb")
    assert found.where == "jobs.gpu_weights"


def test_types_that_are_told_apart_must_be_accounted_by_type() -> None:
    nodes = [node("n1", h100=8)]
    for weights, tree in (({"h100"}, TREE), (set(), TYPED)):
        assert bad(site.gpu_types(nodes, weights, tree, "cpu,gres/gpu,gres/gpu:h100")) == []
        (found,) = [f for f in site.gpu_types(nodes, weights, tree, "gres/gpu") if f.mend]
        assert found.level == "error"
        assert "AccountingStorageTRES=gres/gpu,gres/gpu:h100" in found.mend


def test_a_type_that_no_node_has_is_a_slip_of_the_pen() -> None:
    found = site.gpu_types([node("n1", h100=8)], {"h100", "h1000"}, TREE, "gres/gpu,gres/gpu:h100")
    assert bad(found) == [("gpu types named", "warning")]


def test_accounts_and_users_that_only_one_side_knows() -> None:
    assert bad(site.accounts(TREE, {"root", "top", "a", "OLD"})) == []
    assert bad(site.accounts(TREE, {"root", "top", "b"})) == [
        ("accounts", "error"),
        ("accounts without budget", "warning"),
    ]
    assert bad(site.users(TREE, {"root": {"root"}, "ana": {"a"}})) == []
    assert bad(site.users(TREE, {"root": {"root"}, "ana": {"top"}, "zoe": set()})) == [
        ("users", "error"),
        ("users without account", "warning"),
    ]
    assert bad(site.qos({"preemptible", "funded-a"}, {"normal", "preemptible"})) == [
        ("qos", "error")
    ]
    assert bad(site.budgets(BudgetTree("main"))) == [("budgets", "error")]


def test_many_names_are_cut() -> None:
    assert site.some(f"a{n}" for n in range(8)) == "a0, a1, a2, a3, a4 and 3 more"


def test_whether_anybody_sweeps() -> None:
    assert bad(site.sweeps(None, 30, 1000)) == [("sweeps", "error")]
    assert bad(site.sweeps(820, 30, 1000)) == []
    assert bad(site.sweeps(819, 30, 1000)) == [("sweeps", "error")]
    assert bad(site.sweeps(700, 100, 1000)) == []
    assert bad(site.brake(True, "mara", "looking")) == [("pause", "warning")]
    assert bad(site.brake(False, "mara", "")) == []


def test_the_lease_says_who_has_it_or_had_it() -> None:
    assert site.lease("ctl1:7", 1060, 1000).what == "ctl1:7 holds it for 60 more s"
    assert site.lease("ctl1:7", 990, 1000).what == "free; ctl1:7 had it until 10 s ago"
    assert site.lease("", 0, 1000).what == "never taken"


def test_partitions_that_keep_our_qos_out_are_named_where_they_have_gpus() -> None:
    ours = {"funded-a", "funded-b", "preemptible"}
    partitions = {
        "gpu": Partition(),
        "prod": Partition(allow_qos=frozenset({"funded-a", "normal"})),
        "debug": Partition(deny_qos=frozenset({"funded-a"})),
        "cpu": Partition(allow_qos=frozenset({"normal"})),
    }
    found = site.partition_qos(partitions, {"gpu", "prod", "debug"}, ours)
    assert bad(found) == [("qos of debug", "warning"), ("qos of prod", "warning")]
    assert [one.what.partition(":")[0] for one in found] == [
        "DenyQos keeps out funded-a",
        "AllowQos keeps out funded-b, preemptible",
    ]
    assert [one.mend.partition(", if")[0] for one in found] == [
        "slurm.conf: take our QOS out of DenyQos of PartitionName=debug",
        "slurm.conf: name our QOS in AllowQos of PartitionName=prod",
    ]
