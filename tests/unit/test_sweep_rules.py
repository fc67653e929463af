"""What a sweep decides: who is funded, who is owed, who may yield."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_budget.core import live, owed
from slurm_budget.core.back import when_back, when_decayed
from slurm_budget.core.choose import choose
from slurm_budget.core.marker import Marker, merge, parse
from slurm_budget.core.repairs import repairs
from slurm_budget.core.retag import held_for_budget, verdicts
from slurm_budget.core.standing import Standing
from slurm_budget.state.budget import Amount, BudgetNode, BudgetTree
from slurm_budget.state.choose import Choice
from slurm_budget.state.jobs import Job, Node, Place
from slurm_budget.state.slurm import Partition, Preemption, Qos
from slurm_budget.state.sweep import SweepPolicy

HOUR = 3_600_000
POLICY = SweepPolicy(patience=60, cooldown=900, exempt=1200, fast_lane=0.05)
TREE = BudgetTree(
    "main",
    {
        "top": BudgetNode("top", None, Amount("gpus", 32)),
        "a": BudgetNode("a", "top", Amount("gpus", 16)),
        "b": BudgetNode("b", "top", Amount("gpus", 8)),
        "free": BudgetNode("free", "top"),
    },
)


def job(number: int, **given_: object) -> Job:
    base = Job(
        id=number, label=str(number), user="ana", account="a", partitions=("gpu",),
        qos="preemptible", state="PENDING", reason="Resources", submit=0, eligible=0, start=None,
        end=None, time_limit=36000, gpus={"h100": 8}, nodes=(), num_nodes=1, priority=1,
        requeue=True, batch=True,
        admin_comment=str(Marker("preemptible", "funded", 3600, "budget")),
    )  # fmt: skip
    return replace(base, **given_)  # type: ignore[arg-type]


def running(number: int, start: int, **given_: object) -> Job:
    mark = str(Marker("funded", "funded", 3600, "fits"))
    return job(
        number,
        **{"state": "RUNNING", "reason": "", "start": start, "nodes": ("n1",), "qos": "funded-a",
           "gpus_on": {"n1": 8}, "admin_comment": mark, **given_},
    )  # fmt: skip


def standing(name: str, budget: int | None, charge: int = 0, use: int = 0) -> Standing:
    return Standing(name, budget, charge, 0, use)


def decide(jobs: list[Job], left: int = 100, **use: int) -> dict[int, str]:
    """Words by job; `left` GPU-hours in a and top."""
    accounts = {
        "top": standing("top", 1000 * HOUR, (1000 - left) * HOUR),
        "a": standing("a", 100 * HOUR, (100 - left) * HOUR),
        "b": standing("b", 100 * HOUR),
        "free": standing("free", None),
    }
    user_use = {("a", user): amount for user, amount in use.items()}
    return verdicts(jobs, TREE, accounts, {}, user_use, POLICY).why


# -- funded or not -------------------------------------------------------------------------------


def test_jobs_are_funded_while_they_fit() -> None:
    assert decide([job(n, submit=n) for n in range(3)], left=17) == {
        0: "fits",
        1: "fits",
        2: "budget",
    }


def test_nothing_passes_the_job_that_saves_but_small_ones_in_the_fast_lane() -> None:
    gang = job(1, submit=1, gpus={"h100": 64})
    single = job(2, submit=2, gpus={"h100": 1})
    debug = job(3, submit=3, gpus={"h100": 1}, time_limit=1800)
    assert decide([gang, single, debug], left=20) == {1: "budget", 2: "budget", 3: "fast"}


def test_the_fast_lane_is_there_when_the_rest_is_spent() -> None:
    debug = job(3, gpus={"h100": 1}, time_limit=1800)
    assert decide([debug], left=0) == {3: "fast"}
    long = job(
        4,
        gpus={"h100": 1},
        time_limit=86400,
        admin_comment=str(Marker("preemptible", "funded", 60, "budget")),
    )
    assert decide([long], left=0) == {4: "budget"}


def test_a_fast_lane_of_nothing_is_none_and_tasks_that_run_at_once_count_together() -> None:
    debug = job(3, gpus={"h100": 1}, time_limit=1800)
    assert live.small(debug, POLICY)
    assert not live.small(replace(debug, at_once=5), POLICY)
    assert not live.small(replace(debug, time_limit=0), replace(POLICY, fast_lane_gpu_time=0))


def test_a_job_larger_than_the_whole_budget_is_told_so_and_saves_for_nothing() -> None:
    monster = job(1, submit=1, gpus={"h100": 512})
    assert decide([monster, job(2, submit=2)], left=50) == {1: "never", 2: "fits"}


def test_the_user_who_has_used_less_comes_first() -> None:
    jobs = [job(1, submit=1, user="ana"), job(2, submit=2, user="ben")]
    assert decide(jobs, left=10, ana=5 * HOUR) == {2: "fits", 1: "budget"}


def test_a_funded_job_keeps_its_verdict_when_another_user_falls_behind() -> None:
    kept = job(
        1, submit=5, qos="funded-a", admin_comment=str(Marker("funded", "funded", 3600, "fits"))
    )
    assert decide([kept, job(2, submit=1, user="ben")], left=10, ana=5 * HOUR) == {
        1: "fits",
        2: "budget",
    }


def test_accounts_without_budget_are_not_funded_and_the_retag_says_so() -> None:
    found = verdicts(
        [job(1, account="free", qos="funded-free")], TREE,
        {name: standing(name, None if name == "free" else HOUR) for name in TREE.nodes},
        {}, {}, POLICY,
    )  # fmt: skip
    assert found.why == {1: "account"}
    assert [(r.job.id, r.qos, r.why) for r in found.retags] == [(1, "preemptible", "account")]


def test_jobs_that_cannot_be_requeued_are_funded_only_when_all_of_them_is_protected() -> None:
    assert decide([job(1, requeue=False)]) == {1: "requeue"}
    assert decide([job(1, requeue=False, time_limit=3600)]) == {1: "fits"}


def test_other_tools_text_stays_when_a_job_is_retagged() -> None:
    found = verdicts(
        [job(1, admin_comment="JS1:abc;" + str(Marker("preemptible", "funded", 3600, "budget")))],
        TREE, {name: standing(name, 100 * HOUR) for name in TREE.nodes}, {}, {}, POLICY,
    )  # fmt: skip
    (retag,) = found.retags
    assert retag.qos == "funded-a"
    assert retag.admin_comment.startswith("JS1:abc;")
    mark = parse(retag.admin_comment)
    assert mark is not None
    assert (mark.class_, mark.asked, mark.min_runtime) == ("funded", "funded", 3600)


@given(
    st.lists(st.tuples(st.integers(1, 40), st.integers(0, 50)), max_size=12), st.integers(0, 100)
)
def test_promises_never_pass_the_balance(asked: list[tuple[int, int]], left: int) -> None:
    jobs = [job(n, submit=at, gpus={"h100": gpus}) for n, (gpus, at) in enumerate(asked)]
    words = decide(jobs, left)
    promised = sum(live.cost(item, POLICY) for item in jobs if words[item.id] in ("fits", "fast"))
    assert promised <= left * HOUR


@given(st.permutations(range(6)))
def test_verdicts_do_not_depend_on_the_order_of_squeue(order: list[int]) -> None:
    jobs = [job(n, submit=n, gpus={"h100": 3 + n}) for n in range(6)]
    assert decide([jobs[i] for i in order], 20) == decide(jobs, 20)


NO_FUNDED = {"gpu": Partition(deny_qos=frozenset({"funded-a"}))}
NO_PREEMPTIBLE = {"gpu": Partition(allow_qos=frozenset({"funded-a"}))}


def moves(waits: Job, partitions: dict[str, Partition], left: int = 100) -> list[tuple[str, str]]:
    """QOS and word of each retag; `left` GPU-hours in a."""
    accounts = {"a": standing("a", 100 * HOUR, (100 - left) * HOUR)}
    found = verdicts([waits], TREE, accounts, {}, {}, POLICY, partitions).retags
    return [(retag.qos, retag.why) for retag in found]


def test_no_job_is_moved_to_a_qos_that_its_partition_does_not_allow() -> None:
    assert moves(job(1), {}) == [("funded-a", "fits")]
    assert moves(job(1), NO_FUNDED) == [("preemptible", "partition")], "it is told why"
    told = job(1, admin_comment=str(Marker("preemptible", "funded", 3600, "partition")))
    assert moves(told, NO_FUNDED) == []
    both = replace(told, partitions=("gpu", "open"))
    assert moves(both, NO_FUNDED) == [("funded-a", "fits")], "it may start in the other"
    spent = job(1, qos="funded-a", admin_comment=str(Marker("funded", "funded", 3600, "fits")))
    assert moves(spent, {}, left=0) == [("preemptible", "budget")]
    assert moves(spent, NO_PREEMPTIBLE, left=0) == []


def test_a_job_that_got_a_qos_which_its_partition_does_not_allow_is_moved_out() -> None:
    stuck = job(1, qos="funded-a", admin_comment=str(Marker("funded", "funded", 3600, "fits")))
    assert moves(stuck, NO_FUNDED) == [("preemptible", "partition")]


def test_only_the_hooks_own_hold_is_lifted() -> None:
    waits = str(Marker("preemptible", "funded", 3600, "wait"))
    ours = job(1, reason="JobHeldUser", priority=0, admin_comment=waits)
    assert held_for_budget(ours)
    assert not held_for_budget(replace(ours, reason="JobHeldAdmin")), "an administrator's on top"
    assert not held_for_budget(replace(ours, restarts=1)), "it has run: somebody held it since"
    assert not held_for_budget(replace(ours, priority=5, reason="Priority"))
    assert not held_for_budget(replace(ours, admin_comment=waits.replace("wait", "budget")))


def test_a_job_that_its_user_let_go_is_no_longer_ours_to_release() -> None:
    waits = job(1, admin_comment=str(Marker("preemptible", "funded", 3600, "wait")))
    assert moves(waits, {}, left=0) == [("preemptible", "budget")]
    assert moves(replace(waits, reason="JobHeldUser", priority=0), {}, left=0) == []


# -- owed ----------------------------------------------------------------------------------------

NODES = [Node(f"n{i}", "MIXED", frozenset(), {"h100": 8}, ("gpu",), cpus=64) for i in (1, 2)]
WAITING = job(9, account="b", qos="funded-b", user="ben")


@pytest.mark.parametrize(
    ("changes", "now", "reason"),
    [
        ({"reason": "Dependency"}, 100, "waits for something else (Dependency)"),
        ({"reason": "QOSGrpGRES"}, 100, "waits for something else (QOSGrpGRES)"),
        ({}, 30, "has waited 30 s of 60 s patience"),
    ],
)
def test_what_is_no_demand(changes: dict[str, object], now: int, reason: str) -> None:
    found = owed.owed([replace(WAITING, **changes)], NODES, {}, POLICY, now)  # type: ignore[arg-type]
    assert found.demands == []
    assert [leave.reason for leave in found.left] == [reason]


def test_a_job_that_was_served_is_not_served_again_at_once() -> None:
    found = owed.owed([WAITING], NODES, {9: 100}, POLICY, 160)
    assert found.demands == []
    assert "freed for it 60 s ago" in found.left[0].reason
    assert owed.owed([WAITING], NODES, {9: 100}, POLICY, 1001).demands


def test_preemptible_jobs_are_never_owed() -> None:
    found = owed.owed([replace(WAITING, qos="preemptible")], NODES, {}, POLICY, 1000)
    assert (found.demands, found.left) == ([], [])


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"start": 900}, "protected for 3500 s more"),
        ({"requeue": False}, "not requeueable (--no-requeue)"),
        ({"batch": False}, "interactive: it cannot be requeued"),
    ],
)
def test_runs_that_may_not_go_say_why(changes: dict[str, object], reason: str) -> None:
    found, left = owed.candidates([running(1, **{"start": -5000, **changes})], {}, POLICY, 1000)  # type: ignore[arg-type]
    assert found == []
    assert [leave.reason for leave in left] == [reason]


@pytest.mark.parametrize(
    ("number", "label", "name"),
    [
        (57, "57", "57"),
        (60, "57_2", "60"),
        (57, "57_2", "57_2"),
        (57, "57_[1-3,7%2]", "57_[1-3,7]"),
        (57, "57_[1-3%2", "57_[1-3]"),
        (57, "57_[1,3,...]", "57"),
        (1001, "1000+1", "1001"),
        (5, "57_2", "5"),
    ],
)
def test_deeds_name_the_job_they_mean(number: int, label: str, name: str) -> None:
    assert live.address(job(number, label=label)) == name


def test_a_run_cools_down_after_a_requeue() -> None:
    found, left = owed.candidates([running(1, 0)], {1: 9000}, POLICY, 9100)
    assert (found, [x.reason for x in left]) == (
        [],
        ["warned or requeued 100 s ago: it cools down"],
    )


def test_protection_is_reserved_until_the_run_ends_and_completing_has_ended() -> None:
    protected = running(1, 1000)
    key = ("a", "ana", "h100")
    assert live.reserved_by_runs([protected], POLICY, 1600) == {key: 8 * 3000 * 1000}
    assert live.reserved_by_runs([replace(protected, state="COMPLETING")], POLICY, 1600) == {}
    assert live.reserved_by_runs([protected], POLICY, 5000) == {}


def test_what_slurm_frees_by_itself_counts_as_free_and_completing_does_not() -> None:
    idle_fill = running(1, 0, qos="preemptible")
    completing = running(2, 0, state="COMPLETING", nodes=("n2",), gpus_on={"n2": 4})
    found = owed.space(NODES, [idle_fill, completing], [], POLICY, 2000)
    assert {name: node.free for name, node in found.items()} == {
        "n1": {"h100": 8},
        "n2": {"h100": 4},
    }
    young = owed.space(NODES, [idle_fill], [], POLICY, 1000)
    assert young["n1"].free == {"h100": 0}


def test_nobody_makes_way_in_a_partition_that_does_not_allow_the_owed_jobs_qos() -> None:
    both = replace(WAITING, partitions=("gpu", "open"))
    seen = Preemption({}, {"gpu": Partition(deny_qos=frozenset({"funded-b"}))})
    (demand,) = owed.owed([both], NODES, {}, POLICY, 99, seen).demands
    assert demand.partitions == {"open"}


def test_a_partitions_min_nodes_are_what_the_owed_job_needs() -> None:
    seen = Preemption({}, {"gpu": Partition(min_nodes=2), "open": Partition()})
    (demand,) = owed.owed([WAITING], NODES, {}, POLICY, 99, seen).demands
    assert (demand.nodes, demand.per_node, demand.total) == (2, None, 8)
    both = replace(WAITING, partitions=("gpu", "open"))
    (demand,) = owed.owed([both], NODES, {}, POLICY, 99, seen).demands
    assert (demand.nodes, demand.per_node) == (1, 8)


def test_the_exempt_time_that_slurm_has_in_force_counts_and_not_the_setting() -> None:
    idle_fill = running(1, 0, qos="preemptible")
    job_qos = Qos("preemptible", preempt_exempt_time=7200)
    at_once = Qos("part", preempt_exempt_time=0)
    seen = Preemption({"preemptible": job_qos, "part": at_once}, {}, 3600)
    found = owed.space(NODES, [idle_fill], [], POLICY, 2000, seen)
    assert found["n1"].free == {"h100": 0}, "the setting says 1200 s, the QOS 7200"
    by_partition = replace(seen, partitions={"gpu": Partition("part")})
    found = owed.space(NODES, [idle_fill], [], POLICY, 1, by_partition)
    assert found["n1"].free == {"h100": 8}, "the QOS of the partition overrides that of the job"


def test_a_run_whose_shares_are_not_known_frees_nothing_and_stays() -> None:
    wide = running(1, 0, gpus={"h100": 10}, nodes=("n1", "n2"), gpus_on={})
    found = owed.space(NODES, [wide], [], POLICY, 9000)
    assert [node.free for node in found.values()] == [{"h100": 0}, {"h100": 0}]
    runs, left = owed.candidates([wide], {}, POLICY, 9000)
    assert (runs, [x.reason for x in left]) == (
        [], ["Slurm does not say yet which GPUs it holds on which node"],
    )  # fmt: skip


def test_the_place_of_a_node_reaches_the_choice() -> None:
    placed = [replace(NODES[0], place=Place(("leaf1", "spine"), "spine")), NODES[1]]
    found = owed.space(placed, [], [], POLICY, 0)
    assert (found["n1"].switches, found["n1"].island) == (("leaf1", "spine"), "spine")
    assert (found["n2"].switches, found["n2"].island) == ((), "")


def test_gpus_on_a_fixed_number_of_nodes_may_lie_unevenly() -> None:
    job_ = replace(WAITING, gpus={"h100": 10}, num_nodes=2, max_nodes=2)
    (demand,) = owed.owed([job_], NODES, {}, POLICY, 99).demands
    assert (demand.total, demand.nodes, demand.per_node, demand.most_nodes) == (10, 2, None, 2)
    (demand,) = owed.owed([replace(job_, per_task=2)], NODES, {}, POLICY, 99).demands
    assert (demand.step, demand.total) == (2, 10)
    (demand,) = owed.owed([replace(job_, per_node=5)], NODES, {}, POLICY, 99).demands
    assert (demand.nodes, demand.per_node, demand.most_nodes) == (2, 5, None)


def test_nodes_that_drain_are_no_space_and_their_runs_go_after_protection() -> None:
    draining = [replace(NODES[0], flags=frozenset({"DRAIN"})), NODES[1]]
    assert set(owed.space(draining, [], [], POLICY, 0)) == {"n2"}
    runs = [running(1, 0), running(2, 3000)]
    assert [(j.id, why) for j, why in repairs(runs, draining, {}, POLICY, 4000)] == [
        (1, "node n1 is draining")
    ]


@pytest.mark.parametrize(
    ("flags", "space", "why"),
    [
        ({"DRAIN", "REBOOT_REQUESTED"}, False, ["node n1 is draining for its reboot"]),
        ({"REBOOT_REQUESTED"}, True, []),
        ({"REBOOT_ISSUED"}, False, []),
    ],
    ids=["reboot ASAP", "reboot", "rebooting"],
)
def test_a_node_that_shall_reboot_drains_only_when_that_shall_be_soon(
    flags: set[str], space: bool, why: list[str]
) -> None:
    node = replace(NODES[0], flags=frozenset(flags))
    assert ("n1" in owed.space([node], [], [], POLICY, 0)) is space
    assert [said for _, said in repairs([running(1, 0)], [node], {}, POLICY, 4000)] == why


def test_inside_an_account_the_user_who_used_more_yields() -> None:
    accounts = {name: standing(name, 100 * HOUR) for name in TREE.nodes}
    may = owed.may_yield(TREE, accounts, {("a", "ana"): 50 * HOUR, ("a", "ben"): 10 * HOUR}, POLICY)
    (run,), _ = owed.candidates([running(1, 0)], {}, POLICY, 9000)
    demand = owed.owed(
        [replace(WAITING, account="a", qos="funded-a")], NODES, {}, POLICY, 99
    ).demands[0]
    assert may(run, demand)
    assert not may(replace(run, user="ben"), replace(demand, user="ana"))
    assert not may(run, replace(demand, user="ana"))


def test_nobody_yields_who_would_be_owed_next() -> None:
    """b's run is cheaper, but b is hardly better off than the owed account: within the margin it
    stays, and a's dearer run goes. Yielding turns nothing round that would turn back at once."""
    tree = BudgetTree("main", {**TREE.nodes, "c": BudgetNode("c", "top", Amount("gpus", 8))})
    accounts = {name: standing(name, 100 * HOUR) for name in tree.nodes} | {
        "a": standing("a", 100 * HOUR, use=90 * HOUR),
        "b": standing("b", 100 * HOUR, use=44 * HOUR),
        "c": standing("c", 100 * HOUR, use=40 * HOUR),
    }
    may = owed.may_yield(tree, accounts, {}, POLICY)
    runs, _ = owed.candidates(
        [
            running(1, 0),
            running(2, 5000, account="b", qos="funded-b", nodes=("n2",), gpus_on={"n2": 8}),
        ],
        {},
        POLICY,
        9000,
    )
    waiting = replace(WAITING, account="c", qos="funded-c")
    demands = owed.owed([waiting], NODES, {}, POLICY, 99).demands
    full = [replace(running(n, 0), nodes=(f"n{n}",), gpus_on={f"n{n}": 8}) for n in (1, 2)]
    space = owed.space(NODES, full, [], POLICY, 9000)
    (choice,) = choose(demands, space, runs, may, max_gpus=64, by_owner=True)
    assert isinstance(choice, Choice)
    assert [run.job_id for run in choice.victims] == [1]
    back = replace(demands[0], account="b")
    assert not may(replace(runs[1], account="c"), back), "nor the other way round"


def test_declaring_little_gives_no_immunity() -> None:
    """Who declares a minute at a time has used as much, and yields as anybody would."""
    tiny = running(1, 0, admin_comment=str(Marker("funded", "funded", 60, "fits")))
    accounts = {
        "top": standing("top", 1000 * HOUR),
        "a": standing("a", 100 * HOUR, charge=HOUR, use=150 * HOUR),
        "b": standing("b", 100 * HOUR, use=20 * HOUR),
        "free": standing("free", None),
    }
    (run,), _ = owed.candidates([tiny], {}, POLICY, 9000)
    demand = owed.owed([WAITING], NODES, {}, POLICY, 99).demands[0]
    assert owed.may_yield(TREE, accounts, {}, POLICY)(run, demand)


# -- when it is back -----------------------------------------------------------------------------


@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50), st.integers(1, 9)), max_size=5),
    st.integers(1, 300),
)
def test_back_is_the_first_second_at_which_enough_has_left(
    parts: list[tuple[int, int, int]], missing: int
) -> None:
    parts = [(start, start + length, rate) for start, length, rate in parts]
    now, window = 60, 100

    def left_by(at: int) -> int:
        return sum(
            rate for start, end, rate in parts for s in range(start, end) if now <= s + window < at
        )

    brute = next((at for at in range(now, 400) if left_by(at) >= missing), None)
    assert when_back(parts, missing, window, now) == brute


def test_decayed_charge_is_half_after_a_half_life() -> None:
    assert when_decayed(1000, 500, 3600, now=10) == 3610
    assert when_decayed(1000, 1000, 3600, now=10) is None


def test_marker_of_a_user_who_changed_their_mind() -> None:
    mark = merge("", Marker("funded", "funded", 60, "fits"))
    assert live.asked(job(1, qos="preemptible", admin_comment=mark)) == "preemptible"
    assert live.asked(job(1, qos="funded-a", admin_comment=mark)) == "funded"
    assert live.asked(job(1, qos="normal", admin_comment="")) is None
