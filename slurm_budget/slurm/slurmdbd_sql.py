"""Runs from slurmdbd's own tables, read-only: for the first load of years of history.

The tables are those of Slurm's as_mysql plugin: `<cluster>_job_table` has a row for each start of
each job, as `sacct -D -X` shows them, with ids where sacct has names. The columns read here are the
same in the schemas of Slurm 22.05, 24.11 and 26.05; that they are all there is checked first, so
that a schema which has moved on is an error and not a wrong figure.

Rows are turned into runs by the same code as sacct's, so both sources give equal runs.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pymysql
from pymysql.cursors import SSCursor

from slurm_budget.errors import BadInput, SlurmUnreachable
from slurm_budget.slurm import rows
from slurm_budget.slurm.command import Commands, checked
from slurm_budget.slurm.rows import BadRow, Unusable
from slurm_budget.state.jobs import Run

COLUMNS = (
    *("id_job", "time_submit", "time_start", "time_end", "time_suspended", "state", "account"),
    *("partition", "id_qos", "id_user", "tres_alloc", "nodes_alloc", "admin_comment"),
)
_STATES = (
    *("PENDING", "RUNNING", "SUSPENDED", "COMPLETED", "CANCELLED", "FAILED", "TIMEOUT"),
    *("NODE_FAIL", "PREEMPTED", "BOOT_FAIL", "DEADLINE", "OUT_OF_MEMORY"),
)
_FLAGS = ((1 << 10, "REQUEUED"), (1 << 13, "RESIZING"), (1 << 16, "REVOKED"))
"""Bits above the base state that the accounting keeps (slurm/slurm.h, enum job_states)."""
_NAME = re.compile(r"[A-Za-z0-9_.-]+")
_ERRORS = (pymysql.MySQLError, OSError)


@dataclass(frozen=True, slots=True)
class Database:
    """Where slurmdbd keeps its tables; the password is in no repr and no message."""

    host: str
    port: int
    user: str
    name: str
    _secret: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"{self.user}@{self.host}:{self.port}/{self.name}"

    @classmethod
    def from_slurm(cls, commands: Commands) -> "Database":
        """Read slurmdbd.conf, which lies beside slurm.conf and only root and SlurmUser may read."""
        text = checked(commands.run("scontrol", "show", "config"), silent_ok=False)
        found = re.search(r"^SLURM_CONF\s*=\s*(\S+)", text, re.MULTILINE)
        folder = commands.conf.parent if commands.conf else Path(found[1]).parent if found else None
        return cls.from_conf((folder or Path("/etc/slurm")) / "slurmdbd.conf")

    @classmethod
    def from_conf(cls, path: Path) -> "Database":
        """Raises BadInput where the file cannot be read or names no database."""
        try:
            text = path.read_text(encoding="utf-8", errors="replace")
        except OSError as bad:
            raise BadInput(
                f"cannot be read: {bad.strerror}",
                where=str(path),
                mend="run as root or SlurmUser on the host of slurmdbd, or use source = 'sacct'",
            ) from None
        pairs = re.findall(r"^\s*(\w+)\s*=\s*(\S+)", text, re.MULTILINE)
        get = {key.lower(): value for key, value in pairs}.get
        if not str(get("storagetype", "")).endswith("mysql"):
            raise BadInput(
                f"StorageType={get('storagetype', '(none)')} is no MariaDB",
                where=str(path),
                mend="use source = 'sacct'",
            )
        return cls(
            host=get("storagehost", "localhost"),
            port=int(get("storageport", "3306")),
            user=get("storageuser", "root"),
            name=get("storageloc", "slurm_acct_db"),
            _secret=(get("storagepass", ""),),
        )

    def connect(self) -> "pymysql.Connection[Any]":
        """A session that cannot write. Raises SlurmUnreachable."""
        try:
            return pymysql.connect(
                host=self.host,
                port=self.port,
                user=self.user,
                password=self._secret[0] if self._secret else "",
                database=self.name,
                connect_timeout=10,
                read_timeout=300,
                init_command="SET SESSION TRANSACTION READ ONLY",
            )
        except _ERRORS as bad:
            raise _lost(self, bad) from None


def _lost(database: Database, bad: BaseException) -> SlurmUnreachable:
    detail = bad.args[-1] if bad.args else bad
    return SlurmUnreachable(
        f"slurmdbd's database cannot be read: {detail}",
        where=repr(database),
        mend="check MariaDB and slurmdbd.conf; or use source = 'sacct'",
    )


def runs(database: Database, cluster: str, since: int, until: int) -> Iterator[Run | BadRow]:
    """Runs of one cluster that were there between two epoch seconds, as sacct would give them.

    Raises SlurmUnreachable when the database goes away, possibly in the middle: hand the iterator
    to one transaction. Reads in bounded memory.
    """
    if not _NAME.fullmatch(cluster):
        raise BadInput(f"{cluster!r} is no cluster name", mend="write it as in ClusterName")
    with closing(database.connect()) as connection:
        try:
            with connection.cursor() as cursor:
                names = _names(cursor, cluster)
                _demand(cursor, database, cluster)
            with connection.cursor(SSCursor) as stream:
                stream.execute(
                    f"SELECT {', '.join(f'j.`{name}`' for name in COLUMNS)}, a.`user`"
                    f" FROM `{cluster}_job_table` j"
                    f" LEFT JOIN `{cluster}_assoc_table` a ON a.id_assoc = j.id_assoc"
                    " WHERE j.deleted = 0 AND j.time_start > 0 AND j.time_start <= %s"
                    " AND (j.time_end >= %s OR j.time_end = 0)",
                    (until, since),
                )
                for values in stream:
                    row = dict(zip((*COLUMNS, "user"), values, strict=True))
                    found = _run(row, cluster, names)
                    if found is not None:
                        yield found
        except _ERRORS as bad:
            raise _lost(database, bad) from None


@dataclass(frozen=True, slots=True)
class _Names:
    qos: Mapping[int, str]
    tres: Mapping[int, str]


def _names(cursor: Any, cluster: str) -> _Names:
    cursor.execute("SELECT id, name FROM qos_table")
    qos = {int(number): name for number, name in cursor.fetchall()}
    cursor.execute("SELECT id, type, name FROM tres_table")
    tres = {int(n): f"{kind}/{name}" if name else kind for n, kind, name in cursor.fetchall()}
    return _Names(qos, tres)


def _demand(cursor: Any, database: Database, cluster: str) -> None:
    cursor.execute(
        "SELECT column_name FROM information_schema.columns"
        " WHERE table_schema = %s AND table_name = %s",
        (database.name, f"{cluster}_job_table"),
    )
    there = {row[0] for row in cursor.fetchall()}
    missing = [name for name in COLUMNS if name not in there]
    if missing:
        raise SlurmUnreachable(
            f"the table {cluster}_job_table lacks {', '.join(missing[:4])}"
            if there
            else f"there is no table {cluster}_job_table",
            where=repr(database),
            mend="check slurm.cluster; for a schema newer than 26.05 use source = 'sacct'",
        )


def state_of(number: int) -> str:
    """The name of a stored state: a flag that the accounting keeps, or the base state."""
    for bit, name in _FLAGS:
        if number & bit:
            return name
    base = number & 0xFF
    if base >= len(_STATES):
        raise Unusable(f"the state {number} is not one of Slurm's")
    return _STATES[base]


def _run(row: Mapping[str, Any], cluster: str, names: _Names) -> Run | BadRow | None:
    try:
        word = state_of(int(row["state"]))
        if word == "PENDING":
            return None
        start, end = int(row["time_start"]), int(row["time_end"]) or None
        if end is not None and end < start:
            raise Unusable(f"it ends {start - end} s before it starts")
        qos = names.qos.get(int(row["id_qos"]), "")
        return Run(
            cluster,
            int(row["id_job"]),
            start,
            end,
            int(row["time_submit"]) or start,
            row["user"] or "",
            (row["account"] or "").lower(),
            qos,
            row["partition"] or "",
            word,
            rows.gpus(_tres(row["tres_alloc"] or "", names)),
            int(row["nodes_alloc"]),
            # while a job is suspended this column holds the moment at which that began
            0 if word == "SUSPENDED" else int(row["time_suspended"]),
            rows.class_of(qos),
            rows.min_runtime(row["admin_comment"] or ""),
        )
    except Unusable as bad:
        return BadRow(0, f"job {row['id_job']}: {bad}")


def _tres(text: str, names: _Names) -> str:
    """`1=2,1001=8` with names; an id that tres_table does not know cannot be read."""
    out = []
    for item in filter(None, text.split(",")):
        number, _, count = item.partition("=")
        if not number.isdigit() or int(number) not in names.tres:
            raise Unusable(f"TRES {item!r} is not in tres_table")
        out.append(f"{names.tres[int(number)]}={count}")
    return ",".join(out)
