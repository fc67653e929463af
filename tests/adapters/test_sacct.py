"""Runs from sacct's text: answers that people reported, bad input, and the command itself."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_budget.core.weights import rate
from slurm_budget.core.window import Window, use
from slurm_budget.errors import BadInput, SlurmUnreachable
from slurm_budget.slurm import sacct
from slurm_budget.slurm.command import Commands
from slurm_budget.slurm.rows import BadRow, class_of
from slurm_budget.state.jobs import Run

from .conftest import ROOT

DATA = ROOT / "tests" / "data"
NOW = int(datetime(2026, 3, 15, 12, tzinfo=UTC).timestamp())


def read(text: str) -> tuple[list[Run], list[BadRow]]:
    bad: list[BadRow] = []
    return list(sacct.good(sacct.dump(text.splitlines(keepends=True), "dump"), bad)), bad


def test_a_row_whose_qos_is_not_known_yet_has_the_class_of_its_marker() -> None:
    marker = "JS1:abc;sbudget:1:c=funded:a=funded:m=40:w=fits"
    assert class_of("Unknown", marker) == "funded"
    assert class_of("", marker.replace("c=funded", "c=preemptible")) == "preemptible"
    assert class_of("Unknown", "") == "preemptible"
    assert class_of("preemptible", marker) == "preemptible", "a QOS that is known decides"


def test_reported_rows_charge_what_they_should() -> None:
    lines = (DATA / "sacct_window.psv").read_text().splitlines()
    runs, bad = read("\n".join(line.partition(";;")[0].rstrip() for line in lines))
    assert bad == []
    found = {
        (run.cluster, run.job_id, run.start): use(
            replace(run, class_="funded"), rate(run.gpus, {}), Window(), NOW
        )
        for run in runs
    }
    answers = [line for line in lines if ";;" in line and not line.startswith("#")]
    of_cluster = {key: ms for key, ms in found.items() if key[0] == "c1"}
    told = {}
    for line in answers:
        cells = line.split("|")
        answer = line.partition(";;")[2].split()[0]
        if answer.isdigit() and cells[7][0].isdigit():
            start = int(datetime.fromisoformat(cells[7] + "+00:00").timestamp())
            told["c1", int(cells[0]), start] = int(answer) * 1000
    suspect = {key: ms for key, ms in of_cluster.items() if key not in told}
    assert {key: ms for key, ms in of_cluster.items() if key in told} == told
    assert [key[1] for key in suspect] == [912], "runs for ever; squeue decides (core/over.py)"
    assert [run.account for run in runs if run.job_id == 902] == ["lab_b"]
    assert {run.job_id for run in runs}.isdisjoint({904, 914}), "never ran"


def test_good_rows_go_in_and_bad_ones_are_listed_with_their_line() -> None:
    runs, bad = read((DATA / "sacct_bad.psv").read_text())
    assert [run.job_id for run in runs] == [1, 1, 13, 14]
    assert [(row.line, row.reason) for row in bad] == [
        (3, "16 columns instead of 15 (a '|' in JobName or AdminComment?)"),
        (4, "9 columns instead of 15 (torn?)"),
        (5, "the state 'SINGING' is not one of Slurm's"),
        (6, "it ends 1000 s before it starts"),
        (7, "ElapsedRaw -5 is below zero"),
        (8, "TRES text 'cpu=2,mem=512M,node=' is cut off"),
        (9, "Start 'yesterday' is not a time"),
        (10, "JobIDRaw 'x9' is not a number"),
    ]
    assert str(bad[1]).startswith("line 4: 9 columns instead of 15 (torn?): '3|main|ben")
    first = runs[0]
    assert (first.account, first.class_, first.min_runtime) == ("vision", "funded", 600)
    assert first.gpus == {"h100": 4}
    other = runs[2]
    assert (other.cluster, other.end, other.num_nodes) == ("other", None, 2)
    assert runs[3].state == "CANCELLED"


def test_the_class_is_that_of_the_qos() -> None:
    assert class_of("funded") == class_of("funded-vision") == "funded"
    for qos in ("preemptible", "normal", "", "fundedx", "unfunded"):
        assert class_of(qos) == "preemptible"


def test_a_dump_may_have_any_separator_and_order() -> None:
    text = (
        "# a note\nState;|;JobIDRaw;|;End;|;Start;|;User;|;Account;|;QOS;|;AllocTRES;|;Cluster\n"
        "COMPLETED;|;7;|;200;|;100;|;ana;|;vision;|;normal;|;gres/gpu=2;|;main\n"
    )
    runs, bad = read(text)
    assert (bad, len(runs)) == ([], 1)
    assert (runs[0].job_id, runs[0].start, runs[0].end, runs[0].submit) == (7, 100, 200, 100)


def test_a_separator_in_the_last_column_does_no_harm() -> None:
    header = "JobIDRaw|Cluster|User|Account|QOS|Start|End|State|AllocTRES|AdminComment\n"
    runs, bad = read(
        header + "7|main|ana|v|funded-v|100|200|COMPLETED||a|b;sbudget:1:c=funded:"
        "a=funded:m=60:w=fits\n"
    )
    assert (bad, runs[0].min_runtime) == ([], 60)


def test_a_dump_without_header_has_our_columns() -> None:
    cells = "7|7|main|ana|vision|normal|gpu|90|100|200|60|00:00:40|COMPLETED|gres/gpu=2|1|95|60|\n"
    runs, bad = read(cells)
    assert bad == []
    assert (runs[0].partition, runs[0].suspended) == ("gpu", 40)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("hello\nworld\n", "no dump of sacct"),
        (
            "JobIDRaw|User|Start\n1|ana|5\n",
            "no column Account, QOS, End, State, AllocTRES, Cluster",
        ),
    ],
)
def test_what_is_no_dump_is_refused(text: str, what: str) -> None:
    with pytest.raises(BadInput, match=what):
        read(text)
    assert read("") == ([], [])


@given(st.text(alphabet="0123456789|:\x1f\n.-aN ", max_size=200))
def test_no_text_makes_it_fail(text: str) -> None:
    header = "JobIDRaw|Cluster|User|Account|QOS|Start|End|State|AllocTRES"
    read(header + "\n" + text)
    list(sacct.Reader(sacct.FIELDS, "\x1f").read(sacct.joined(text.splitlines(keepends=True))))


def fake(tmp_path: Path, script: str) -> Commands:
    path = tmp_path / "sacct"
    path.write_text("#!/bin/sh\n" + script)
    path.chmod(0o755)
    return Commands(bin=tmp_path)


def record(*cells: str) -> str:
    return "\\037".join(cells)


def test_the_command_asks_for_every_run_and_no_text_of_users(tmp_path: Path) -> None:
    argv = sacct.argv(1000, 2000)
    assert {"-a", "-D", "-X", "-P", "-n"} <= set(argv)
    assert argv[argv.index("-S") + 1] == "1970-01-01T00:16:40"
    assert argv[argv.index("-E") + 1] == "1970-01-01T00:33:20"
    asked = argv[argv.index("-o") + 1].split(",")
    assert not {"JobName", "Comment", "WorkDir", "SubmitLine"} & set(asked)
    assert asked[-1] == "AdminComment"


def test_live_rows(tmp_path: Path) -> None:
    one = record(
        *("7", "7", "main", "ana", "vision", "funded-vision", "gpu", "90", "100", "Unknown"),
        *("60", "00:00:00", "RUNNING", "gres/gpu:h100=4,gres/gpu=4", "1", "95", "UNLIMITED"),
        "JS1:x\\nmore",
    )
    other = one.replace("main", "elsewhere")
    commands = fake(
        tmp_path, f"printf '{one};sbudget:1:c=funded:a=funded:m=900:w=fits\\n{other}\\n'"
    )
    (run,) = sacct.runs(commands, "main", 0, 10)
    assert isinstance(run, Run)
    assert (run.job_id, run.end, run.class_, run.min_runtime) == (7, None, "funded", 900)
    assert (run.eligible, run.time_limit) == (95, None)


@pytest.mark.parametrize(
    "script",
    [
        "exit 1",
        "echo 'sacct: error: Problem talking to the database: Connection refused' >&2; exit 1",
        "echo 'sacct: error: slurm_persist_conn_open: Something happened' >&2; exit 0",
    ],
)
def test_a_failing_sacct_is_never_no_usage(tmp_path: Path, script: str) -> None:
    one = record(
        *("7", "7", "main", "a", "v", "q", "p", "90", "100", "200", "60", "0", "COMPLETED"),
        *("gres/gpu=1", "1", "90", "60", ""),
    )
    commands = fake(tmp_path, f"printf '{one}\\n'; {script}")
    with pytest.raises(SlurmUnreachable):
        list(sacct.runs(commands, "main", 0, 10))
