"""When the database fails in the middle: whole or not at all, and the message says which."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import event, text

from slurm_budget.core.window import Window
from slurm_budget.errors import Exit, LedgerClosed, LedgerUnreachable
from slurm_budget.ledger import connect
from slurm_budget.ledger.store import Ledger
from slurm_budget.state.jobs import Run

from .conftest import Database, Server


def some(count: int) -> Iterator[Run]:
    for number in range(count):
        yield Run(
            "main", number, 100, 200, 90, f"user{number % 100}", "vision", "preemptible", "gpu",
            "COMPLETED", {"": 1}, 1,
        )  # fmt: skip


def rows(ledger: Ledger) -> int:
    with ledger.engine.connect() as connection:
        return int(connection.scalar(text("SELECT COUNT(*) FROM runs")) or 0)


def kill(server: Server) -> None:
    """Cut all connections of the ledger's user."""
    with server.admin() as link, link.cursor() as cursor:
        cursor.execute("SELECT id FROM information_schema.processlist WHERE user = 'sbudget'")
        for (number,) in cursor.fetchall():
            cursor.execute(f"KILL {number}")


@pytest.fixture
def sqlite(tmp_path: Path) -> Iterator[Ledger]:
    with Database("sqlite", f"sqlite:///{tmp_path / 'ledger.db'}").open() as opened:
        yield opened


def test_a_full_disk_leaves_the_ledger_as_it_was(sqlite: Ledger) -> None:
    sqlite.record_runs(some(10), source="t", now=1)
    sqlite.engine.dispose()

    @event.listens_for(sqlite.engine, "connect")
    def small_disk(connection: sqlite3.Connection, _: object) -> None:
        connection.execute("PRAGMA max_page_count = 60")

    with pytest.raises(LedgerUnreachable) as caught:
        sqlite.record_runs(some(50_000), source="t", now=2)
    assert caught.value.what == (
        "the ledger cannot be written: its disk is full; nothing of this was written"
    )
    assert caught.value.code == Exit.LEDGER_UNREACHABLE
    assert rows(sqlite) == 10
    assert sqlite.faults(Window(), 10) == []


def test_a_locked_ledger_says_so(sqlite: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connect, "BUSY_SECONDS", 0)
    sqlite.engine.dispose()
    path = sqlite.engine.url.database
    assert path is not None
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(LedgerUnreachable, match=r"is locked .*nothing of this was written"):
        sqlite.record_runs(some(1), source="t", now=1)
    assert sqlite.cursor("main") is None, "readers go on"
    other.rollback()
    assert sqlite.record_runs(some(1), source="t", now=1).new == 1


def test_a_ledger_that_may_not_be_written_can_be_read(sqlite: Ledger) -> None:
    sqlite.record_runs(some(3), source="t", now=1)
    sqlite.engine.dispose()

    @event.listens_for(sqlite.engine, "connect")
    def read_only(connection: sqlite3.Connection, _: object) -> None:
        connection.execute("PRAGMA query_only = ON")

    sums = sqlite.sums("main", Window("sliding", 1000), 300, {})
    assert sum(sums.use.values()) == 3 * 10_000
    with pytest.raises(LedgerUnreachable, match="may not be written"):
        sqlite.record_runs(some(4), source="t", now=1)


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    with Database("sqlite", f"sqlite:///{path}").open() as ledger:
        ledger.record_runs(some(2000), source="t", now=1)
    content = bytearray(path.read_bytes())
    content[8192:] = b"\xff" * (len(content) - 8192)
    path.write_bytes(content)
    with pytest.raises(LedgerUnreachable, match="damaged") as caught:
        list(Ledger.open(f"sqlite:///{path}").runs_between("main", 0, 999))
    assert "restore" in caught.value.mend


def test_a_program_that_is_killed_in_the_middle_leaves_nothing(database: Database) -> None:
    database.open().close()
    code = """
import sys, time
from pathlib import Path
from slurm_budget.ledger.store import Ledger
from slurm_budget.state.jobs import Run
def some():
    for n in range(20_000):
        yield Run("main", n, 1, 2, 0, "u", "a", "q", "p", "COMPLETED", {"": 1}, 1)
    print("in the middle", flush=True)
    time.sleep(60)
file = Path(sys.argv[2]) if sys.argv[2] else None
Ledger.open(sys.argv[1], password_file=file).record_runs(some(), source="t", now=1)
"""
    process = subprocess.Popen(
        [sys.executable, "-c", code, database.url, str(database.password_file or "")],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "in the middle\n"
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()
    with database.open(create=False) as ledger:
        # MariaDB needs a moment to see that its client is gone
        for _ in range(100):
            try:
                assert ledger.record_runs(some(7), source="t", now=1).new == 7
                break
            except LedgerUnreachable:
                time.sleep(0.1)
        assert rows(ledger) == 7


@pytest.mark.mariadb
def test_a_connection_that_is_lost_in_the_middle(mariadb: Server) -> None:
    database = mariadb.database()

    def cut() -> Iterator[Run]:
        yield from some(6000)
        kill(mariadb)
        yield from some(6000)

    with database.open() as ledger:
        with pytest.raises(LedgerUnreachable, match=r"lost.*nothing of this was written"):
            ledger.record_runs(cut(), source="t", now=1)
        assert rows(ledger) == 0
        assert ledger.record_runs(some(5), source="t", now=2).new == 5


@pytest.mark.mariadb
def test_a_connection_that_is_lost_at_the_commit_is_told_apart(mariadb: Server) -> None:
    database = mariadb.database()
    with database.open() as ledger:

        @event.listens_for(ledger.engine, "commit")
        def cut(connection: object) -> None:
            kill(mariadb)

        with pytest.raises(LedgerUnreachable, match="not known whether this was written"):
            ledger.set_cursor("main", 5)
        event.remove(ledger.engine, "commit", cut)
        ledger.set_cursor("main", 5)
        assert ledger.cursor("main") == 5


@pytest.mark.mariadb
def test_no_password_in_any_message(mariadb: Server, tmp_path: Path) -> None:
    database = mariadb.database()
    wrong = tmp_path / "password"
    wrong.write_text("geheim\n")
    wrong.chmod(0o600)
    with pytest.raises(LedgerUnreachable, match="user or the password is wrong") as caught:
        Ledger.open(database.url, password_file=wrong)
    assert isinstance(caught.value, LedgerClosed), "no waiting mends it"
    real = (mariadb.folder / "password").read_text().strip()
    assert "geheim" not in str(caught.value)
    wrong.chmod(0o640)
    with pytest.raises(Exception, match="others may read the password file"):
        Ledger.open(database.url, password_file=wrong)
    nowhere = database.url.replace(f":{mariadb.port}/", ":1/")
    with pytest.raises(LedgerUnreachable, match="lost or refused") as caught:
        Ledger.open(nowhere, password_file=mariadb.folder / "password")
    assert real not in str(caught.value)
    assert not isinstance(caught.value, LedgerClosed), "the server may come back"
    with pytest.raises(LedgerUnreachable) as caught:
        Ledger.open(database.url + "x", password_file=mariadb.folder / "password")
    assert real not in str(caught.value)


@pytest.mark.mariadb
def test_the_password_may_come_from_the_environment(
    mariadb: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = mariadb.database()
    monkeypatch.setenv("SBUDGET_DB_PASSWORD", (mariadb.folder / "password").read_text().strip())
    Ledger.open(database.url, create=True).close()


@pytest.mark.mariadb
def test_the_server_goes_away_and_comes_back(mariadb: Server) -> None:
    database = mariadb.database()
    with database.open() as ledger:
        ledger.set_cursor("main", 5)
        kill(mariadb)
        assert ledger.cursor("main") == 5, "a pooled connection that died is not used"


@pytest.mark.mariadb
def test_a_server_that_froze_is_not_waited_for_for_ever(
    mariadb: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither by who is connected nor by who connects."""
    monkeypatch.setattr(connect, "ANSWER_SECONDS", 1)
    database = mariadb.database()
    pid = json.loads((mariadb.folder / "state.json").read_text())["pid"]
    with database.open() as ledger, database.open() as other:
        ledger.set_cursor("main", 5)
        other.engine.dispose()
        os.kill(pid, signal.SIGSTOP)
        try:
            for one in (ledger, other):
                with pytest.raises(LedgerUnreachable, match="was lost or refused"):
                    one.cursor("main")
        finally:
            os.kill(pid, signal.SIGCONT)
        assert ledger.cursor("main") == other.cursor("main") == 5


def test_backup_and_restore(database: Database, tmp_path: Path) -> None:
    target = tmp_path / "backup.db"
    with database.open() as ledger:
        ledger.record_runs(some(12_000), source="t", now=1)
        before = ledger.sums("main", Window("sliding", 1000), 300, {})
        counts = ledger.backup(target)
        assert counts["runs"] == 12_000
        with pytest.raises(Exception, match="there already"):
            ledger.backup(target)
    assert [path.name for path in tmp_path.glob("backup*")] == ["backup.db"]
    with Ledger.open(f"sqlite:///{target}") as copy:
        assert copy.sums("main", Window("sliding", 1000), 300, {}) == before
        assert copy.faults(Window(), 300) == []


def test_a_backup_into_nowhere_leaves_nothing(sqlite: Ledger, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(LedgerUnreachable, match="could not be written"):
        sqlite.backup(tmp_path / "file" / "backup.db")


@pytest.mark.mariadb
def test_a_client_that_froze_in_a_transaction_is_not_waited_for_for_ever(mariadb: Server) -> None:
    with mariadb.database().open() as ledger, ledger.engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT @@idle_transaction_timeout").scalar() == 600
