"""Hostile files, links, names and environments against the adapters (docs/security.md)."""

import os
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from slurm_budget import files
from slurm_budget.errors import BadInput, SbudgetError
from slurm_budget.ledger.store import Ledger
from slurm_budget.settings import LedgerSettings, Settings, SnapshotSettings, load
from slurm_budget.slurm import slurmdbd_sql
from slurm_budget.slurm.command import Commands
from slurm_budget.slurm.port import CommandSlurm
from slurm_budget.state.budget import Amount, BudgetNode, BudgetTree
from slurm_budget.state.jobs import Run
from slurm_budget.state.snapshot import Policy, Snapshot
from slurm_budget.usecases import doctor
from slurm_budget.usecases import publish as publishing
from slurm_budget.usecases.publish import publish

from .fake_slurm import FakeSlurm

PROGRAM = str(Path(sys.executable).parent / "sbudget")
POLICY = Policy()


def settings(path: Path) -> Settings:
    return Settings(snapshot=SnapshotSettings(path=path))


def published(path: Path) -> None:
    publish(settings(path), Snapshot("main", 1, 1, POLICY, {}, {}, {}))


@pytest.mark.parametrize("where", [".snapshot.{pid}", "snapshot"], ids=["draft", "final name"])
@pytest.mark.parametrize("how", ["symbolic", "hard"])
def test_a_link_laid_where_we_write_is_replaced_and_not_followed(
    tmp_path: Path, where: str, how: str
) -> None:
    victim = tmp_path / "passwd"
    victim.write_text("root:x:0:0")
    victim.chmod(0o600)
    trap = tmp_path / where.format(pid=os.getpid())
    if how == "symbolic":
        trap.symlink_to(victim)
    else:
        trap.hardlink_to(victim)
    published(tmp_path / "snapshot")
    assert victim.read_text() == "root:x:0:0"
    assert stat.S_IMODE(victim.stat().st_mode) == 0o600
    assert (tmp_path / "snapshot").read_text().startswith("sbudget-snapshot")
    assert files.kind(tmp_path / "snapshot") == "file"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["passwd", "snapshot"]


@pytest.mark.parametrize("mode", [0o777, 0o775, 0o1777], ids=["all", "a group", "like /tmp"])
def test_nothing_is_published_where_others_may_write(tmp_path: Path, mode: int) -> None:
    folder = tmp_path / "spool"
    folder.mkdir()
    folder.chmod(mode)
    with pytest.raises(SbudgetError, match="others may write in") as caught:
        published(folder / "snapshot")
    assert f"chmod go-w {folder}" in caught.value.mend
    assert list(folder.iterdir()) == []
    finding = publishing.finding(settings(folder / "snapshot"), 1)
    assert (finding.level, finding.mend) == ("error", f"chmod go-w {folder}")


def test_a_folder_above_that_others_may_write_is_as_bad(tmp_path: Path) -> None:
    inner = tmp_path / "open" / "spool"
    inner.mkdir(parents=True)
    (tmp_path / "open").chmod(0o777)
    with pytest.raises(SbudgetError, match=f"others may write in {tmp_path}/open"):
        published(inner / "snapshot")
    (tmp_path / "open").chmod(0o1777)
    published(inner / "snapshot")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to give a folder away")
def test_a_folder_may_be_the_sidecars_but_not_lie_in_a_strangers(tmp_path: Path) -> None:
    inner = tmp_path / "strange" / "spool"
    inner.mkdir(parents=True)
    os.chown(inner, 1234, 1234)
    published(inner / "snapshot")
    os.chown(tmp_path / "strange", 4321, 4321)
    with pytest.raises(SbudgetError, match=f"others may write in {tmp_path}/strange"):
        published(inner / "snapshot")


@pytest.mark.parametrize("what", ["fifo", "device"])
def test_a_snapshot_that_would_hang_slurmctld_is_found_and_the_next_sweep_replaces_it(
    tmp_path: Path, what: str
) -> None:
    """Nothing of ours opens it: open(2) of a FIFO comes back when somebody writes into it."""
    path = tmp_path / "snapshot"
    if what == "fifo":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/zero")
    finding = publishing.finding(settings(path), 1)
    assert finding.level == "error"
    assert f"is a {what}: slurmctld" in finding.what
    assert f"rm {path}" in finding.mend
    published(path)
    assert publishing.finding(settings(path), 1).level == "ok"


def test_with_a_umask_of_000_nothing_that_we_make_is_for_others_to_write(tmp_path: Path) -> None:
    config = tmp_path / "c.toml"
    config.write_text(
        f'[ledger]\nurl = "sqlite:///{tmp_path}/var/deep/ledger.db"\n[slurm]\ncluster = "main"\n'
    )
    for words in (
        ("ledger", "init"),
        ("ledger", "backup", f"{tmp_path}/backup.db"),
        ("budget", "export", f"{tmp_path}/out.yaml"),
    ):
        subprocess.run(
            [PROGRAM, "--config", str(config), *words], umask=0, check=True, capture_output=True
        )
    made = [p for p in tmp_path.rglob("*") if p != config]
    assert {p.name for p in made} >= {"deep", "ledger.db", "backup.db", "out.yaml"}
    for path in made:
        assert not path.stat().st_mode & 0o022, path
    for name in ("var/deep/ledger.db", "backup.db"):
        assert not (tmp_path / name).stat().st_mode & 0o007, "budgets and names are not for all"


HOSTILE = {
    "SQUEUE_FORMAT": "%i", "SQUEUE_FORMAT2": "JobID", "SQUEUE_USERS": "nobody",
    "SQUEUE_STATES": "FAILED", "SACCT_FORMAT": "jobid", "SLURM_TIME_FORMAT": "relative",
    "SLURM_CLUSTERS": "other", "SLURM_BITSTR_LEN": "64", "SCONTROL_ALL": "0", "TZ": "Asia/Tokyo",
    "LANG": "tr_TR", "LC_ALL": "tr_TR", "SINFO_FORMAT": "%n", "SLURM_JWT": "x", "IFS": "/",
    "SBUDGET_DB_PASSWORD": "geheim", "PYTHONSTARTUP": "/nowhere",
}  # fmt: skip


def test_slurms_commands_see_an_environment_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the shell has set, and where cron has set nothing at all."""
    slurm = FakeSlurm(tmp_path)
    slurm.script("squeue", "/usr/bin/env")
    bare = {"PWD", "SHLVL", "OLDPWD", "_"}

    def seen() -> dict[str, str]:
        lines = slurm.commands().run("squeue").out.splitlines()
        found = dict(line.partition("=")[::2] for line in lines)
        return {name: value for name, value in found.items() if name not in bare}

    for name in list(os.environ):
        monkeypatch.delenv(name)
    nothing = seen()
    nothing.pop("PATH", None)
    for name, value in HOSTILE.items():
        monkeypatch.setenv(name, value)
    hostile = seen()
    hostile.pop("PATH", None)
    assert hostile == nothing
    assert nothing == {
        "LC_ALL": "C.UTF-8", "TZ": "UTC", "SLURM_TIME_FORMAT": "%s", "SLURM_BITSTR_LEN": "0",
    }  # fmt: skip


def test_a_command_in_the_folder_where_root_stands_is_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    FakeSlurm(tmp_path)
    monkeypatch.chdir(tmp_path)
    for path in (f".:{os.environ['PATH']}", f":{os.environ['PATH']}:", "bin/../.", ""):
        monkeypatch.setenv("PATH", path)
        with pytest.raises(SbudgetError, match="the command sacctmgrx is not there"):
            Commands().run("sacctmgrx")
        assert not any(
            place in ("", ".") for place in Commands().environment()["PATH"].split(os.pathsep)
        )
    (tmp_path / "sacctmgrx").write_text("#!/bin/sh\n")
    (tmp_path / "sacctmgrx").chmod(0o755)
    monkeypatch.setenv("PATH", ".::/usr/bin")
    with pytest.raises(SbudgetError, match="is not there"):
        Commands().run("sacctmgrx")


def test_a_program_from_cron_without_any_environment_works(tmp_path: Path) -> None:
    config = tmp_path / "c.toml"
    config.write_text(
        f'[ledger]\nurl = "sqlite:///{tmp_path}/ledger.db"\n'
        f'[slurm]\ncluster = "main"\nbin = "{tmp_path}"\n'
    )
    for words in (("ledger", "init"), ("report", "budgets", "-P"), ("budget", "log")):
        done = subprocess.run(
            [PROGRAM, "--config", str(config), *words],
            env={}, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, ""), done


def test_a_slurmdbd_conf_that_others_may_read_is_refused_without_its_password(
    tmp_path: Path,
) -> None:
    conf = tmp_path / "slurmdbd.conf"
    conf.write_text("StoragePass=geheim\nStorageUser=slurm\n")
    conf.chmod(0o640)
    with pytest.raises(BadInput, match="others may read the password in it") as caught:
        slurmdbd_sql.Database.from_conf(conf)
    assert "geheim" not in str(caught.value)
    conf.chmod(0o600)
    found = slurmdbd_sql.Database.from_conf(conf)
    assert found.password == "geheim"
    assert "geheim" not in repr(found) + str(found)


@pytest.mark.parametrize("name", ["a`; DROP TABLE x; --", "a b", "", "-a", "a\n", "a'", "ä"])
def test_a_cluster_name_that_is_none_reaches_no_table_name(name: str) -> None:
    nowhere = slurmdbd_sql.Database("127.0.0.1", 1, "u", "p", "d")
    with pytest.raises(BadInput, match="not a cluster's name"):
        list(slurmdbd_sql.runs(nowhere, name, 0, 1))


EVIL = "x'; DROP TABLE runs; -- \" ` \\ % :a ? {0}\x1b[2J\n=cmd|' /C calc'!A0"


def test_any_text_goes_into_the_ledger_and_comes_back(ledger: Ledger) -> None:
    """Values are bound, never part of a statement."""
    tree = BudgetTree("main", {"vision": BudgetNode("vision", None, Amount("gpus", 1))})
    ledger.apply_changeset("main", tree, "root", "root", EVIL, 0, 1)
    assert ledger.log("main")[0].reason == EVIL.strip()
    ledger.set_brake("main", paused=True, author=EVIL, reason=EVIL, now=1)
    brake = ledger.brake("main")
    assert brake is not None
    assert (brake.author, brake.reason) == (EVIL, EVIL)
    run = Run(
        "main", 1, 100, 200, 90, EVIL, EVIL, EVIL, EVIL, "COMPLETED", {"h100": 2}, 1, 0,
        "funded", 60,
    )  # fmt: skip
    other = replace(run, job_id=2, user="ana")
    ledger.record_runs([run, other], source=EVIL, now=1)
    assert list(ledger.runs_between("main", 0, 1000)) == [run, other]


def test_a_ledger_is_not_made_readable_for_all(tmp_path: Path) -> None:
    Ledger.open(f"sqlite:///{tmp_path}/x/ledger.db", create=True).close()
    assert stat.S_IMODE((tmp_path / "x").stat().st_mode) == 0o755
    assert stat.S_IMODE((tmp_path / "x" / "ledger.db").stat().st_mode) == 0o640


def test_the_password_has_no_place_in_the_settings() -> None:
    names = set(LedgerSettings.model_fields)
    assert not any("password" in name and name != "password_file" for name in names)


def test_settings_that_everybody_may_write_are_not_read(tmp_path: Path) -> None:
    """slurm.bin says what root runs."""
    config = tmp_path / "c.toml"
    config.write_text('[slurm]\nbin = "/home/eve/bin"\n')
    config.chmod(0o666)
    with pytest.raises(BadInput, match="everybody may write") as caught:
        load(config)
    assert caught.value.mend.endswith(f"chmod o-w {config}")
    config.chmod(0o664)
    assert load(config).slurm.bin == Path("/home/eve/bin")


def test_the_doctor_finds_a_ledger_that_everybody_may_write(tmp_path: Path) -> None:
    slurm = CommandSlurm(FakeSlurm(tmp_path).commands())
    url = f"sqlite:///{tmp_path}/ledger.db"
    with Ledger.open(url, create=True) as ledger:
        at = Settings(
            ledger=LedgerSettings(url=url), snapshot=SnapshotSettings(path=tmp_path / "snapshot")
        )

        def mends() -> list[str]:
            return [one.mend for one in doctor.examine(slurm, lambda: ledger, at, 1)[1]]

        assert f"chmod o-w {tmp_path}/ledger.db" not in mends()
        (tmp_path / "ledger.db").chmod(0o666)
        assert f"chmod o-w {tmp_path}/ledger.db" in mends()
