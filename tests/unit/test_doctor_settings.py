"""The doctor's rules, settings and generated files."""

import subprocess
import sys
from pathlib import Path

import pytest

from slurm_budget import files, settings
from slurm_budget.core import doctor
from slurm_budget.errors import BadInput, BadInputs, SbudgetError
from slurm_budget.state.jobs import Node

ROOT = Path(__file__).resolve().parents[2]
GOOD = {
    "AccountingStorageType": "accounting_storage/slurmdbd",
    "AccountingStorageTRES": "cpu,mem,gres/gpu",
    "AccountingStorageEnforce": "associations,limits,qos",
    "PriorityType": "priority/multifactor",
    "PriorityFlags": "",
    "PriorityWeightFairShare": "100000",
    "PreemptType": "preempt/qos",
    "PreemptMode": "REQUEUE",
    "JobRequeue": "1",
}


def test_a_good_slurm_conf_has_no_finding() -> None:
    assert {finding.level for finding in doctor.slurm_conf(GOOD)} == {"ok"}


@pytest.mark.parametrize(
    ("key", "value", "check", "line"),
    [
        (
            "AccountingStorageType",
            "accounting_storage/none",
            "accounting",
            "AccountingStorageType=",
        ),
        ("AccountingStorageTRES", "cpu,mem", "gpu accounting", "AccountingStorageTRES=gres/gpu"),
        ("AccountingStorageEnforce", "associations", "enforcement", "limits,qos"),
        ("PriorityType", "priority/basic", "priority", "priority/multifactor"),
        ("PriorityFlags", "NO_FAIR_TREE", "fair tree", "remove NO_FAIR_TREE"),
        ("PriorityWeightFairShare", "0", "fairshare weight", "PriorityWeightFairshare=100000"),
        ("PreemptType", "preempt/none", "preemption", "PreemptType=preempt/qos"),
        ("PreemptMode", "OFF", "preempt mode", "PreemptMode=REQUEUE"),
        ("JobRequeue", "0", "requeue", "JobRequeue=1"),
    ],
)
def test_each_finding_names_the_line_that_mends_it(
    key: str, value: str, check: str, line: str
) -> None:
    (found,) = [f for f in doctor.slurm_conf(GOOD | {key: value}) if f.level != "ok"]
    assert found.check == check
    assert line in found.mend


def test_gpus_billing_and_snapshot() -> None:
    node = Node("n1", "IDLE", frozenset(), {"": 8}, ("gpu",))
    assert [f.level for f in doctor.gpus([])] == ["error"]
    assert [f.level for f in doctor.gpus([node])] == ["ok", "warning"]
    assert doctor.partitions({"gpu": "", "cpu": ""}, {"gpu"})[0].level == "error"
    assert doctor.snapshot_age(None, 900, 0).level == "error"
    assert doctor.snapshot_age(1000, 900, 1800).level == "ok"
    assert doctor.snapshot_age(1000, 900, 1901).level == "error"
    assert doctor.snapshot_age(5000, 900, 1000).level == "error"


def test_settings_read_durations_as_people_write_them(tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    file.write_text('[sweep]\npatience = "2min"\n[window]\nlength = 600\n')
    found = settings.load(file)
    assert (found.sweep.patience, found.window.length, found.sweep.grace) == (120, 600, 60)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[sweep]\npatince = 3\n", "did you mean patience?"),
        ("[swep]\n", "did you mean sweep?"),
        ('[sweep]\npatience = "soon"\n', "not a duration"),
        ("[sweep]\npatience = -1\n", "sweep.patience = -1"),
        ('[jobs]\non_exhausted = "cry"\n', "jobs.on_exhausted"),
        ("[sweep\n", "not TOML"),
    ],
)
def test_faults_of_settings_name_the_key_and_the_mend(
    tmp_path: Path, text: str, words: str
) -> None:
    file = tmp_path / "s.toml"
    file.write_text(text)
    with pytest.raises(BadInput) as caught:
        settings.load(file)
    assert words in str(caught.value)
    assert str(file) in str(caught.value)


def test_all_faults_of_settings_in_one_run(tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    file.write_text("[sweep]\npatience = -1\nmargin = -2\n")
    with pytest.raises(BadInputs) as caught:
        settings.load(file)
    assert len(caught.value.faults) == 2


def test_generated_files_are_what_the_code_says() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "generate"), "--check"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_file_that_cannot_be_written_leaves_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "snapshot"
    files.replace(path, "one")
    assert path.read_text() == "one"
    (tmp_path / "dir").mkdir()
    with pytest.raises(SbudgetError, match="cannot be written"):
        files.replace(tmp_path / "dir", "two")
    assert sorted(item.name for item in tmp_path.iterdir()) == ["dir", "snapshot"]
