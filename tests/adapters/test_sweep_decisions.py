"""tests/data/sweep_decisions.md: situations of a sweep with the action that is right in each.

One stage for all: vision has had much, its run 7 holds the only node past its hour of protection;
language has had nothing, and its job 9 waits for that node.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from slurm_budget.core.marker import Marker
from slurm_budget.errors import SlurmUnreachable
from slurm_budget.ledger.store import Ledger
from slurm_budget.settings import Settings
from slurm_budget.slurm import sacct, squeue
from slurm_budget.slurm.port import CommandSlurm
from slurm_budget.state.budget import Amount, BudgetNode, BudgetTree
from slurm_budget.usecases.fence import Fence
from slurm_budget.usecases.overview import overview_of
from slurm_budget.usecases.sweep import sweep
from slurm_budget.usecases.swept import Swept

from .fake_slurm import NODE, FakeSlurm

TABLE = Path(__file__).resolve().parents[1] / "data" / "sweep_decisions.md"
ELSEWHERE = {"P08"}
"""Rows that other tests are about: what is exempt, in the settings of sync."""
HOUR = 3600
NOW = 1_795_975_422
MARK = str(Marker("funded", "funded", HOUR, "fits"))
TREE = BudgetTree(
    "main",
    {name: BudgetNode(name, amount=Amount("gpus", 4)) for name in ("vision", "language")},
)
REQUEUE = "scontrol requeue Incomplete 7"


def row(number: int, account: str, state: str, **more: str) -> str:
    """A job of 8 GPUs in squeue."""
    began = NOW - 5 * HOUR
    running = state != "PENDING"
    cells = dict.fromkeys(squeue.FIELDS, "") | {
        "JobID": str(number),
        "JobArrayID": str(number),
        "UserName": "ana",
        "Account": account,
        "Partition": "gpu",
        "QOS": f"funded-{account}",
        "State": state,
        "Reason": "None" if running else "Resources",
        "SubmitTime": str(began),
        "EligibleTime": str(began),
        "StartTime": str(began) if running else "N/A",
        "EndTime": "N/A",
        "TimeLimit": "1-00:00:00",
        "tres-alloc": "cpu=8,node=1,gres/gpu=8",
        "tres-per-node": "gres:gpu:h100:8",
        "NodeList": "n1" if running else "",
        "NumNodes": "1",
        "NumCPUs": "8",
        "PriorityLong": "1",
        "Requeue": "1",
        "BatchFlag": "1",
        "ArrayJobID": str(number),
        "PreemptTime": "N/A",
        "RestartCnt": "0",
        "Dependency": "(null)",
        "Feature": "(null)",
        "OverSubscribe": "OK",
        "admin_comment": MARK,
    }
    cells |= more
    return "".join(cells[name] + squeue.SEPARATOR for name in squeue.FIELDS) + "\n"


def accounting() -> str:
    cells = {
        "JobIDRaw": "7",
        "JobID": "7",
        "Cluster": "main",
        "User": "ana",
        "Account": "vision",
        "QOS": "funded-vision",
        "Partition": "gpu",
        "Submit": str(NOW - 5 * HOUR),
        "Start": str(NOW - 5 * HOUR),
        "End": "Unknown",
        "ElapsedRaw": str(5 * HOUR),
        "Suspended": "00:00:00",
        "State": "RUNNING",
        "AllocTRES": "gres/gpu=8",
        "NNodes": "1",
        "Eligible": str(NOW - 5 * HOUR),
        "TimelimitRaw": "480",
        "AdminComment": "",
    }
    return sacct.SEPARATOR.join(cells[name] for name in sacct.FIELDS) + "\n"


class Stage:
    """The stage, and a sweep on it."""

    def __init__(self, folder: Path) -> None:
        (folder / "bin").mkdir()
        self.slurm = FakeSlurm(folder / "bin")
        self.snapshot = folder / "snapshot"
        self.ledger = Ledger.open(f"sqlite:///{folder / 'ledger.db'}", create=True)
        self.ledger.apply_changeset("main", TREE, "root", "root", "first", 0, 100)
        self.timeout = 60.0
        self.show(row(7, "vision", "RUNNING"))

    def show(self, victim: str) -> None:
        self.slurm.says("jobs", victim + row(9, "language", "PENDING"))
        self.slurm.says("runs", accounting())

    def sweep(self, now: int = NOW, grace: int = 0, requeue: str = "owed") -> Swept:
        settings = Settings.model_validate(
            {
                "sweep": {"grace": grace, "margin": 0.01, "requeue": requeue},
                "snapshot": {"path": str(self.snapshot)},
            }
        )
        accounts = self.slurm.commands(self.timeout)
        fence = Fence(self.ledger, "main", "stage:1", 60, 900, lambda: now)
        fence.take()
        out = sweep(
            CommandSlurm(self.slurm.commands()),
            self.ledger,
            lambda cluster: lambda since, until: sacct.runs(accounts, cluster, since, until),
            settings,
            now,
            fence=fence,
        )
        fence.release()
        return out

    def steps(self) -> list[str]:
        return [intent.step for intent in self.ledger.intents_since("main", 0)]


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    one = Stage(tmp_path)
    with one.ledger:
        yield one


def test_on_this_stage_the_run_makes_way(stage: Stage) -> None:
    out = stage.sweep()
    assert stage.slurm.deeds() == [REQUEUE]
    assert "requeued job 7 (8 GPUs)" in out.sentence()


def test_the_sentence_and_top_call_the_same_jobs_owed(stage: Stage) -> None:
    out = stage.sweep(requeue="never")
    assert out.sentence() == "swept: 1 running, 1 waiting, 1 owed; nobody makes way yet."
    settings = Settings.model_validate({"sweep": {"margin": 0.01, "requeue": "never"}})
    port = CommandSlurm(stage.slurm.commands())
    shown = overview_of(port, lambda: stage.ledger, settings, lambda: "main", NOW)
    assert {team.account: team.load and team.load.owed_gpus for team in shown.teams} == {
        "vision": 0,
        "language": 8,
    }
    stage.slurm.says("jobs", row(7, "vision", "PENDING") + row(9, "language", "PENDING"))
    stage.slurm.says("nodes", NODE.replace("AllocTRES=gres/gpu=8", "AllocTRES="))
    assert "1 owed; nobody makes way yet" in stage.sweep(NOW + 10).sentence(), "8 GPUs for two"


def ended_by_the_time(stage: Stage) -> None:
    stage.slurm.says("refusal", "Job/step already completing or completed for job 7")
    out = stage.sweep()
    assert stage.slurm.deeds() == [REQUEUE], "Incomplete: a finished job is not started again"
    assert stage.steps() == ["left"]
    assert "left job 7: the job has ended" in out.sentence()


def not_requeueable(stage: Stage) -> None:
    stage.show(row(7, "vision", "RUNNING", Requeue="0"))
    out = stage.sweep()
    assert stage.slurm.deeds() == []
    assert (7, "not requeueable (--no-requeue)") in [
        (leave.job_id, leave.reason) for leave in out.decision.left
    ]


def preempted_meanwhile(stage: Stage) -> None:
    stage.slurm.says("refusal", "Job is pending execution for job 7")
    out = stage.sweep()
    assert stage.steps() == ["left"]
    assert "left job 7: the job is pending already" in out.sentence()


def stale_preempt_time(stage: Stage) -> None:
    stage.show(row(7, "vision", "RUNNING", PreemptTime=str(NOW - 5 * HOUR)))
    out = stage.sweep()
    assert stage.slurm.deeds() == [REQUEUE]
    said = "job 7 runs on, though Slurm preempted it 18000 s ago: stale PreemptTime"
    assert said in out.sentence()
    stage.show(row(7, "vision", "RUNNING", PreemptTime=str(NOW - 30)))
    assert "stale" not in stage.sweep().sentence(), "it is in its grace"


def completing(stage: Stage) -> None:
    stage.show(row(7, "vision", "COMPLETING"))
    out = stage.sweep()
    assert stage.slurm.deeds() == []
    (left,) = out.decision.left
    assert left.job_id == 9
    assert "free or yielding: none" in left.reason


def unknown_id(stage: Stage) -> None:
    stage.slurm.says("refusal", "Invalid job id specified for job 7")
    out = stage.sweep()
    assert stage.steps() == ["left"]
    assert "left job 7: the job is gone" in out.sentence()


def nothing_was_done(stage: Stage, what: str) -> None:
    with pytest.raises(SlurmUnreachable, match=what):
        stage.sweep()
    assert stage.slurm.deeds() == []
    assert stage.steps() == []
    assert not stage.snapshot.exists()
    assert stage.ledger.last_sweeps(1) == []


def sacct_timeout(stage: Stage) -> None:
    stage.slurm.script("sacct", "exec sleep 30")
    stage.timeout = 0.2
    nothing_was_done(stage, "sacct did not answer within")


def no_associations(stage: Stage) -> None:
    stage.slurm.says("assoc", "")
    nothing_was_done(stage, "sacctmgr answered nothing")
    stage.slurm.says("assoc", "root|\n")
    nothing_was_done(stage, "no account of cluster main but root")


CASES: dict[str, Callable[[Stage], None]] = {
    "P01": ended_by_the_time,
    "P03": not_requeueable,
    "P05": preempted_meanwhile,
    "P11": stale_preempt_time,
    "P17": completing,
    "P31": unknown_id,
    "S36": sacct_timeout,
    "M27": no_associations,
}


@pytest.mark.parametrize("case", CASES)
def test_the_action_is_right(case: str, stage: Stage) -> None:
    CASES[case](stage)


def test_every_row_of_the_table_has_a_test() -> None:
    rows = re.findall(r"^\| ([A-Z]\d+) ", TABLE.read_text(), re.MULTILINE)
    assert set(rows) == set(CASES) | ELSEWHERE


# -- more of their kind --------------------------------------------------------------------------


def test_interactive_runs_are_left_like_those_that_cannot_be_requeued(stage: Stage) -> None:
    stage.show(row(7, "vision", "RUNNING", BatchFlag="0"))
    stage.sweep()
    assert stage.slurm.deeds() == []


@pytest.mark.parametrize("state", ["SUSPENDED", "CONFIGURING", "RESIZING", "SIGNALING", "STOPPED"])
def test_what_holds_its_gpus_but_does_not_run_is_left(stage: Stage, state: str) -> None:
    stage.show(row(7, "vision", state))
    stage.sweep()
    assert stage.slurm.deeds() == []


def test_an_owed_job_that_is_held_meanwhile_is_owed_nothing(stage: Stage) -> None:
    stage.sweep(grace=5)
    held = row(9, "language", "PENDING").replace("Resources", "JobHeldUser")
    stage.slurm.says("jobs", row(7, "vision", "RUNNING") + held)
    said = stage.sweep(NOW + 10, grace=5).sentence()
    assert "left job 7: job 9 waits no more" in said
    assert REQUEUE not in stage.slurm.deeds()


def test_requeues_that_are_switched_off_stop_what_is_under_way(stage: Stage) -> None:
    stage.sweep(grace=5)
    said = stage.sweep(NOW + 10, grace=5, requeue="never").sentence()
    assert "left job 7: requeues are off (sweep.requeue)" in said
    assert REQUEUE not in stage.slurm.deeds()


def test_always_waits_for_somebody_who_wants_gpus(stage: Stage) -> None:
    later = row(9, "language", "PENDING").replace("Resources", "BeginTime")
    stage.slurm.says("jobs", row(7, "vision", "RUNNING") + later)
    stage.sweep(requeue="always")
    assert stage.slurm.deeds() == []


def test_behind_a_pause_a_run_is_warned_once_more_and_not_twice(stage: Stage) -> None:
    stage.sweep(grace=30)
    (warning, *rest) = stage.slurm.deeds()
    stage.ledger.set_brake("main", paused=True, author="mara", reason="x", now=NOW + 1)
    stage.sweep(NOW + 2, grace=30)
    assert stage.slurm.deeds() == [warning, *rest]
    stage.ledger.set_brake("main", paused=False, author="mara", reason="x", now=NOW + 10)
    stage.sweep(NOW + 9, grace=30)  # it began before the pause ended, and saw the end
    stage.sweep(NOW + 12, grace=30)
    assert stage.slurm.deeds().count(warning) == 2


def test_a_run_that_slurm_is_handing_our_signal_to_is_not_taken_for_over(stage: Stage) -> None:
    stage.sweep(grace=5)
    assert stage.steps() == ["signalled"]
    stage.show(row(7, "vision", "SIGNALING"))
    assert "still in grace" in stage.sweep(NOW + 10, grace=5).sentence()
    assert stage.steps() == ["signalled"]
    stage.show(row(7, "vision", "SUSPENDED"))
    said = stage.sweep(NOW + 20, grace=5).sentence()
    assert "left job 7: the run does not run (the job is SUSPENDED)" in said
    assert stage.steps() == ["left"]
    assert REQUEUE not in stage.slurm.deeds()


@pytest.mark.parametrize("command", ["squeue", "scontrol", "sacct", "sacctmgr"])
@pytest.mark.parametrize(
    "body",
    ["exit 1", "echo 'error: Unable to contact slurm controller (connect failure)' >&2; exit 0"],
)
def test_whichever_source_fails_nothing_is_done(stage: Stage, command: str, body: str) -> None:
    stage.slurm.script(command, body)
    nothing_was_done(stage, command)


def test_gpus_that_are_not_accounted_are_no_free_gpus(stage: Stage) -> None:
    stage.slurm.says("config", "ClusterName = main\nAccountingStorageTRES = cpu,mem\n")
    nothing_was_done(stage, "does not account GPUs")


def test_a_task_of_an_array_goes_alone(stage: Stage) -> None:
    """The last task to start has the array's own id, which would mean every task."""
    stage.show(row(7, "vision", "RUNNING", JobArrayID="7_3"))
    stage.sweep()
    assert stage.slurm.deeds() == ["scontrol requeue Incomplete 7_3"]
    (intent,) = stage.ledger.intents_since("main", 0)
    assert (intent.job_id, intent.run_start) == (7, NOW - 5 * HOUR)


def test_a_task_with_an_id_of_its_own_goes_by_it(stage: Stage) -> None:
    stage.show(row(7, "vision", "RUNNING", JobArrayID="4_3", ArrayJobID="4"))
    stage.sweep()
    assert stage.slurm.deeds() == [REQUEUE]


def test_a_run_that_nobody_knows_is_ended_where_it_was_last_seen(stage: Stage) -> None:
    """A runaway: sacct says for ever RUNNING, and no squeue knows it."""
    stage.sweep(NOW - HOUR)
    stage.slurm.says("jobs", row(9, "language", "PENDING"))
    out = stage.sweep(NOW)
    assert "ended job 7 in the ledger, which the accounting believes to run" in out.sentence()
    assert stage.ledger.unfinished_runs("main") == []
    (run,) = stage.ledger.runs_between("main", 0, NOW)
    assert (run.end, run.state) == (NOW - HOUR, "LOST")
    assert "ended job 7" not in stage.sweep(NOW + 30).sentence()


@pytest.mark.parametrize("others", ["", row(9, "language", "PENDING")])
def test_a_run_that_the_queue_knows_to_have_ended_ends_in_the_ledger(
    stage: Stage, others: str
) -> None:
    """slurmdbd may be behind, or have lost the end; nobody is told, for nothing is amiss."""
    stage.sweep(NOW - HOUR)
    stage.slurm.says("jobs", row(7, "vision", "COMPLETED", EndTime=str(NOW - 300)) + others)
    assert "ended" not in stage.sweep(NOW).sentence()
    (run,) = stage.ledger.runs_between("main", 0, NOW)
    assert (run.end, run.state) == (NOW - 300, "COMPLETED")


# -- what came of a requeue ----------------------------------------------------------------------


def requeued(**more: str) -> str:
    """The run of job 7 as it waits again."""
    return row(7, "vision", "PENDING", **{"Reason": "BeginTime", "RestartCnt": "1", **more})


def test_an_owed_job_that_does_not_start_is_said_once_and_cools_down(stage: Stage) -> None:
    stage.sweep()
    stage.show(requeued())
    said = "job 9 has not started, though GPUs were freed for it 60 s ago; Slurm says Resources;"
    for early in (30, 60):  # it is seen pending at the first of these, and its GPUs are free
        assert "has not started" not in stage.sweep(NOW + early).sentence()
    assert said + " nobody makes way for it again for 840 s" in stage.sweep(NOW + 90).sentence()
    later = stage.sweep(NOW + 120)
    assert "has not started" not in later.sentence()
    why = {leave.job_id: leave.reason for leave in later.decision.left}
    assert why[9] == "GPUs were freed for it 90 s ago; it has not started yet (Resources)"
    stage.show(row(7, "vision", "RUNNING", StartTime=str(NOW + 100), admin_comment=""))
    (cools,) = [one for one in stage.sweep(NOW + 200).decision.left if one.job_id == 9]
    assert cools.reason.startswith("GPUs were freed for it 170 s ago")
    left = {leave.job_id: leave.reason for leave in stage.sweep(NOW + 930).decision.left}
    assert left[9].startswith("needs 1 node x 8"), "it asks again"


def test_an_owed_job_that_started_is_not_complained_of(stage: Stage) -> None:
    stage.sweep()
    started = row(9, "language", "RUNNING", StartTime=str(NOW + 5))
    stage.slurm.says("jobs", requeued() + started)
    for late in (30, 60, 90):
        assert "has not started" not in stage.sweep(NOW + late).sentence()


def test_a_job_that_is_held_after_its_requeue_is_reported(stage: Stage) -> None:
    stage.sweep()
    stage.show(requeued(Reason="JobHeldAdmin"))
    assert "held after its requeue: job 7, release it by hand" in stage.sweep(NOW + 30).sentence()


def test_a_requeued_job_still_asks_for_what_it_asked(stage: Stage) -> None:
    """Its marker and its QOS are those of before, so it is funded again without a word."""
    stage.sweep()
    stage.show(requeued())
    out = stage.sweep(NOW + 30)
    assert out.decision.verdicts.why[7] == "fits"
    assert out.retagged == []


def test_a_job_that_runs_anew_is_not_hit_by_an_old_intent(stage: Stage) -> None:
    """Slurm requeued and started it between our plan and our deed: another start, another run."""
    stage.sweep()
    stage.show(row(7, "vision", "RUNNING", StartTime=str(NOW + 1)))
    stage.sweep(NOW + 30)
    assert stage.slurm.deeds() == [REQUEUE], "once, for the first run"
    assert stage.steps() == ["done"]


def test_an_empty_queue_ends_no_run(stage: Stage) -> None:
    """It may be a missing permission."""
    stage.sweep(NOW - HOUR)
    stage.slurm.says("jobs", "")
    assert "ended" not in stage.sweep(NOW).sentence()
    assert len(stage.ledger.unfinished_runs("main")) == 1


def test_a_requeue_that_slurm_refuses_is_not_tried_at_every_sweep(stage: Stage) -> None:
    """Each time the job would be warned anew, and write its checkpoint for nothing."""
    stage.slurm.says("refusal", "Requested operation is presently disabled for job 7")
    assert "left job 7: not requeueable" in stage.sweep().sentence()
    stage.sweep(NOW + 30)
    assert stage.slurm.deeds() == [REQUEUE]
    stage.sweep(NOW + 900)
    assert stage.slurm.deeds() == [REQUEUE, REQUEUE]
