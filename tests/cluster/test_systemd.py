"""The daemon under a real systemd, with the unit that setup writes, all its hardening in force.

Tested: setup starts it, READY and status reach systemd, it reloads, sweeps and requeues from within
the unit, logs to the journal, starts again when it was killed and not when its settings are wrong,
ends when told; a unit that does not start is not left behind, and undoing leaves nothing.
Untested: a boot with the unit in place, the watchdog (its 15 minutes).
"""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from disposable import DEFAULTS, cleanly, machine, restart
from playground import Playground
from story import ANA, BEN, SETTINGS

UNIT = "slurm-budget.service"
CONFIG = Path("/etc/slurm-budget/slurm-budget.toml")
DROP_IN = Path(f"/etc/systemd/system/{UNIT}.d/broken.conf")
FUNDED = ("--gres=gpu:2", "--qos=funded", "--comment=min-runtime=2s")
BUDGETS = """\
cluster: {name}
accounts:
  vision: {{gpus: 1, users: [{ana}]}}
  language: {{gpus: 1, users: [{ben}]}}
"""


@pytest.fixture
def clean() -> Iterator[Playground]:
    if not Path("/run/systemd/system").is_dir():
        pytest.skip("no systemd runs here")
    with cleanly("sbunit", 2, ANA, BEN) as play:
        yield play


def systemctl(*argv: str) -> str:
    done = subprocess.run(["systemctl", *argv], capture_output=True, text=True, check=False)
    return done.stdout.strip() + done.stderr.strip()


def shown(name: str) -> str:
    return systemctl("show", "-P", name, UNIT)


def journal() -> str:
    return subprocess.check_output(["journalctl", "-o", "cat", "-u", UNIT], text=True)


def test_the_daemon_does_all_its_work_from_within_its_unit(clean: Playground) -> None:
    before = machine(clean)

    def sbudget(*argv: str, code: int = 0) -> str:
        return clean.sbudget(*argv, code=code, env=DEFAULTS).out

    DROP_IN.parent.mkdir()
    DROP_IN.write_text("[Service]\nExecStart=\nExecStart=/bin/false\n")
    failed = sbudget("setup", "--yes", code=3)
    assert f"mend: `journalctl -u {UNIT}` says why" in failed
    assert (shown("ActiveState"), shown("UnitFileState")) == ("inactive", "disabled")
    DROP_IN.unlink()
    DROP_IN.parent.rmdir()
    assert f"started {UNIT}" in sbudget("setup", "--yes")
    assert (shown("ActiveState"), shown("UnitFileState")) == ("active", "enabled")
    assert "nothing to do" in sbudget("setup", "--yes")
    clean.wait("it tells systemd", lambda: "no budgets for cluster" in shown("StatusText"))

    # SLURM_CONF is that of the shell of setup: the settings do not name it
    CONFIG.write_text("\n".join(line.strip() for line in SETTINGS.splitlines()))
    budgets = clean.site / "budgets.yaml"
    budgets.write_text(BUDGETS.format(name=clean.name, ana=ANA, ben=BEN))
    sbudget("budget", "load", str(budgets), "-m", "first")
    sbudget("sync", "--yes")
    assert systemctl("reload", UNIT) == ""
    clean.wait("it has read them", lambda: "settings read again" in journal())
    clean.wait("it sweeps", lambda: shown("StatusText").startswith("swept: "))
    restart(clean, lua=True)

    owing, said = clean.sbatch(ANA, *FUNDED, command="sleep 300")
    assert "funded; protected" in said, "the hook reads what the daemon wrote"
    clean.wait("it runs", lambda: clean.state(owing) == "RUNNING")
    owed, _ = clean.sbatch(BEN, *FUNDED, command="sleep 300")
    clean.wait("the other one runs", lambda: clean.state(owed) == "RUNNING")
    clean.wait("it says so", lambda: f"requeued job {owing} (2 GPUs)" in journal())
    assert clean.job(owing)["RestartCnt"] == "1"

    killed = shown("MainPID")
    systemctl("kill", "--signal=KILL", "--kill-whom=main", UNIT)
    clean.wait("it is there again", lambda: shown("MainPID") not in ("0", killed), 30)
    assert shown("NRestarts") == "1"
    clean.wait("it sweeps again", lambda: shown("StatusText").startswith("swept: "))
    systemctl("stop", UNIT)
    assert (shown("Result"), shown("ExecMainStatus")) == ("success", "0")
    clean.wait("it says so", lambda: "\nstopped\n" in journal())
    text = CONFIG.read_text()
    CONFIG.write_text(text + "[sweep")
    assert "failed" in systemctl("start", UNIT)
    assert (shown("ActiveState"), shown("ExecMainStatus")) == ("failed", "2"), (
        "it is not tried again"
    )
    CONFIG.write_text(text)
    assert f"started {UNIT}" in sbudget("setup", "--yes")

    clean.slurm("scancel", "--partition=gpu")
    restart(clean, lua=False)
    sbudget("setup", "--undo", "--purge", "--yes")
    assert shown("LoadState") == "not-found"
    assert "slurm-budget" not in systemctl("list-units", "--all")
    assert machine(clean) == before | {f"{ANA}|None", f"{BEN}|None"}
