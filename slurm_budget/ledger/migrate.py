"""Schema versions: which one a database has, and how it gets the newest.

The migrations are Alembic's and lie in sql/migrations, beside the generated schemas.
"""

from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, inspect, text

from slurm_budget import shipped
from slurm_budget.errors import LedgerUnreachable, SbudgetError
from slurm_budget.ledger import connect
from slurm_budget.ledger.schema import APPLICATION, SCHEMA, SQLITE_APPLICATION_ID


def sql_folder() -> Path:
    """The folder sql/ of the checkout, or of the installed distribution."""
    try:
        return shipped.folder("sql", "migrations/env.py")
    except SbudgetError as bad:
        raise LedgerUnreachable(bad.what, mend=bad.mend) from None


def version(connection: Connection) -> str | None:
    """The schema version of a ledger; None of an empty database. Raises LedgerUnreachable for a
    database of something else."""
    tables = set(inspect(connection).get_table_names())
    if "meta" in tables and "alembic_version" in tables:
        whose = connection.scalar(text("SELECT value FROM meta WHERE name = 'application'"))
        if whose == APPLICATION:
            return str(connection.scalar(text("SELECT version_num FROM alembic_version")))
    elif not tables:
        return None
    raise LedgerUnreachable(
        f"this database holds something else ({', '.join(sorted(tables)[:3])}, ...), not a ledger",
        where=connect.shown(connection.engine.url),
        mend="set ledger.url to a database of its own",
    )


def demand(engine: Engine) -> None:
    """Raise LedgerUnreachable unless the ledger has the schema of this program."""
    with connect.reading(engine) as connection:
        found = version(connection)
    where = connect.shown(engine.url)
    if found is None:
        raise LedgerUnreachable(
            "the ledger is empty: it was never made", where=where, mend="run `sbudget ledger init`"
        )
    if found < SCHEMA:
        raise LedgerUnreachable(
            f"the ledger has schema {found}, this program needs {SCHEMA}",
            where=where,
            mend="run `sbudget ledger backup`, then `sbudget ledger upgrade`",
        )
    if found > SCHEMA:
        raise LedgerUnreachable(
            f"the ledger has schema {found}, newer than this program knows ({SCHEMA})",
            where=where,
            mend="install the newer slurm-budget on this machine too",
        )


def upgrade(engine: Engine, target: str = "head") -> tuple[str | None, str]:
    """Bring the ledger to a schema version, from an empty database too: (before, after)."""
    from alembic import command
    from alembic.config import Config

    if engine.dialect.name == "sqlite" and engine.url.database:
        with connect.explained(engine, "nothing was written"), engine.connect() as connection:
            version(connection)
            _wal(connection)
    with connect.writing(engine, queue=False) as connection:
        before = version(connection)
        config = Config()
        config.set_main_option("script_location", str(sql_folder() / "migrations"))
        config.attributes["connection"] = connection
        command.upgrade(config, target)
        after = version(connection)
    assert after is not None
    return before, after


def initialise(engine: Engine) -> bool:
    """Make the tables where the database is empty (True); a ledger that is there is left alone."""
    with connect.reading(engine) as connection:
        found = version(connection)
    if found is None:
        upgrade(engine)
    return found is None


def _wal(connection: Connection) -> None:
    """Write-ahead logging lets readers go on while a sweep writes; it is kept in the file. Not
    possible within a transaction."""
    raw: Any = connection.connection.driver_connection
    connection.rollback()
    raw.execute("PRAGMA page_size = 16384")  # a tenth quicker than 4096 at a first load
    raw.execute("PRAGMA journal_mode = WAL")
    raw.execute(f"PRAGMA application_id = {SQLITE_APPLICATION_ID}")
