"""`sbudget setup` against a real Slurm, and its undoing: nothing is left behind.

Tested: on a shared machine the plan, and files below another root; on one that may be thrown away
(SBUDGET_DISPOSABLE=1, as in the containers) the whole installation, with sweeps by its own user.
Untested: systemd's own part, where a container has none.
"""

import os
import pwd
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playground import Done, Playground
from story import ANA

DISPOSABLE = os.environ.get("SBUDGET_DISPOSABLE") == "1"
CRON = Path("/etc/cron.d/slurm-budget")
DEFAULTS = {"SBUDGET_CONFIG": ""}
PLACES = ("/etc", "/var/lib", "/var/log", "/usr/lib/systemd")
OWN_BACKUPS = {f"/etc/{n}" for n in ("passwd-", "group-", "shadow-", "gshadow-", ".pwd.lock")}
BUDGETS = """\
cluster: {name}
accounts:
  vision: {{gpus: 2, users: [{ana}]}}
"""


def machine(play: Playground) -> set[str]:
    """Paths, Linux users and Slurm's users; not what the cluster itself writes."""
    found = {entry.pw_name for entry in pwd.getpwall()}
    found |= set(play.slurm("sacctmgr", "-nP", "show", "user", "format=user,adminlevel").split())
    for place in PLACES:
        for folder, folders, names in os.walk(place):
            if folder == "/var/lib/sbudget-cluster":
                folders.clear()
            found |= {str(Path(folder) / name) for name in (*folders, *names)}
    return (found | {str(path) for path in play.conf.parent.iterdir()}) - OWN_BACKUPS


def test_below_another_root_it_touches_nothing_else(site: Playground, tmp_path: Path) -> None:
    users = set(pwd.getpwall())
    before = {path: path.stat().st_mtime for path in site.conf.parent.iterdir()}
    site.sbudget("setup", "--root", str(tmp_path), "--yes")
    assert list(tmp_path.rglob("slurm-budget.service"))
    site.sbudget("setup", "--root", str(tmp_path), "--yes", "--undo")
    assert list(tmp_path.iterdir()) == []
    assert set(pwd.getpwall()) == users
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
    """A cluster without anything of ours, on a machine that may be thrown away."""
    if not DISPOSABLE:
        pytest.skip("changes the machine; set SBUDGET_DISPOSABLE=1 where it may be thrown away")
    play = Playground(f"sbsetup{os.getpid()}", (ANA,), nodes=1, gpus=2, hook=False)
    try:
        play.up()
        yield play
    finally:
        play.down()


def restart(play: Playground, *, lua: bool) -> None:
    line = "\nJobSubmitPlugins=lua\n"
    text = play.conf.read_text().replace(line, "")
    play.conf.write_text(text + line if lua else text)
    play.cluster("stop", "slurmctld")
    play.cluster("start", "slurmctld")
    play.wait("slurmctld", lambda: "UP" in play.slurm("scontrol", "ping", code=None))


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
