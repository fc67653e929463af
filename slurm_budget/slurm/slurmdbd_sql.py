"""Runs from slurmdbd's own tables, for the first load of years of history. Read-only.

It gives the runs that sacct gives, by the same rules that slurmdbd applies on the way (Slurm's
as_mysql_jobacct_process.c): an account and user by association, a job that ended before it started
has no time of its own, and while a job is suspended `time_suspended` is the moment since which it
is, less what it had before. TRES are numbers there; tres_table names them.

The columns used are the same in the schemas of 22.05, 24.11 and 26.05. One that is missing is said
before anything is read.
"""

import pwd
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pymysql
from pymysql.cursors import SSCursor

from slurm_budget.core.budget_rules import CLUSTER_NAME
from slurm_budget.errors import BadInput, SlurmUnreachable
from slurm_budget.slurm import rows
from slurm_budget.slurm.command import Commands
from slurm_budget.slurm.rows import BadRow, Unusable
from slurm_budget.state.jobs import Run

OURS = Path("/etc/slurm-budget/slurmdbd.conf")
"""A file like slurmdbd.conf with a user who may only read; looked for first."""

_COLUMNS = (
    *("id_job", "account", "id_assoc", "id_qos", "id_user", "partition", "time_submit"),
    *("time_start", "time_end", "time_suspended", "state", "tres_alloc", "nodes_alloc"),
    *("admin_comment", "time_eligible", "timelimit"),
)
_STATES = (
    *("PENDING", "RUNNING", "SUSPENDED", "COMPLETED", "CANCELLED", "FAILED", "TIMEOUT"),
    *("NODE_FAIL", "PREEMPTED", "BOOT_FAIL", "DEADLINE", "OUT_OF_MEMORY"),
)
_FLAGS = {0x400: "REQUEUED", 0x2000: "RESIZING"}
"""Bits above the state that slurmdbd keeps; they take the place of its name."""
_BASE = 0xFF
_NO_VAL = 0xFFFFFFFE
"""This and all above it are no time limit."""
_NEWER = "restart_cnt"
"""A column that 22.05 has not got and 24.11 has."""


@dataclass(frozen=True, slots=True)
class Database:
    """Where slurmdbd keeps its tables. The password is in no message."""

    host: str
    port: int
    user: str
    password: str = field(repr=False)
    name: str

    @classmethod
    def from_conf(cls, path: Path) -> "Database":
        """From StorageHost, StoragePort, StorageUser, StoragePass and StorageLoc."""
        try:
            mode = stat.S_IMODE(path.stat().st_mode)
            text = path.read_text(encoding="utf-8", errors="replace")
        except OSError as bad:
            raise SlurmUnreachable(
                f"slurmdbd's database cannot be found: {bad.strerror}",
                where=str(path),
                mend=f"write the Storage... lines of a user who may read into {OURS}, mode 0600",
            ) from None
        if mode & 0o077:
            raise BadInput(
                f"others may read the password in it (mode {mode:04o})",
                where=str(path),
                mend=f"chmod 0600 {path}, and change the password if somebody may have read it",
            )
        found = dict(re.findall(r"(?im)^\s*(storage\w+)\s*=\s*([^#\s]*)", text))
        given = {key.lower(): value for key, value in found.items()}
        port = given.get("storageport", "3306")
        if not port.isdigit():
            raise BadInput(f"StoragePort {port!r} is not a number", where=str(path))
        return cls(
            given.get("storagehost", "localhost"),
            int(port),
            given.get("storageuser", "slurm"),
            given.get("storagepass", ""),
            given.get("storageloc", "slurm_acct_db"),
        )

    @classmethod
    def from_slurm(cls, commands: Commands) -> "Database":
        """From our own file, or the slurmdbd.conf beside slurm.conf."""
        if OURS.exists():
            return cls.from_conf(OURS)
        slurm_conf = commands.environment().get("SLURM_CONF", "/etc/slurm/slurm.conf")
        return cls.from_conf(Path(slurm_conf).with_name("slurmdbd.conf"))

    def __str__(self) -> str:
        return f"{self.name} on {self.host}:{self.port}"


def runs(database: Database, cluster: str, since: int, until: int) -> Iterator[Run | BadRow]:
    """Runs of one cluster that were there between two epoch seconds, in bounded memory.

    Raises SlurmUnreachable when the database cannot be read to its end: nothing of what came may
    be kept then.
    """
    if not CLUSTER_NAME.fullmatch(cluster):  # it is part of the tables' names
        raise BadInput(f"{cluster!r} is not a cluster's name", mend="see `sacctmgr show cluster`")
    try:
        link = pymysql.connect(
            host=database.host,
            port=database.port,
            user=database.user,
            password=database.password,
            database=database.name,
            charset="utf8mb4",
            connect_timeout=10,
            init_command="SET SESSION TRANSACTION READ ONLY",
        )
        with link, link.cursor() as cursor:
            columns = _columns(cursor, cluster, database)
            maker = _Maker(cursor, cluster, numbers_users=_NEWER in columns)
            cursor.execute("SELECT UNIX_TIMESTAMP()")
            now = int(cursor.fetchone()[0])
            with link.cursor(SSCursor) as stream:
                stream.execute(_query(cluster), (until, since))
                for row in stream:
                    made = maker.run(row, now)
                    if made is not None:
                        yield made
    except pymysql.MySQLError as bad:
        number = bad.args[0] if bad.args else 0
        text = str(bad.args[1]) if len(bad.args) > 1 else type(bad).__name__
        raise SlurmUnreachable(
            f"slurmdbd's database failed ({number}): {text}",
            where=str(database),
            mend="check that it runs and that the user may SELECT; slurm.source = sacct needs none",
        ) from None


def _columns(cursor: Any, cluster: str, database: Database) -> set[str]:
    cursor.execute(
        "SELECT column_name FROM information_schema.columns"
        " WHERE table_schema = DATABASE() AND table_name = %s",
        (f"{cluster}_job_table",),
    )
    there = {str(row[0]) for row in cursor.fetchall()}
    missing = [name for name in _COLUMNS if name not in there]
    if missing:
        what = f"has no column {', '.join(missing)}" if there else "is not there"
        raise SlurmUnreachable(
            f"the table {cluster}_job_table {what}",
            where=str(database),
            mend="check slurm.cluster; with another schema use slurm.source = sacct",
        )
    return there


def _query(cluster: str) -> str:
    wanted = ", ".join(f"t1.`{name}`" for name in _COLUMNS if name != "id_assoc")
    return (
        f"SELECT {wanted}, t2.acct, t2.user FROM `{cluster}_job_table` t1"
        f" LEFT JOIN `{cluster}_assoc_table` t2 ON t1.id_assoc = t2.id_assoc"
        " WHERE t1.time_start > 0 AND t1.time_eligible > 0 AND t1.time_eligible < %s"
        " AND (t1.time_end = 0 OR t1.time_end >= %s)"
        " ORDER BY t1.id_job, t1.time_submit"
    )


class _Maker:
    """Turns rows into runs; knows the names of QOS and TRES."""

    def __init__(self, cursor: Any, cluster: str, *, numbers_users: bool) -> None:
        cursor.execute("SELECT id, name FROM qos_table")
        self._qos: dict[int, str] = dict(cursor.fetchall())
        cursor.execute("SELECT id, type, name FROM tres_table")
        self._tres = {
            str(number): f"{kind}/{name}" if name else kind
            for number, kind, name in cursor.fetchall()
        }
        self._cluster = cluster
        self._numbers_users = numbers_users
        self._spelled: dict[str, str] = {}

    def run(self, row: tuple[Any, ...], now: int) -> Run | BadRow | None:
        (job_id, account, id_qos, id_user, partition, submit, start, end, suspended, state) = row[
            :10
        ]
        tres_alloc, nodes, comment, eligible, limit, acct, user = row[10:]
        try:
            word = _state(state)
            if word == "PENDING":
                return None
            if end and start > end:
                start = end
            qos = self._qos.get(id_qos, "Unknown")
            return Run(
                self._cluster,
                job_id,
                start,
                end or None,
                submit or start,
                user or self._user(id_user),
                (acct or account or "").lower(),
                qos,
                partition,
                word,
                rows.gpus(self._alloc(tres_alloc)),
                nodes,
                max(now - suspended, 0) if word == "SUSPENDED" else suspended,
                rows.class_of(qos, comment or ""),
                rows.min_runtime(comment or ""),
                eligible,
                limit * 60 if limit < _NO_VAL else None,
            )
        except Unusable as bad:
            return BadRow(0, f"job {job_id}: {bad}")

    def _user(self, uid: int) -> str:
        """Without an association sacct asks this machine who a uid is; where nobody is, it shows
        the number since some version after 22.05, and nothing before."""
        try:
            return pwd.getpwuid(uid).pw_name
        except KeyError:
            return str(uid) if self._numbers_users else ""

    def _alloc(self, numbers: str) -> str:
        """`1=8,1001=2` as `cpu=8,gres/gpu=2`."""
        known = self._spelled.get(numbers)
        if known is None:
            pairs = (item.partition("=") for item in numbers.split(",") if item)
            known = ",".join(f"{self._tres.get(n, n)}={count}" for n, _, count in pairs)
            if len(self._spelled) > 65536:
                self._spelled.clear()
            self._spelled[numbers] = known
        return known


def _state(number: int) -> str:
    for bit, word in _FLAGS.items():
        if number & bit:
            return word
    base = number & _BASE
    if base >= len(_STATES):
        raise Unusable(f"the state {number} is not one of Slurm's")
    return _STATES[base]
