"""What lies in etc/ for systemd, cron, logrotate and slurm.conf: it starts what there is, allows
what it needs, and names what the code names."""

import configparser
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from slurm_budget.cli.main import cli
from slurm_budget.core import doctor, doctor_site, hook_check
from slurm_budget.core import setup as core
from slurm_budget.errors import Exit
from slurm_budget.settings import DEFAULT_PATH, Settings
from slurm_budget.slurm import ctld
from slurm_budget.text import durations

ETC = Path(__file__).resolve().parents[2] / "etc"
UNIT = ETC / "slurm-budget.service"
PROGRAM = core.PROGRAM


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
        ["systemd-analyze", "--man=no", "verify", str(copy)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert [line for line in done.stderr.splitlines() if UNIT.name in line] == []
    assert done.returncode == 0


def test_cron_sweeps() -> None:
    lines = (ETC / "cron.d" / "slurm-budget").read_text().splitlines()
    (job,) = [line for line in lines if line.startswith("*")]
    *when, user, program, command = job.split()[:8]
    assert when == ["*"] * 5
    assert user == core.USER
    assert command_of(f"{program} {command}") == "sweep"
    assert job.partition(">> ")[2].startswith(f"{core.LOGS}/sweep.log ")


def test_it_runs_as_a_user_with_none_of_root_s_rights(
    service: configparser.SectionProxy,
) -> None:
    assert service["User"] == core.USER
    assert service["CapabilityBoundingSet"] == ""


def test_user_and_folders_are_the_same_everywhere() -> None:
    state = Settings().snapshot.path.parent
    assert (str(state), core.CONFIG) == (core.STATE, str(DEFAULT_PATH.parent))
    assert re.search(rf"^u {core.USER} .* {state} -$", text("sysusers.d/slurm-budget.conf"), re.M)
    assert f"\nd {state} 0755 {core.USER} {core.USER} -\n" in text("tmpfiles.d/slurm-budget.conf")
    rotated = text("logrotate.d/slurm-budget")
    assert f"\n{core.LOGS}/*.log {{\n" in rotated
    assert f"su {core.USER} {core.USER}\n" in rotated


@pytest.mark.skipif(shutil.which("systemd-tmpfiles") is None, reason="no systemd here")
@pytest.mark.parametrize("name", ["tmpfiles", "sysusers"])
def test_systemd_makes_what_they_say(name: str, tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    known = {"passwd": f"{core.USER}:x:990:990::/:/bin/sh\n", "group": f"{core.USER}:x:990:\n"}
    for file, line in known.items():
        (tmp_path / "etc" / file).write_text(line if name == "tmpfiles" else "")
    options = ["--create"] if name == "tmpfiles" else []
    given = str(ETC / f"{name}.d" / "slurm-budget.conf")
    done = subprocess.run(
        [f"systemd-{name}", *options, f"--root={tmp_path}", given],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    if name == "tmpfiles":
        assert (tmp_path / core.STATE.lstrip("/")).is_dir()
    else:
        assert f"{core.USER}:x:" in (tmp_path / "etc/passwd").read_text()


def text(name: str) -> str:
    return (ETC / name).read_text()


def snippet() -> dict[str, str]:
    lines = [line for line in text("slurm.conf.d/slurm-budget.conf").splitlines() if line]
    pairs = [line.split("=", 1) for line in lines if not line.startswith("#")]
    return dict(pairs)


def test_the_lines_for_slurm_conf_are_those_that_the_doctor_asks_for() -> None:
    lines = snippet()
    shown = lines | {"PriorityFlags": "", "MinJobAge": f"{lines['MinJobAge']} sec"}
    assert {finding.level for finding in doctor.slurm_conf(shown)} == {"ok"}
    assert doctor_site.min_job_age(shown, Settings().sweep.beat).level == "ok"
    assert ctld.uses_lua(shown)
    asked = [f.mend for f in doctor.slurm_conf({"JobRequeue": "0"})] + [hook_check.PLUGIN_LINE]
    wanted = set(re.findall(r"slurm\.conf: (\w+)=", " ".join(asked)))
    assert wanted <= set(lines)
    assert len(wanted) >= 7
    (line,) = [f.mend for f in doctor.partitions({"gpu": ""}, {"gpu"})]
    billing = line[line.index("TRESBillingWeights=") :]
    assert billing in text("slurm.conf.d/slurm-budget.conf")


def test_each_line_for_slurm_conf_says_why() -> None:
    before = ""
    for line in text("slurm.conf.d/slurm-budget.conf").splitlines():
        if line and not line.startswith("#"):
            assert before, f"{line} stands without a reason"
        before = line
