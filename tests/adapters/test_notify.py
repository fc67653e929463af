"""What systemd is told, on a real socket; `sbudget run` as a service without a Slurm."""

import os
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from slurm_budget.cli.context import Context
from slurm_budget.cli.notify import notify
from slurm_budget.cli.run import Sweeper
from slurm_budget.errors import Exit, LedgerClosed, LedgerUnreachable
from slurm_budget.ledger import connect
from slurm_budget.ledger.store import Ledger

PROGRAM = Path(sys.executable).parent / "sbudget"


@pytest.mark.parametrize("abstract", [False, True], ids=["a path", "abstract"])
def test_words_arrive_in_one_datagram(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, abstract: bool
) -> None:
    name = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind("\0" + name if abstract else name)
        systemd.settimeout(5)
        monkeypatch.setenv("NOTIFY_SOCKET", "@" + name if abstract else name)
        notify("READY=1", "STATUS=swept: two\nlines")
        assert systemd.recv(4096) == b"READY=1\nSTATUS=swept: two lines"


def test_where_systemd_does_not_listen_nothing_happens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notify("READY=1")
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "nobody"))
    notify("READY=1")
    assert list(tmp_path.iterdir()) == []


def write(config: Path, beat: str) -> None:
    config.write_text(
        f'[ledger]\nurl = "sqlite:///{config.parent / "ledger.db"}"\n[sweep]\nbeat = "{beat}"\n'
        f'[slurm]\ncluster = "main"\nbin = "{config.parent}"\n'
    )


def test_the_service_is_ready_reloads_and_stops_though_slurm_is_not_there(tmp_path: Path) -> None:
    config, name = tmp_path / "slurm-budget.toml", str(tmp_path / "notify")
    Ledger.open(f"sqlite:///{tmp_path / 'ledger.db'}", create=True).close()
    write(config, "1h")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(name)
        systemd.settimeout(30)
        with subprocess.Popen(
            [str(PROGRAM), "--config", str(config), "run"],
            env=os.environ | {"NOTIFY_SOCKET": name, "JOURNAL_STREAM": "8:1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as daemon:
            try:
                assert systemd.recv(4096) == b"READY=1"
                failed = b"STATUS=acted on nothing: " + str(tmp_path).encode()
                assert systemd.recv(4096).startswith(failed)
                assert systemd.recv(4096) == b"WATCHDOG=1"
                write(config, "soon")
                daemon.send_signal(signal.SIGHUP)
                assert systemd.recv(4096).startswith(b"RELOADING=1\nMONOTONIC_USEC=")
                assert systemd.recv(4096) == b"READY=1"
                assert systemd.recv(4096).startswith(failed)
                daemon.send_signal(signal.SIGTERM)
                out, err = daemon.communicate(timeout=30)
            finally:
                daemon.kill()
    assert daemon.returncode == Exit.DONE
    assert out == "<6>starts; sweeps every 1 h\n<6>stopped\n"
    lines = err.splitlines()
    assert [line[:3] for line in lines] == ["<3>"] * len(lines)
    assert "acted on nothing: " in lines[0]
    assert "sweep.beat = 'soon'" in lines[1]
    assert len(lines) == 2, "a failure that lasts is told once"


def test_it_does_not_start_with_settings_that_are_wrong(tmp_path: Path) -> None:
    config = tmp_path / "slurm-budget.toml"
    write(config, "0s")
    done = subprocess.run(
        [str(PROGRAM), "--config", str(config), "run"], capture_output=True, text=True, check=False
    )
    assert done.returncode == Exit.USAGE
    assert "sweep.beat" in done.stderr


def ended(config: Path, **how: object) -> subprocess.CompletedProcess[str]:
    """How the daemon ends by itself; a minute is far more than it needs."""
    argv = [str(PROGRAM), "--config", str(config), "run"]
    return subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60, **how)  # type: ignore[call-overload,no-any-return]


def test_it_does_not_start_without_a_ledger(tmp_path: Path) -> None:
    config = tmp_path / "slurm-budget.toml"
    write(config, "1h")
    done = ended(config)
    assert done.returncode == Exit.LEDGER_UNREACHABLE
    assert "there is no ledger\n  mend: run `sbudget ledger init`" in done.stderr
    (tmp_path / "ledger.db").write_text("no database at all, though as long as its header is")
    done = ended(config)
    assert done.returncode == Exit.LEDGER_UNREACHABLE
    assert "is not a ledger" in done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user")
def test_it_does_not_start_with_a_ledger_that_its_user_may_not_write(open_folder: Path) -> None:
    config, ledger = open_folder / "slurm-budget.toml", open_folder / "ledger.db"
    Ledger.open(f"sqlite:///{ledger}", create=True).close()
    write(config, "1h")
    ledger.chmod(0o644)
    readable = ended(config, user="nobody")
    ledger.chmod(0o600)
    closed = ended(config, user="nobody")
    open_folder.chmod(0o700)
    folder = ended(config.rename(open_folder.parent / f"{open_folder.name}.toml"), user="nobody")
    for done in (readable, closed, folder):
        assert done.returncode == Exit.LEDGER_UNREACHABLE, done
        assert "by this user" in done.stderr
        assert "Traceback" not in done.stderr


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that others may look into, as those of pytest are not; the config beside it too."""
    with tempfile.TemporaryDirectory(prefix="sbudget-test-") as made:
        Path(made).chmod(0o755)
        yield Path(made)
    Path(f"{made}.toml").unlink(missing_ok=True)


def test_a_ledger_that_is_locked_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connect, "BUSY_SECONDS", 0)
    config, file = tmp_path / "slurm-budget.toml", tmp_path / "ledger.db"
    Ledger.open(f"sqlite:///{file}", create=True).close()
    write(config, "1h")
    context = Context(config=config)
    with closing(sqlite3.connect(file, isolation_level=None)) as lock:
        lock.execute("BEGIN IMMEDIATE")
        with pytest.raises(LedgerUnreachable, match="is locked") as caught:
            context.ledger().demand_writable()
        assert not isinstance(caught.value, LedgerClosed)
        Sweeper(context).begin(context.settings)
    context.ledger().demand_writable()
    context.close()
