"""What `sbudget balance` and `sbudget fit` say, from data alone."""

import json

import pytest
from answers_world import HOUR, NOW, POLICY, clock, facts, free, job, node, run

from slurm_budget.core import admission, balance, fit, fit_ground, request
from slurm_budget.core.back import decaying, leaving
from slurm_budget.errors import BadInput
from slurm_budget.render.answers import balances_json
from slurm_budget.state.choose import Choice, Leave
from slurm_budget.state.snapshot import Snapshot


def told(name: str, user: str, snapshot: Snapshot, jobs: object = (), **more: object) -> str:
    found = balance.balance(name, user, snapshot, jobs, POLICY, NOW, **more)  # type: ignore[arg-type]
    return "\n".join(balance.sentences(found, NOW, clock))


def test_balance_says_what_is_left_and_what_runs_until_when() -> None:
    queue = [
        run(1, 600), run(2, 7200), job(3, account="seeing"), free(4, 60),
        run(5, 60, account="top", qos="funded-top"),
    ]  # fmt: skip
    words = told("vision", "ana", facts(), queue, charged=60 * HOUR, returns=((3600, 2 * HOUR),))
    assert (
        "vision: 100 of 200 GPU-hours are left for new jobs (as of the sweep at T-10, 10 s ago)."
        in words
    )
    assert "Charged in the window: 60; promised to jobs that run or wait: 40." in words
    assert "Protected now: 8 GPUs.\n  job 1 of ana: 8 GPUs until T+3000" in words
    assert "at no charge, run 8 GPUs" in words
    assert "1 funded job waits for 8 GPUs." in words
    assert "GPU-hours that come back: 2 within 1 h." in words
    assert "Small jobs find 110 GPU-hours" in words
    assert "Protected now: 16 GPUs." in told("top", "ana", facts(), queue)


def test_balance_names_a_tighter_budget_above_and_ones_own() -> None:
    assert "But top above it has 20 left; a job must fit both." in told(
        "vision", "ana", facts(top=20)
    )
    assert "ben's own budget in it: 3 of 20 GPU-hours are left." in told("vision", "ben", facts())


def test_balance_of_a_spent_budget_says_when_more_is_back() -> None:
    words = told("vision", "ana", facts(vision=-1, back=NOW + 7200))
    assert "vision: 0 of 200 GPU-hours" in words
    assert "More is back at T+7200, in 2 h." in words
    assert "back" not in told("vision", "ana", facts())


def test_what_was_not_read_is_left_out_of_a_balance() -> None:
    words = told("vision", "ana", facts(), None)
    assert "Protected" not in words
    assert "Charged" not in words
    assert "has no budget" in told("misc", "ana", facts())
    one = balance.balance("vision", "ben", facts(), None, POLICY, NOW)
    (account,) = json.loads(balances_json([one], NOW, ["slurm: down"]))["accounts"]
    assert (account["left"], account["protected"], account["charged"]) == (100 * HOUR, None, None)
    assert account["own"] == {"left": 3 * HOUR, "budget": 20 * HOUR}


def test_what_leaves_the_window_soon() -> None:
    parts = [(0, 100, 8000), (50, 60, 1000)]
    assert leaving(parts, 1000, 1000, 1000) == 100 * 8000 + 10 * 1000
    assert leaving(parts, 1000, 1050, 5) == 5 * 8000 + 5 * 1000
    assert leaving(parts, 1000, 2000, 1000) == 0
    assert decaying(1000, 3600, 3600) == 500


# -- fit -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("8x4h", (None, 8, 14400)),
        ("2x8x90min", (2, 8, 5400)),
        ("1X30", (None, 1, 1800)),
        ("4x1:00:00", (None, 4, 3600)),
    ],
)
def test_sizes_are_read(text: str, shape: tuple[int | None, int, int]) -> None:
    assert fit.parse(text) == shape


@pytest.mark.parametrize("text", ["", "8", "8x", "x4h", "0x4h", "8x0h", "0x8x4h", "8x4y", "-1x4h"])
def test_what_is_no_size_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(BadInput, match="write GPUSxTIME such as 8x4h"):
        fit.parse(text)


@pytest.mark.parametrize("text", ["0x4h", "0x8x4h", "2x0x4h"])
def test_a_size_without_a_gpu_is_called_that(text: str) -> None:
    with pytest.raises(BadInput, match="asks for no GPU"):
        fit.parse(text)


@pytest.mark.parametrize(
    ("size", "partition", "kind", "words"),
    [
        ("1x1h", "gqu", "", r"no node is in partition 'gqu'\n  mend: did you mean gpu\?"),
        ("1x1h", "gpu,x", "", r"no node is in partition 'x'\n  mend: there are: big, cpu, gpu"),
        ("1x1h", "gpu", "h200", r"of type 'h200'\n  mend: types there: h100"),
        ("1x1h", "cpu", "h100", "mend: types there: none"),
        ("17x1h", "gpu", "", "can never start: partition gpu has 16 GPUs in all"),
        ("3x8x1h", "gpu", "", "partition gpu has 2 nodes with 8 GPUs or more"),
        ("1x9x1h", "gpu,cpu", "", "partition gpu has 0 nodes with 9 GPUs or more"),
        ("9x1h", "big", "h100", "partition big has 8 GPUs in all"),
    ],
)
def test_what_the_cluster_does_not_have_is_said(
    size: str, partition: str, kind: str, words: str
) -> None:
    nodes = [
        node(1, partitions=("gpu", "big")),
        node(2, state="DOWN"),
        node(3, gpus={}, partitions=("cpu",)),
        node(4, gpus={"a100": 4}, partitions=("big",)),
    ]
    with pytest.raises(BadInput, match=words):
        fit_ground.check(fit.parse(size), nodes, partition, kind)
    fit_ground.check(fit.parse("16x1h"), nodes, "gpu,cpu", "")
    fit_ground.check(fit.parse("2x8x1h"), nodes, "", "h100")


def test_a_protection_that_is_cut_is_said_once() -> None:
    def words(size: str, snapshot: Snapshot) -> str:
        desc = fit.job_desc(fit.parse(size), "ana", "vision", "gpu", "", 50_000, "funded")
        found = admission.decide(request.read(desc), snapshot, NOW)
        return " ".join([*fit.said(found.messages), fit.cut(fit.parse(size), found)]).strip()

    assert words("1x12h", facts()) == (
        "Funded; protected for 8 h, the longest there is (12 h asked), from vision's budget"
        " (92 of 200 GPU-hours left)."
    )
    cut = "Its protection would be 8 h, the longest there is (12 h asked)."
    assert words("2x8x12h", facts()).endswith(cut)
    assert "longest" not in words("2x8x8h", facts())


def verdict(size: str, snapshot: Snapshot, qos: str = "funded") -> tuple[str, str]:
    desc = fit.job_desc(fit.parse(size), "ana", "vision", "gpu", "", fit.parse(size).seconds, qos)
    found = admission.decide(request.read(desc), snapshot, NOW)
    return found.why, " ".join(fit.said(found.messages))


def test_the_verdict_is_the_hooks_own() -> None:
    assert verdict("8x4h", facts()) == (
        "fits",
        "Funded; protected for 4 h from vision's budget (68 of 200 GPU-hours left).",
    )
    why, words = verdict("2x8x8h", facts(back=NOW + 3600))
    assert why == "budget"
    assert "has 100 of 200 GPU-hours left, this job needs 128; more is back in 1 h." in words
    assert verdict("64x8h", facts())[0] == "never"
    assert verdict("8x4h", facts(), "preemptible")[0] == "asked"


def place(size: str, jobs: list[object], *, funded: bool, knows: bool) -> Choice | Leave:
    wanted = fit.demand(fit.parse(size), "ben", "language", frozenset({"gpu"}), "", 8)
    return fit.place(
        wanted, jobs, [node(1), node(2)], POLICY, NOW,  # type: ignore[arg-type]
        funded=funded, yielding=(lambda run, job: True) if knows else None,
    )  # fmt: skip


def test_where_it_would_start() -> None:
    full = [run(1, 600, "n1"), free(2, 2000, "n2")]
    starts = place("8x1h", full, funded=True, knows=False)
    assert fit.where(starts, True, None, POLICY).startswith("It would start now on n2, where")
    waits = place("8x1h", full, funded=False, knows=False)
    assert fit.where(waits, False, None, POLICY) == (
        "It would wait: it needs 1 node x 8 GPUs, and so much is not free."
    )
    old = [run(1, 600, "n1"), run(2, 7200, "n2")]
    makes_way = place("8x1h", old, funded=True, knows=True)
    assert "on n2 after the sweeper has requeued 1 run past its protection (job 2)" in fit.where(
        makes_way, True, None, POLICY
    )
    unsure = place("2x8x1h", old, funded=True, knows=False)
    assert "stands in the ledger" in fit.where(unsure, True, None, POLICY)


def test_who_waits_already_is_said() -> None:
    assert fit.ahead([job(1), job(2, reason="JobHeldUser")], frozenset({"gpu"})) == (
        "1 job waits for 8 GPUs there already; priority says who comes first."
    )
    assert fit.ahead([job(1)], frozenset({"cpu"})) == ""
