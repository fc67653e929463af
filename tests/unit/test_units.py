"""etc/slurm-budget.service and etc/cron.d: they start what there is, and allow what it needs."""

import configparser
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from slurm_budget.cli.main import cli
from slurm_budget.errors import Exit
from slurm_budget.settings import Settings
from slurm_budget.text import durations

ETC = Path(__file__).resolve().parents[2] / "etc"
UNIT = ETC / "slurm-budget.service"
PROGRAM = "/opt/slurm-budget/bin/sbudget"


@pytest.fixture
def service() -> configparser.SectionProxy:
    parser = configparser.ConfigParser(interpolation=None, strict=True)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(UNIT.read_text())
    return parser["Service"]


def command_of(line: str) -> str:
    program, command = line.split()[:2]
    assert program == PROGRAM
    return command


def test_it_starts_the_daemon(service: configparser.SectionProxy) -> None:
    assert command_of(service["ExecStart"]) in cli.list_commands(None)  # type: ignore[arg-type]
    assert service["Type"] == "notify"
    assert service["RestartPreventExitStatus"] == str(int(Exit.USAGE))


def test_it_may_write_where_the_defaults_lie(service: configparser.SectionProxy) -> None:
    settings = Settings()
    allowed = Path(service["ReadWritePaths"])
    assert service["ProtectSystem"] == "strict"
    assert settings.snapshot.path.parent == allowed
    assert settings.ledger.url == f"sqlite:///{allowed}/ledger.db"
    assert service["StateDirectory"] == allowed.name


def test_it_has_time_for_a_step_and_for_a_beat(service: configparser.SectionProxy) -> None:
    settings = Settings()
    assert int(service["TimeoutStopSec"]) > settings.slurm.timeout
    assert (
        durations.human(service["WatchdogSec"]) > settings.sweep.beat + 5 * settings.slurm.timeout
    )


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd here")
def test_systemd_finds_nothing_wrong(tmp_path: Path) -> None:
    copy = tmp_path / UNIT.name
    copy.write_text(UNIT.read_text().replace(PROGRAM, sys.executable))
    done = subprocess.run(
        ["systemd-analyze", "verify", str(copy)], capture_output=True, text=True, check=False
    )
    assert [line for line in done.stderr.splitlines() if UNIT.name in line] == []
    assert done.returncode == 0


def test_cron_sweeps() -> None:
    lines = (ETC / "cron.d" / "slurm-budget").read_text().splitlines()
    (job,) = [line for line in lines if line.startswith("*")]
    *when, user, program, command = job.split()[:8]
    assert when == ["*"] * 5
    assert user == "root"
    assert command_of(f"{program} {command}") == "sweep"
