"""`report cluster`: GPUs now, and what keeps a draining host from its repair."""

import csv
import io
import json
from dataclasses import replace

from slurm_budget.core import cluster
from slurm_budget.core.cluster import Repair
from slurm_budget.core.marker import Marker
from slurm_budget.render import cluster as render
from slurm_budget.state.intent import Intent
from slurm_budget.state.jobs import Job, Node
from slurm_budget.state.slurm import Preemption, Qos
from slurm_budget.state.sweep import SweepPolicy

NOW = 100_000
POLICY = SweepPolicy(cooldown=900, grace=60)
SEEN = Preemption({"preemptible": Qos("preemptible", preempt_exempt_time=1200)})
DRAIN = frozenset({"DRAIN"})
NODES = [
    Node("n1", "MIXED", DRAIN, {"h100": 8}, ("gpu",), gpus_used=8, reason="fan [root@99000]"),
    Node("n2", "IDLE", DRAIN, {"h100": 8}, ("gpu",), reason="disk | full"),
    Node("n3", "MIXED", frozenset(), {"h100": 8}, ("gpu",), gpus_used=5),
    Node("n4", "DOWN", frozenset({"NOT_RESPONDING"}), {"h100": 8}, ("gpu",)),
]


def run(number: int, age: int, **given: object) -> Job:
    base = Job(
        id=number, label=str(number), user="ana", account="vision", partitions=("gpu",),
        qos="funded-vision", state="RUNNING", reason="", submit=0, eligible=0, start=NOW - age,
        end=None, time_limit=90_000, gpus={"h100": 4}, nodes=("n1",), num_nodes=1, priority=1,
        requeue=True, batch=True, admin_comment=str(Marker("funded", "funded", 3600, "fits")),
        gpus_on={"n1": 4},
    )  # fmt: skip
    return replace(base, **given)  # type: ignore[arg-type]


def intent(job: int) -> Intent:
    return Intent(1, "main", job, NOW - 5000, "vision", None, "", 4, "signalled", "", NOW, NOW)


def rows(
    *jobs: Job,
    policy: SweepPolicy = POLICY,
    touched: dict[int, int] | None = None,
    going: tuple[Intent, ...] = (),
    paused: str = "",
) -> list[Repair]:
    return cluster.repairs(NODES, jobs, policy, SEEN, touched or {}, going, NOW, paused)


def said(*jobs: Job, **more: object) -> dict[str, tuple[str, str]]:
    found = [one for one in rows(*jobs, **more) if one.node == "n1"]  # type: ignore[arg-type]
    return {run.job: (run.waits_for, run.next) for run in found[0].holders}


def test_nodes_and_gpus_now() -> None:
    jobs = [
        run(1, 100), run(2, 100, qos="preemptible"),
        run(3, 100, nodes=("n3",), gpus={"h100": 5}, gpus_on={"n3": 5}),
        run(4, 100, state="PENDING", nodes=(), start=None),
    ]  # fmt: skip
    it = cluster.totals(NODES, jobs)
    assert (it.nodes, it.usable, it.draining, it.drained, it.down) == (4, 1, 1, 1, 1)
    assert (it.gpus, it.usable_gpus, it.funded, it.preemptible, it.idle) == (32, 8, 9, 4, 3)


def test_who_drained_a_node_when_and_why() -> None:
    assert cluster.stamp("fan [1] broken [root@1795989608]") == (
        "fan [1] broken", "root", 1795989608,
    )  # fmt: skip
    assert cluster.stamp("no stamp") == ("no stamp", "", None)
    assert cluster.stamp("x [ops@Unknown]") == ("x", "ops", None)


def test_a_protected_run_names_whose_protection_and_until_when() -> None:
    (idle, busy) = rows(run(1, 600))
    assert (idle.node, idle.holders) == ("n2", ())
    assert (busy.since, busy.by, busy.reason) == (99_000, "root", "fan")
    (holder,) = busy.holders
    assert (holder.until, holder.gpus) == (NOW - 600 + 3600, 4)
    assert (holder.waits_for, holder.next) == ("vision's protection", "leave it")


def test_what_the_next_sweep_does_with_each_run() -> None:
    old, young = run(1, 5000), run(2, 600, qos="preemptible")
    assert said(old, young) == {
        "1": ("the next sweep", "warn it, and requeue it"),
        "2": ("PreemptExemptTime", "leave it"),
    }
    assert said(run(3, 1300, qos="preemptible"))["3"][1] == "warn it, and requeue it"
    assert said(run(4, 5000, batch=False))["4"][0] == "its end: interactive, it cannot be requeued"
    assert said(run(5, 5000, requeue=False))["5"][0] == "its end: --no-requeue"
    assert said(run(6, 5000, state="COMPLETING"))["6"] == ("its end (COMPLETING)", "nothing")
    assert said(old, touched={1: NOW - 100})["1"][0] == "its cool-down: requeued 100 s ago"
    going = said(old, touched={1: NOW}, going=(intent(1),))
    assert going["1"] == ("its grace", "requeue it when its grace is over")


def test_a_paused_sweeper_and_one_that_never_requeues_are_said() -> None:
    assert said(run(1, 5000), paused="repairs")["1"][1] == "nothing: it is paused (repairs)"
    never = said(run(1, 5000), policy=replace(POLICY, requeue="never"))
    assert never["1"] == ("its end", 'nothing: sweep.requeue is "never"')


def test_the_report_as_text_and_for_scripts() -> None:
    jobs = [run(1, 600), run(2, 5000, gpus_on={}, nodes=("n1", "n3"))]
    found, totals = rows(*jobs), cluster.totals(NODES, jobs)
    clock = lambda at: "-" if at is None else f"@{at}"  # noqa: E731
    text = render.text("main", totals, found, clock, NOW)
    assert text.startswith("Cluster main, @100000\n")
    assert "Cluster" not in render.text("main", totals, found, clock, NOW, header=False)
    assert "nodes  4: 1 usable, 1 draining, 1 drained, 1 down" in text
    assert "n2 IDLE+DRAIN since -: disk | full\n  nothing runs on it: it can be repaired" in text
    assert (
        "job 1 of ana (vision, funded) holds 4 GPUs; protection: until @103000 (in 50 min); "
        "waits for vision's protection; the next sweep will leave it" in text
    )
    assert "job 2 of ana (vision, funded) holds GPUs; protection: past it" in text
    cells = render.for_scripts(totals, found, clock, header=True)
    lines = render.parsable(cells).splitlines()
    assert lines[1] == "4|1|1|1|1|32|8|8|0|3"
    assert {line.count("|") for line in lines[3:]} == {12}, "free text shifts no column"
    assert "n1|MIXED+DRAIN|@99000|root|fan|2|ana|vision|funded|?|" in "\n".join(lines)
    bare = render.for_scripts(totals, found, clock, header=False)
    assert "NextSweep" not in render.parsable(bare)
    for made, plain in ((cells, lines[0].lower()), (bare, lines[1])):
        first, *rest = csv.reader(io.StringIO(render.as_csv(made)))
        assert first == plain.split("|")
        assert "disk | full" in [line[4] for line in rest if line], "free text stays as it is"
    assert render.as_csv(made).count("\n\n") == 1, "an empty line between the two tables"
    told = json.loads(render.as_json("main", totals, found, NOW))
    assert told["totals"]["idle"] == 3
    assert told["repairs"][1]["holders"][0]["until"] == 103_000
