"""Both databases for the adapters' tests. MariaDB is a real one, started for the session."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pymysql
import pytest

from slurm_budget.ledger.store import Ledger

ROOT = Path(__file__).resolve().parents[2]
_NUMBERS = count(1)


@dataclass(frozen=True)
class Database:
    """An empty database: its URL, and for MariaDB where the password is."""

    kind: str
    url: str
    password_file: Path | None = None

    def open(self, *, create: bool = True) -> Ledger:
        return Ledger.open(self.url, password_file=self.password_file, create=create)


@dataclass(frozen=True)
class Server:
    """MariaDB: `user` has the rights of production, `admin` is for tests alone."""

    folder: Path
    port: int

    def admin(self) -> "pymysql.connections.Connection":
        return pymysql.connect(
            unix_socket=str(self.folder / "socket"),
            user=subprocess.check_output(["id", "-un"], text=True).strip(),
            autocommit=True,
        )

    def database(self) -> Database:
        name = f"sbudget_{next(_NUMBERS)}"
        with self.admin() as link, link.cursor() as cursor:
            cursor.execute(f"CREATE DATABASE {name} CHARACTER SET utf8mb4 COLLATE utf8mb4_bin")
            cursor.execute(
                "GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, ALTER, INDEX, REFERENCES"
                f" ON {name}.* TO sbudget@'127.0.0.1'"
            )
        url = f"mariadb+pymysql://sbudget@127.0.0.1:{self.port}/{name}"
        return Database("mariadb", url, self.folder / "password")


@pytest.fixture(scope="session")
def mariadb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A MariaDB server of our own; skips with the reason where there is none."""
    if shutil.which("mariadbd", path=os.environ["PATH"] + ":/usr/sbin") is None:
        pytest.skip("mariadbd is not there (apt-get install mariadb-server-core)")
    # not below pytest's own folder: a socket's path may have 107 characters at most
    folder = Path(f"/tmp/sbudget-test-{os.getpid()}")
    script = [sys.executable, str(ROOT / "scripts" / "mariadb")]
    done = subprocess.run([*script, "up", str(folder)], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.fail(f"scripts/mariadb up failed: {done.stderr}")
    state = json.loads((folder / "state.json").read_text())
    yield Server(folder, state["port"])
    subprocess.run([*script, "down", str(folder)], capture_output=True, check=True)


@pytest.fixture(params=["sqlite", pytest.param("mariadb", marks=pytest.mark.mariadb)])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Database:
    """An empty database, of each kind in turn."""
    if request.param == "sqlite":
        return Database("sqlite", f"sqlite:///{tmp_path / 'ledger.db'}")
    server: Server = request.getfixturevalue("mariadb")
    return server.database()


@pytest.fixture
def ledger(database: Database) -> Iterator[Ledger]:
    """An empty ledger, on each database in turn."""
    with database.open() as opened:
        yield opened
