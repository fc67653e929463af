"""`sbudget setup` against a real Slurm, and its undoing: nothing is left behind.

Tested: on a shared machine the plan, and files below another root; on one that may be thrown away
(SBUDGET_DISPOSABLE=1, as in the containers) the whole installation, with sweeps by its own user,
on SQLite and on MariaDB. systemd's own part is test_systemd's.
"""

import os
import pwd
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from disposable import DEFAULTS, cleanly, machine, restart
from playground import ROOT, Done, Playground
from story import ANA

from slurm_budget.ledger import connect

CRON = Path("/etc/cron.d/slurm-budget")
CONFIG = Path("/etc/slurm-budget/slurm-budget.toml")
BUDGETS = """\
cluster: {name}
accounts:
  vision: {{gpus: 2, users: [{ana}]}}
"""


def test_below_another_root_it_touches_nothing_else(site: Playground, tmp_path: Path) -> None:
    users = {entry.pw_name for entry in pwd.getpwall()}  # other clusters write in theirs
    before = {path: path.stat().st_mtime for path in site.conf.parent.iterdir()}
    site.sbudget("setup", "--root", str(tmp_path), "--yes")
    assert list(tmp_path.rglob("slurm-budget.service"))
    site.sbudget("setup", "--root", str(tmp_path), "--yes", "--undo")
    assert list(tmp_path.iterdir()) == []
    assert {entry.pw_name for entry in pwd.getpwall()} == users
    assert {path: path.stat().st_mtime for path in site.conf.parent.iterdir()} == before


def test_it_sees_what_there_is_and_a_dry_run_changes_nothing(site: Playground) -> None:
    before = site.slurm("sacctmgr", "-nP", "show", "user", "format=user,adminlevel")
    lines = site.sbudget("setup", "--dry-run", "--user", "root").out.splitlines()
    shown = {line.split()[0]: line.split(maxsplit=1)[1].strip() for line in lines if line.strip()}
    for step in ("user", "folders", "config", "ledger", "slurm", "import"):
        assert shown[step].startswith("there"), lines
    other = site.sbudget("setup", "--dry-run", "--only", "slurm", "--user", "daemon").out
    assert "daemon becomes an administrator of Slurm" in other
    assert site.slurm("sacctmgr", "-nP", "show", "user", "format=user,adminlevel") == before


@pytest.fixture
def clean() -> Iterator[Playground]:
    with cleanly("sbsetup", 2) as play:
        yield play


def sweeper(play: Playground, line: str) -> Done:
    """A command as the user who sweeps."""
    line = f"cd / && SLURM_CONF={play.conf} {line}"
    return play._run(["su", "slurm-budget", "-s", "/bin/sh", "-c", line], env=DEFAULTS)


def test_the_whole_installation_and_nothing_left_of_it(clean: Playground) -> None:
    before = machine(clean)

    def sbudget(*argv: str, code: int = 0) -> str:
        return clean.sbudget(*argv, code=code, env=DEFAULTS).out

    out = sbudget("setup", "--by", "cron", "--yes")
    assert "FAILED" not in out
    assert "created: sqlite:////var/lib/slurm-budget/ledger.db" in out
    assert "nothing to do" in sbudget("setup", "--yes")

    budgets = clean.site / "budgets.yaml"
    budgets.write_text(BUDGETS.format(name=clean.name, ana=ANA))
    sbudget("budget", "load", str(budgets), "-m", "first")
    sbudget("sync", "--yes")
    restart(clean, lua=True)
    (cron,) = re.findall(r"^[* ]+ slurm-budget (\S+ sweep) >>", CRON.read_text(), re.MULTILINE)
    swept = sweeper(clean, cron)
    assert swept.code == 0, swept
    assert Path("/var/lib/slurm-budget/snapshot").owner() == "slurm-budget"
    assert "ERROR" not in sbudget("doctor")

    # what it may do with another's job: the marker beside the QOS, and a requeue
    job, said = clean.sbatch(ANA, "--gres=gpu:1", "--qos=funded", command="sleep 300")
    assert "funded; protected" in said
    held, _ = clean.sbatch(ANA, "--gres=gpu:1", "--hold", command="true")
    tag = f"scontrol update JobId={held} QOS=funded-vision AdminComment=sbudget"
    assert sweeper(clean, tag).code == 0
    assert clean.job(held)["admin_comment"] == "sbudget"
    clean.wait("it runs", lambda: clean.state(job) == "RUNNING")
    assert sweeper(clean, f"scancel --signal=CONT {job}").code == 0
    assert sweeper(clean, f"scontrol requeue Incomplete {job}").code == 0
    clean.wait("it was requeued", lambda: clean.job(job).get("RestartCnt") == "1")
    clean.slurm("scancel", str(job), str(held))

    # slurmctld would not start without a script while slurm.conf asks for one
    assert "lets every job pass" in sbudget("setup", "--undo", "--yes")
    restart(clean, lua=False)
    left = sbudget("setup", "--undo", "--yes")
    assert "ledger.db stays (--purge takes it too)" in left
    assert "FAILED" not in sbudget("setup", "--undo", "--purge", "--yes")
    # but for the budgets' user, whom sync brought to Slurm
    assert machine(clean) == before | {f"{ANA}|None"}


@pytest.fixture
def ledger_in_mariadb() -> Iterator[str]:
    """The settings that `scripts/mariadb up` prints, but for where the password is to lie."""
    script = [sys.executable, str(ROOT / "scripts" / "mariadb")]
    folder = Path(f"/tmp/sbsetup-{os.getpid()}")
    up = subprocess.run([*script, "up", str(folder)], capture_output=True, text=True, check=True)
    yield up.stdout
    subprocess.run([*script, "down", str(folder)], capture_output=True, check=True)


def test_a_ledger_in_mariadb_from_nothing_to_nothing(
    clean: Playground, ledger_in_mariadb: str
) -> None:
    before = machine(clean)

    def sbudget(*argv: str, code: int = 0) -> str:
        return clean.sbudget(*argv, code=code, env=DEFAULTS).out

    first = ("setup", "--by", "cron", "--skip", "hook")
    sbudget(*first, "--yes", "--only", "user", "--only", "config")
    password = CONFIG.with_name("password")
    (theirs,) = re.findall(r'password_file = "(.*)"', ledger_in_mariadb)
    shutil.copy(theirs, password)
    password.chmod(0o600)
    text = ledger_in_mariadb.replace(theirs, str(password)).replace("mariadb+", "mysql+")
    CONFIG.write_text(text)
    failed = sbudget(*first, "--yes", code=3)
    assert "the password file cannot be read: Permission denied" in failed
    assert "`chown` it to the user who runs this" in failed

    shutil.chown(password, "slurm-budget")
    planned = sbudget(*first, "--dry-run")
    assert "make the tables of the ledger mysql+pymysql://sbudget@127.0.0.1" in planned
    assert "FAILED" not in planned, "what needs the tables waits for them"
    assert "created: mariadb+pymysql://sbudget@" in sbudget(*first, "--yes")
    assert "nothing to do" in sbudget(*first)

    budgets = clean.site / "budgets.yaml"
    budgets.write_text(BUDGETS.format(name=clean.name, ana=ANA))
    sbudget("budget", "load", str(budgets), "-m", "first")
    sbudget("sync", "--yes")
    (cron,) = re.findall(r"^[* ]+ slurm-budget (\S+ sweep) >>", CRON.read_text(), re.MULTILINE)
    swept = sweeper(clean, cron)
    assert "swept: " in swept.out, swept
    assert "vision" in sbudget("report", "budgets")
    assert "ok       ledger: schema" in clean.sbudget("doctor", code=None, env=DEFAULTS).out

    undone = sbudget("setup", "--undo", "--purge", "--yes")
    assert f"that database, its user and {password} are yours to remove" in undone
    assert "nothing to do" in sbudget("setup", "--undo", "--purge", "--yes")
    password.unlink()
    CONFIG.parent.rmdir()
    assert machine(clean) == before | {f"{ANA}|None"}
    engine = connect.connect(re.findall(r'url = "(.*)"', text)[0], Path(theirs))
    with connect.reading(engine) as connection:
        kept = connection.exec_driver_sql("SELECT count(*) FROM budget_changesets").scalar()
    assert kept == 1, "the database is the site's"
