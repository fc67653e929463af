"""Opening a database as the ledger, and turning its failures into sentences without a password.

A transaction is whole or not at all: `writing` commits when its block ends and rolls back when it
raises. SQLite takes its write lock at once (BEGIN IMMEDIATE), since a reader that turns writer in
the middle may find that it cannot; MariaDB's writers queue at one row of `meta`.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError

from slurm_budget.errors import BadInput, LedgerClosed, LedgerUnreachable

PASSWORD_VARIABLE = "SBUDGET_DB_PASSWORD"
BUSY_SECONDS = 15
ANSWER_SECONDS = 300
"""A MariaDB that says nothing for so long has frozen; no statement of ours takes a part of it."""
_WRITER = "sbudget_writer"


def connect(url: str, password_file: Path | None = None) -> Engine:
    """An engine for `sqlite:///FILE` or `mariadb+pymysql://USER@HOST/DATABASE`, not used yet."""
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        raise BadInput(
            "ledger.url is not a database URL",
            mend="write sqlite:////var/lib/slurm-budget/ledger.db or mariadb+pymysql://USER@HOST/DB",
        ) from None
    if parsed.password is not None:
        raise BadInput(
            "ledger.url holds a password, where others may read it",
            where=shown(parsed),
            mend=f"put it in a file of mode 0600 (ledger.password_file) or in {PASSWORD_VARIABLE}",
        )
    backend = parsed.get_backend_name()
    if backend == "sqlite":
        return _sqlite(parsed)
    if backend in ("mysql", "mariadb"):
        return _mariadb(parsed.set(drivername="mariadb+pymysql"), password_file)
    raise BadInput(
        f"ledger.url names {backend}, which is not supported",
        where=shown(parsed),
        mend="use sqlite or mariadb+pymysql",
    )


def shown(url: URL) -> str:
    """The URL for messages: never with a password."""
    bare = URL.create(
        url.drivername, username=url.username, host=url.host, port=url.port, database=url.database
    )
    return bare.render_as_string()


def _sqlite(url: URL) -> Engine:
    engine = create_engine(url, connect_args={"timeout": BUSY_SECONDS})

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, _: object) -> None:
        connection.isolation_level = None  # we say BEGIN ourselves, below
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute(f"PRAGMA busy_timeout = {BUSY_SECONDS * 1000}")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA cache_size = -65536")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        writer = connection.get_execution_options().get(_WRITER)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writer else "BEGIN")

    return engine


def file_of(url: URL) -> Path | None:
    """The file of an SQLite ledger; None for MariaDB and for SQLite in memory."""
    if url.get_backend_name() != "sqlite" or not url.database or url.database == ":memory:":
        return None
    return Path(url.database)


def missing_file(url: URL) -> Path | None:
    """The ledger's file where it is not there: opening it would make an empty one."""
    file = file_of(url)
    try:
        if file is not None:
            file.stat()
    except PermissionError:
        return None  # it may be there; opening it says that this user may not
    except OSError:
        return file
    return None


def prepare_folder(url: URL) -> None:
    """Make sure that an SQLite ledger can be made where it is to lie."""
    file = missing_file(url)
    if file is None:
        return
    try:
        # the snapshot lies there too, for slurmctld and for everybody; the ledger is not theirs
        file.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        file.touch(mode=0o640)
    except OSError as bad:
        raise LedgerClosed(
            f"the ledger cannot be made: {bad.strerror}",
            where=str(file),
            mend="choose another place (ledger.url), or run it as the user who may write there",
        ) from None


def _mariadb(url: URL, password_file: Path | None) -> Engine:
    return create_engine(
        url.set(password=_password(password_file)),
        pool_pre_ping=True,
        pool_recycle=600,
        connect_args={
            "connect_timeout": 10,
            "read_timeout": ANSWER_SECONDS,
            "write_timeout": ANSWER_SECONDS,
            "charset": "utf8mb4",
            # a client that froze in a transaction holds its locks up to so many seconds
            "init_command": "SET sql_mode='TRADITIONAL', time_zone='+00:00',"
            " idle_transaction_timeout=600",
        },
    )


def _password(path: Path | None) -> str | None:
    if path is None:
        return os.environ.get(PASSWORD_VARIABLE)
    try:
        mode = path.stat().st_mode
        if stat.S_IMODE(mode) & 0o077:
            raise BadInput(
                f"others may read the password file (mode {stat.S_IMODE(mode):04o})",
                where=str(path),
                mend=f"chmod 0600 {path}",
            )
        return path.read_text(encoding="utf-8").rstrip("\n")
    except (OSError, UnicodeDecodeError) as bad:
        reason = bad.strerror if isinstance(bad, OSError) else "it is not text"
        raise LedgerClosed(
            f"the password file cannot be read: {reason}",
            where=str(path),
            mend="check ledger.password_file; `chown` it to the user who runs this, mode 0600",
        ) from None


@contextmanager
def reading(engine: Engine) -> Iterator[Connection]:
    """A transaction that sees one moment of the ledger."""
    with (
        explained(engine, "nothing was to be written"),
        engine.connect() as connection,
        connection.begin(),
    ):
        yield connection


@contextmanager
def writing(engine: Engine, *, queue: bool = True) -> Iterator[Connection]:
    """A transaction that is kept when the block ends, and leaves nothing when it raises.

    `queue` makes writers of runs and budgets go one after the other, so that row ids are in the
    order in which they become visible.
    """
    with explained(engine, "nothing of this was written"):
        connection = engine.connect().execution_options(**{_WRITER: True})
        if engine.dialect.name != "sqlite":
            # so that a look-up sees what another writer has just committed
            connection = connection.execution_options(isolation_level="READ COMMITTED")
        with connection:
            transaction = connection.begin()
            try:
                if queue and engine.dialect.name != "sqlite":
                    connection.exec_driver_sql(
                        "SELECT value FROM meta WHERE name = 'write-lock' FOR UPDATE"
                    )
                yield connection
            except BaseException:
                # on a lost connection this fails too; the first failure is the one to tell
                with suppress(SQLAlchemyError):
                    transaction.rollback()
                raise
            with explained(engine, _UNSURE):
                transaction.commit()


_UNSURE = (
    "it is not known whether this was written; do the same again, what is there is not added twice"
)


@contextmanager
def explained(engine: Engine, outcome: str) -> Iterator[None]:
    try:
        yield
    except DBAPIError as bad:
        raise explain(bad, engine.url, outcome) from None


_SQLITE = (
    ("file is not a database", "is not a ledger", "set ledger.url to the ledger's own file"),
    ("locked", "is locked by another program", "try again; `fuser FILE` shows who holds it"),
    ("disk is full", "cannot be written: its disk is full", "free space there, do it again"),
    ("disk i/o error", "cannot be used: its disk fails", "look at the disk"),
    ("readonly", "may not be written by this user", "run it as the user who owns the ledger"),
    ("unable to open", "cannot be opened by this user", "run it as root or the ledger's owner"),
    ("malformed", "is damaged", "run `sbudget ledger check`, restore the last backup"),
    ("no such table", "is not a ledger, or an older one", "run `sbudget ledger init` or `upgrade`"),
    ("no such column", "has another schema than this program", "run `sbudget ledger upgrade`"),
)  # fmt: skip
_MARIADB = {
    1044: ("this user may not use the database", "grant it as `sbudget ledger init --help` says"),
    1045: ("the user or the password is wrong", "check ledger.url and ledger.password_file"),
    1049: ("the database is not there", "create it, then run `sbudget ledger init`"),
    1142: ("this user may not do that", "grant it what `sbudget ledger init --help` says"),
    1143: ("this user may not do that", "grant it what `sbudget ledger init --help` says"),
    1146: ("is not a ledger, or an older one", "run `sbudget ledger init` or `upgrade`"),
    1054: ("has another schema than this program", "run `sbudget ledger upgrade`"),
    1205: ("is locked by another program", "try again; `SHOW PROCESSLIST` shows who"),
    1213: ("two writers were in each other's way", "do it again"),
    1021: ("its disk is full", "free space on the database's file system, then do it again"),
    1114: ("its disk or table space is full", "free space for the database, then do it again"),
    1290: ("the database is read-only", "look at the server's read_only setting"),
    1698: ("the user or the password is wrong", "check ledger.url and ledger.password_file"),
}
_CLOSED: frozenset[str | int] = frozenset(
    ("file is not a database", "readonly", "unable to open", 1044, 1045, 1049, 1142, 1143, 1698)
)
"""Those of the above that no waiting mends."""
_LOST = frozenset({0, 1053, 1927, 2002, 2003, 2006, 2013, 2014, 2055})


def explain(bad: DBAPIError, url: URL, outcome: str) -> LedgerUnreachable:
    """The failure as what, where and mend, without SQL, values or password."""
    original = bad.orig
    text = str(original).lower()
    if url.get_backend_name() == "sqlite":
        for sign, what, mend in _SQLITE:
            if sign in text:
                kind = LedgerClosed if sign in _CLOSED else LedgerUnreachable
                return kind(f"the ledger {what}; {outcome}", where=shown(url), mend=mend)
    else:
        args = getattr(original, "args", ())
        number = args[0] if args and isinstance(args[0], int) else None
        if number in _MARIADB:
            what, mend = _MARIADB[number]
            kind = LedgerClosed if number in _CLOSED else LedgerUnreachable
            return kind(f"the ledger: {what}; {outcome}", where=shown(url), mend=mend)
        if number in _LOST or bad.connection_invalidated:
            return LedgerUnreachable(
                f"the connection to the ledger's database was lost or refused; {outcome}",
                where=shown(url),
                mend="check that the database server runs and can be reached from here",
            )
    return LedgerUnreachable(
        f"the ledger's database failed: {str(original)[:200]}; {outcome}",
        where=shown(url),
        mend="run `sbudget ledger check`",
    )
