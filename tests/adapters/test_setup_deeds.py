"""Setup's parts on their own: the service, an older ledger, folders of others, the first import."""

import os
import re
import sys
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner
from sqlalchemy import text

from slurm_budget import machine
from slurm_budget.cli.main import cli
from slurm_budget.core.setup import File, Folder, Service
from slurm_budget.errors import SbudgetError
from slurm_budget.ledger import connect, migrate
from slurm_budget.ledger.schema import SCHEMA
from slurm_budget.usecases.setup_files import FileDeed, FolderDeed, ServiceDeed

from .fake_slurm import FakeSlurm

ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="setup wants root")


class Systemd:
    """One unit's state, as systemctl tells and changes it (tried on systemd 252, 257 and 262)."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.active, self.enabled, self.read = "inactive", False, ""
        self.starts = 0
        self.broken = False

    def run(self, program: str, verb: str, *argv: str) -> str:
        assert program == "systemctl"
        there = self.path.read_text() if self.path.exists() else ""
        if verb == "show":
            file = ("enabled" if self.enabled else "disabled") if there else ""
            stale = "yes" if there != self.read else "no"
            lines = (f"ActiveState={self.active}", f"UnitFileState={file}")
            return "\n".join((*lines, f"NeedDaemonReload={stale}"))
        if verb == "daemon-reload":
            self.read = there
        elif verb == "enable":
            self.enabled = True
        elif verb == "restart":
            self.starts += 1
            self.active = "activating" if self.broken else "active"
            if self.broken:
                raise SbudgetError("the control process exited with error code", where="systemctl")
        elif verb == "disable":
            self.enabled, self.active = False, "inactive"
        elif verb == "reset-failed":
            raise SbudgetError("Unit slurm-budget.service not loaded.")
        return ""


@pytest.fixture
def systemd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Systemd:
    made = Systemd(tmp_path / "system" / "slurm-budget.service")
    monkeypatch.setattr(machine, "has_systemd", lambda: True)
    monkeypatch.setattr(machine, "run", made.run)
    return made


def test_the_service_is_started_brought_up_to_date_and_stopped(
    tmp_path: Path, systemd: Systemd
) -> None:
    def file(text: str) -> FileDeed:
        return FileDeed(File(systemd.path, text, unit=True))

    service = ServiceDeed(Service(systemd.path.name))
    assert service.missing() == "systemctl enable --now slurm-budget.service"
    made, _ = file("[Unit]\n").do(None)
    assert service.do(None) == (True, "started slurm-budget.service")
    assert (service.missing(), systemd.starts) == ("", 1)
    made, _ = file("[Unit]\n# newer\n").do(made)
    assert service.missing() != "", "a changed unit is started anew"
    service.do(True)
    assert (service.missing(), systemd.starts) == ("", 2)
    assert service.undo(True, purge=False) == ""
    assert (systemd.enabled, systemd.active) == (False, "inactive")
    assert file("").undo(made, purge=False) == ""
    assert systemd.read == "", "systemd has heard that it is gone"
    assert list(tmp_path.iterdir()) == []


def test_a_service_that_does_not_start_is_not_left_to_try_for_ever(systemd: Systemd) -> None:
    service = ServiceDeed(Service(systemd.path.name))
    FileDeed(File(systemd.path, "[Unit]\n", unit=True)).do(None)
    systemd.broken = True
    with pytest.raises(SbudgetError, match="exited with error code") as caught:
        service.do(None)
    assert "journalctl -u slurm-budget.service" in caught.value.mend
    assert (systemd.enabled, systemd.active) == (False, "inactive")
    systemd.broken = False
    assert service.missing() != "", "the next setup tries again"


def test_a_service_whose_file_was_removed_by_hand_is_undone(systemd: Systemd) -> None:
    assert ServiceDeed(Service(systemd.path.name)).undo(True, purge=False) == ""
    assert systemd.read == ""


@ROOT_ONLY
def test_a_folder_of_somebody_else_is_given_to_nobody(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    os.chown(tmp_path / "state", 12345, 12345)
    deed = FolderDeed(Folder(tmp_path / "state", 0o755, "root", ()))
    with pytest.raises(SbudgetError, match="is not root's") as caught:
        deed.do(None)
    assert "chown -R root" in caught.value.mend
    assert (tmp_path / "state").stat().st_uid == 12345


def test_a_program_that_fails_or_is_not_there_is_told_in_its_own_words() -> None:
    with pytest.raises(SbudgetError, match="nonesuch did not run"):
        machine.run("nonesuch")
    code = "import sys; sys.exit('sbudget: /x: is wrong\\n  mend: right it')"
    with pytest.raises(SbudgetError, match="/x: is wrong") as caught:
        machine.run(sys.executable, "-c", code)
    assert caught.value.mend == "right it"
    with pytest.raises(SbudgetError, match="may not run it") as caught:
        machine.run("/etc/passwd")
    assert "/opt" in caught.value.mend
    assert machine.run(sys.executable, "-c", "print(3); raise SystemExit(3)", fine=(0, 3)) == "3"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    folder = tmp_path / "slurm"
    folder.mkdir()
    FakeSlurm(folder).says("runs", "")
    path = tmp_path / "slurm-budget.toml"
    path.write_text(
        f'[ledger]\nurl = "sqlite:///{tmp_path / "ledger.db"}"\n'
        f'[slurm]\ncluster = "main"\nbin = "{folder}"\n'
        f'[snapshot]\npath = "{tmp_path / "snapshot"}"\n'
    )
    return path


def sbudget(config: Path, *argv: str, code: int = 0) -> str:
    done = CliRunner().invoke(cli, ["--config", str(config), *argv])
    assert done.exit_code == code, done.output
    return done.output


@ROOT_ONLY
def test_an_older_ledger_is_brought_to_this_schema(config: Path) -> None:
    engine = connect.connect(f"sqlite:///{config.parent / 'ledger.db'}")
    connect.prepare_folder(engine.url)
    migrate.upgrade(engine, "0001")
    options = ("setup", "--only", "ledger", "--user", "root")
    said = sbudget(config, *options, "--yes")
    assert f"bring from schema 0001 to {SCHEMA}" in said
    assert f"upgraded: schema 0001 -> {SCHEMA}" in said
    with connect.reading(engine) as connection:
        assert connection.scalar(text("SELECT version_num FROM alembic_version")) == SCHEMA
    assert "nothing to do" in sbudget(config, *options)


def test_the_accounting_is_imported_once_and_then_what_is_new(config: Path) -> None:
    sbudget(config, "ledger", "init")
    assert sbudget(config, "ledger", "import").startswith("sacct: 0 new")
    sbudget(config, "ledger", "import")
    calls = (config.parent / "slurm" / "calls").read_text()
    asked = re.findall(r"^sacct .* -S (\S+) -E (\S+)", calls, re.MULTILINE)
    spans = [datetime.fromisoformat(b) - datetime.fromisoformat(a) for a, b in asked]
    assert spans[0] == timedelta(days=7), "the first time, all of the window"
    assert spans[1] < timedelta(days=2), "then what is new, with the overlap"
    only = sbudget(config, "setup", "--dry-run", "--only", "import", "--user", "root")
    assert "import     there" in only
