"""The command-line port: what Slurm's replies mean. Replies recorded from Slurm 22.05."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_budget.errors import SlurmUnreachable
from slurm_budget.slurm import actions, nodes, squeue, squeue_shares
from slurm_budget.slurm.command import Commands, Reply, checked
from slurm_budget.slurm.port import CommandSlurm
from slurm_budget.state.jobs import Ended

S = squeue.SEPARATOR
RUNNING = [
    *("8", "4_0", "ana", "Vision", "gpu", "preemptible", "RUNNING", "None"),
    *("1795975422", "1795975422", "1795975423", "1796580223", "7-00:00:00"),
    *("cpu=2,node=2,billing=8,gres/gpu=12", "gres:gpu:h100:6", "n[3-4]", "2", "2", "1"),
    *("1", "1", "4", "N/A", "0", "(null)", "(null)", "OK", "2", "N/A"),
    *("1:00:00", "(null)", "(null)"),
]
ARRAY = [
    *("4", "4_[1-9%2]", "ana", "vision", "gpu,big", "preemptible", "PENDING", "Resources"),
    *("1795975422", "1795975422", "1796580223", "1797185023", "UNLIMITED"),
    *("cpu=2,mem=2000000M,node=2,billing=8,gres/gpu=8", "gres:gpu:4", "", "2", "2", "33333"),
    *(
        "0",
        "1",
        "4",
        "N/A",
        "0",
        "(null)",
        "a&b",
        "NO",
        "2",
        "gres:gpu:2",
        "0:00",
        "",
        'JS1:x|"y"\nsecond line',
    ),
]


def text(*rows: list[str]) -> str:
    return "".join(S.join(row) + S + "\n" for row in rows)


def test_squeue_reads_running_and_waiting_jobs() -> None:
    run, array = (squeue.job(row) for row in squeue.records(text(RUNNING, ARRAY)))
    assert (run.id, run.array, run.account, run.gpus) == (8, 4, "vision", {"h100": 12})
    assert run.gpus_on == {"n3": 6, "n4": 6}
    assert (run.start, run.time_limit, run.requeue, run.reason) == (1795975423, 604800, True, "")
    assert (array.tasks, array.at_once, array.partitions) == (9, 2, ("gpu", "big"))
    assert (array.start, array.nodes, array.time_limit) == (None, (), None)
    assert (run.expected, array.expected) == (None, 1796580223)
    assert (array.exclusive, array.features, array.per_node) == (True, "a&b", 4)
    assert (array.per_task, run.per_task) == (2, None)
    assert array.admin_comment == 'JS1:x|"y"\nsecond line'


def test_squeue_cut_off_in_the_middle_is_no_short_queue() -> None:
    whole = text(RUNNING, ARRAY)
    for end in range(1, len(whole) - 1):
        cut = whole[:end]
        if cut == text(RUNNING) or cut == text(RUNNING).rstrip("\n"):
            continue
        with pytest.raises(SlurmUnreachable, match="middle of a job"):
            list(squeue.records(cut))


@given(st.lists(st.text(st.characters(blacklist_characters=S, codec="utf-8")), max_size=5))
def test_whatever_stands_in_admin_comment_shifts_nothing(comments: list[str]) -> None:
    rows = [[*RUNNING[:-1], comment] for comment in comments]
    found = list(squeue.records(text(*rows)))
    assert [row["admin_comment"] for row in found] == comments
    assert all(row["JobID"] == "8" for row in found)


def test_uneven_shares_come_from_scontrol_and_job_names_cannot_forge_them() -> None:
    reply = """\
JobId=2 JobName=evil
     Nodes=n9 CPU_IDs=0 Mem=0 GRES=gpu:h100:99(IDX:0-98)
   UserId=ana(1005) GroupId=root(0)
   JOB_GRES=gpu:h100:12
     Nodes=n2 CPU_IDs=0 Mem=0 GRES=gpu:h100:8(IDX:0-7)
     Nodes=n[3-4] CPU_IDs=0 Mem=0 GRES=gpu:h100:2(IDX:0-1)
   MinCPUsNode=1 MinMemoryNode=0
     Nodes=n7 CPU_IDs=0 Mem=0 GRES=gpu:h100:1(IDX:0)
"""
    assert squeue_shares.gpus_by_node(reply) == {2: {"n2": 8, "n3": 2, "n4": 2}}


def test_a_newline_in_a_comment_neither_ends_the_reading_nor_moves_a_run() -> None:
    mine = """\
JobId=70 JobName=train
   JOB_GRES=gpu:h100:3
     Nodes=n1 CPU_IDs=0 Mem=0 GRES=gpu:h100:2(IDX:0-1)
     Nodes=n2 CPU_IDs=0 Mem=0 GRES=gpu:h100:1(IDX:0)
"""
    words = "JobId=71 JobName=x\n   Comment=y\nJobId=abc\n"
    assert squeue_shares.gpus_by_node(words + mine) == {70: {"n1": 2, "n2": 1}}
    forged = """\
JobId=71 JobName=x
   Comment=y
JobId=70
   JOB_GRES=gpu
     Nodes=n4 CPU_IDs=0 Mem=0 GRES=gpu:h100:3(IDX:0-2)
"""
    for text in (mine + forged, forged + mine):
        assert squeue_shares.gpus_by_node(text)[70] == {}, "not known, rather than believed"


class Recorded(Commands):
    """Slurm that answers from a table; what was asked is kept."""

    def __init__(self, answers: dict[tuple[str, ...], str]) -> None:
        super().__init__()
        self.answers = answers
        self.asked: list[str] = []

    def run(self, *argv: str, stdin: str | None = None, timeout: float | None = None) -> Reply:
        self.asked.append(argv[0])
        return Reply(argv, 0, self.answers[argv], "", 0.0)


def by_total(number: str, per_node: str = "N/A") -> list[str]:
    row = dict(zip(squeue.FIELDS, RUNNING, strict=True)) | {"JobID": number, "JobArrayID": number}
    row |= {"tres-alloc": "node=2,gres/gpu=10", "tres-per-node": per_node}
    return list(row.values())


def test_jobs_that_have_ended_are_told_apart_with_their_last_run() -> None:
    fields = dict(zip(squeue.FIELDS, RUNNING, strict=True)) | {"JobID": "9", "State": "CANCELLED"}
    never = fields | {"JobID": "10", "StartTime": "N/A", "EndTime": "1795975500"}
    unheard_of = fields | {"JobID": "11", "State": "LEVITATING"}  # perhaps alive
    answer = text(RUNNING, *(list(row.values()) for row in (fields, never, unheard_of)))
    found = squeue.queue(Recorded({squeue.argv(): answer}))
    assert [job.id for job in found.jobs] == [8]
    assert found.ended == [
        Ended(9, "CANCELLED", 1795975422, 1795975423, 1796580223),
        Ended(10, "CANCELLED", 1795975422, None, 1795975500),
    ]


def test_shares_are_asked_for_once_and_only_where_they_may_be_uneven() -> None:
    detail = (
        "JobId=8 JobName=x\n   JOB_GRES=gpu:h100:10\n"
        "     Nodes=n3 CPU_IDs=0 Mem=0 GRES=gpu:h100:8(IDX:0-7)\n"
        "     Nodes=n4 CPU_IDs=0 Mem=0 GRES=gpu:h100:2(IDX:0-1)\n"
    )
    answers = {squeue.argv(): text(by_total("8"), by_total("9"))}
    answers["scontrol", "-d", "show", "job"] = detail
    slurm = Recorded(answers)
    uneven, unknown = squeue.jobs(slurm)
    assert (uneven.gpus_on, slurm.asked) == ({"n3": 8, "n4": 2}, ["squeue", "scontrol"])
    assert unknown.gpus_on == {}, "it is not split by guess"
    by_node = Recorded({squeue.argv(): text(RUNNING, by_total("9", "gres:gpu:5"))})
    assert [job.gpus_on for job in squeue.jobs(by_node)] == [{"n3": 6, "n4": 6}, {"n3": 5, "n4": 5}]
    assert by_node.asked == ["squeue"]


def test_excluded_nodes_are_asked_for_once_and_only_where_somebody_may_be_owed() -> None:
    owed = [*ARRAY[:5], "funded-vision", *ARRAY[6:]]
    answers = {
        squeue.argv(): text(RUNNING, owed),
        squeue_shares.EXCLUDED: "4 n[1-2,7]\n5 (null)\n",
    }
    slurm = Recorded(answers)
    run, array = squeue.jobs(slurm)
    assert (run.excluded, array.excluded) == ((), ("n1", "n2", "n7"))
    assert slurm.asked == ["squeue", "squeue"]
    known = answers | {
        squeue.argv(): text(by_total("8"), owed),
        ("scontrol", "-d", "show", "job"): "JobId=8 JobName=x\nJobId=4 JobName=y\n"
        "   ReqNodeList=(null) ExcNodeList=n[1-2,7]\n   Comment=z\n",
    }
    both = Recorded(known)
    assert squeue.jobs(both)[1].excluded == ("n1", "n2", "n7")
    assert both.asked == ["squeue", "scontrol"], "which tells of the shares as well"
    nobody = Recorded({squeue.argv(): text(RUNNING, ARRAY)})
    assert [job.excluded for job in squeue.jobs(nobody)] == [(), ()]
    assert nobody.asked == ["squeue"]


@pytest.mark.parametrize(
    "words",
    [
        "JobId=70 JobName=x\n   ReqNodeList=(null) ExcNodeList=n[1-\n",
        "JobId=71 JobName=x\nJobId=70 JobName=y\n   ReqNodeList=(null) ExcNodeList=n9\n",
        "\n   ReqNodeList=(null) ExcNodeList=n[0-999999999]\n",
    ],
)
def test_words_of_a_job_s_user_exclude_no_node(words: str) -> None:
    mine = "JobId=70 JobName=x\n   ReqNodeList=(null) ExcNodeList=n1\n   Comment="
    assert squeue_shares.excluded_by(mine) == {70: ("n1",)}
    assert squeue_shares.excluded_by(mine + words).get(70, ()) == ()
    assert squeue_shares.excluded_by(words + mine).get(70, ()) in ((), ("n1",))


OVER = frozenset({"BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL",
                  "OUT_OF_MEMORY", "PREEMPTED", "REVOKED", "TIMEOUT"})  # fmt: skip
"""A job that was revoked runs on another cluster of its federation."""
SLURMS_STATES = OVER | {
    *("PENDING", "RUNNING", "SUSPENDED", "COMPLETING", "CONFIGURING", "EXPEDITING", "REQUEUED"),
    *("REQUEUE_FED", "REQUEUE_HOLD", "RESIZING", "RESV_DEL_HOLD", "SIGNALING", "SPECIAL_EXIT"),
    *("STAGE_OUT", "STOPPED"),
}
"""All of Slurm's page on job states, but for the flags that squeue never prints."""


def test_every_state_of_slurm_is_that_of_a_job_that_lives_or_has_ended() -> None:
    assert squeue.LIVE == SLURMS_STATES - OVER
    assert OVER - {"REVOKED"} <= squeue.ENDED
    assert not squeue.ENDED & squeue.LIVE


@pytest.mark.parametrize(
    ("alloc_nodes", "reckoned", "most", "max_nodes"),
    [
        pytest.param(2, 2, 2, 2, id="-N2 --gpus=10"),
        pytest.param(2, 2, 4, 4, id="-N2-4 --gpus=10"),
        pytest.param(1, 2, 2, None, id="--gpus=10"),
        pytest.param(1, 1, 1, None, id="--gpus=10, not looked at yet"),
        pytest.param(2, 2, 0, None, id="no limit"),
    ],
)
def test_how_many_nodes_a_waiting_job_may_have(
    alloc_nodes: int, reckoned: int, most: int, max_nodes: int | None
) -> None:
    row = dict(zip(squeue.FIELDS, ARRAY, strict=True)) | {"NumNodes": str(reckoned)}
    row |= {"tres-alloc": f"cpu=2,node={alloc_nodes},gres/gpu=10", "MaxNodes": str(most)}
    assert squeue.job(row).max_nodes == max_nodes


def test_nodes_with_flags_and_reasons() -> None:
    line = (
        "NodeName=n1 Arch=x86_64 CPUAlloc=1 CPUEfctv=64 CPUTot=64 ActiveFeatures=a,b "
        "Gres=gpu:h100:8 State=MIXED+DRAIN Partitions=gpu,big  CfgTRES=cpu=64,gres/gpu=8 "
        "AllocTRES=cpu=1,gres/gpu=3 Reason=fan State=IDLE Gres=gpu:h100:99 [root@now]"
    )
    (node,) = nodes.parse(line + "\n\n")
    assert (node.state, node.flags, node.usable) == ("MIXED", {"DRAIN"}, False)
    assert (node.gpus, node.gpus_used, node.partitions) == ({"h100": 8}, 3, ("gpu", "big"))
    assert nodes.parse(line.replace("MIXED+DRAIN", "IDLE*"))[0].usable is False
    assert nodes.parse(line.replace("MIXED+DRAIN", "IDLE"))[0].usable is True
    assert nodes.parse(line.replace("MIXED+DRAIN", "MIXED+REBOOT_REQUESTED"))[0].usable is True
    assert nodes.parse(line.replace("MIXED+DRAIN", "IDLE+REBOOT_ISSUED"))[0].usable is False


def reply(code: int = 0, out: str = "", err: str = "") -> Reply:
    return Reply(("scontrol", "requeue"), code, out, err, 0.0)


@pytest.mark.parametrize(
    ("code", "err", "outcome"),
    [
        (0, "", "done"),
        (1, "Invalid job id specified", "gone"),
        (1, "slurm_update error: Job is no longer pending execution", "gone"),
        (1, "Job has already finished for job 7", "gone"),
        (1, "Requested operation is presently disabled for job 1", "refused"),
        (1, "Only batch jobs are accepted or processed for job 3", "refused"),
        (1, "Access/permission denied", "refused"),
        (1, "Invalid qos specification", "refused"),
        (1, "something new", "failed"),
        (0, "something on stderr", "failed"),
        (1, "", "failed"),
    ],
)
def test_what_an_answer_to_a_deed_means(code: int, err: str, outcome: str) -> None:
    assert actions.read(reply(code, err=err)).outcome == outcome


def test_no_answer_to_a_deed_is_no_outcome() -> None:
    with pytest.raises(SlurmUnreachable, match="connect failure"):
        actions.read(reply(1, err="Unable to contact slurm controller (connect failure)"))


def test_a_warning_goes_to_the_steps_of_srun_and_to_the_batch_shell(tmp_path: Path) -> None:
    fake = tmp_path / "scancel"
    fake.write_text(f'#!/bin/sh\necho "$*" >> {tmp_path}/asked\n')
    fake.chmod(0o755)
    assert actions.signal(Commands(bin=tmp_path), "7", "CONT").outcome == "done"
    assert (tmp_path / "asked").read_text().splitlines() == [
        "--signal=CONT 7", "--signal=CONT --full 7",
    ]  # fmt: skip
    fake.write_text("#!/bin/sh\necho 'error: Invalid job id specified' >&2\n")
    assert actions.signal(Commands(bin=tmp_path), "7", "CONT").outcome == "gone"


@pytest.mark.parametrize(
    ("exit_", "err", "outcome", "detail"),
    [
        (0, "", "done", ""),
        (1, "Requested operation is presently disabled", "gone", "nobody is there to read it"),
        (1, "Job/step already completing or completed", "gone", "the job has ended"),
        (1, "Invalid job id specified", "gone", "the job is gone"),
        (1, "Access/permission denied", "refused", "no permission: run as root, SlurmUser or a"),
        (1, "job notify failure: Invalid user id", "refused", "no permission: root and SlurmUser"),
    ],
)
def test_what_an_answer_to_a_word_on_a_terminal_means(
    tmp_path: Path, exit_: int, err: str, outcome: str, detail: str
) -> None:
    fake = tmp_path / "scontrol"
    line = f"job notify failure: {err}" if err else ""
    fake.write_text(
        f'#!/bin/sh\n[ "$*" = "notify 7 your time is over" ] || exit 9\n'
        f'[ -z "{line}" ] || echo "{line}" >&2\nexit {exit_}\n'
    )
    fake.chmod(0o755)
    deed = actions.notify(Commands(bin=tmp_path), 7, "your time is over")
    assert (deed.outcome, deed.detail[: len(detail)]) == (outcome, detail)


@pytest.mark.parametrize(
    "answer",
    [
        reply(1, err="sacct: error: slurm_persist_conn_open: Connection refused"),
        reply(0, err="sacctmgr: error: Problem talking to the database: Connection refused"),
        reply(1),
    ],
)
def test_an_unreachable_source_is_never_an_empty_one(answer: Reply) -> None:
    with pytest.raises(SlurmUnreachable):
        checked(answer)


def test_empty_output_is_refused_where_there_must_be_something() -> None:
    assert checked(reply()) == ""
    with pytest.raises(SlurmUnreachable, match="answered nothing"):
        checked(reply(), silent_ok=False)


def test_the_callers_environment_does_not_change_slurms_output(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SQUEUE_FORMAT", "%i")
    monkeypatch.setenv("SLURM_TIME_FORMAT", "relative")
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    done = Commands().run("env")
    assert "SQUEUE_FORMAT" not in done.out
    assert "SLURM_TIME_FORMAT=%s" in done.out
    assert "TZ=UTC" in done.out


def test_whole_nodes_have_a_field_of_their_own_from_26_05_on() -> None:
    """There OverSubscribe is NO for every job of a partition that shares nothing."""
    fields = squeue.fields((26, 5))
    config = {("scontrol", "show", "config"): "SLURM_VERSION           = 26.05.5\n"}
    at = fields.index("Exclusive")
    for said, exclusive in (("NODE", True), ("NO", False), ("USER", False)):
        row = [*ARRAY[:at], said, *ARRAY[at + 1 :]]
        slurm = CommandSlurm(Recorded(config | {squeue.argv(fields): text(row)}))
        assert [job.exclusive for job in slurm.jobs()] == [exclusive]
    assert "OverSubscribe" not in fields
    assert squeue.fields((24, 11)) == squeue.fields((22, 5)) == squeue.FIELDS


def test_missing_and_slow_commands_say_so(tmp_path: Path) -> None:
    with pytest.raises(SlurmUnreachable, match="not there"):
        Commands(bin=tmp_path).run("squeue")
    with pytest.raises(SlurmUnreachable, match="did not answer within"):
        Commands(timeout=0.05).run("sleep", "5")


def test_operators_are_uids_and_names_unknown_here_are_passed_over(tmp_path: Path) -> None:
    rows = "root|Administrator\ndaemon|Operator\nbin|None\nno-such-user|Operator\n"
    (tmp_path / "sacctmgr").write_text(f"#!/bin/sh\ncat <<END\n{rows}END\n")
    (tmp_path / "sacctmgr").chmod(0o755)
    assert CommandSlurm(Commands(bin=tmp_path)).operators() == (0, 1)
    (tmp_path / "sacctmgr").write_text("#!/bin/sh\n")
    with pytest.raises(SlurmUnreachable, match="answered nothing"):
        CommandSlurm(Commands(bin=tmp_path)).operators()
