"""A copy of the whole ledger in one file: an SQLite ledger, whatever the original is.

It is taken in one transaction, so it shows one moment while sweeps go on, and it appears under its
name only when it is whole. To restore it, name it in ledger.url, or copy it into an empty database
with `copy`.
"""

import os
from pathlib import Path

from sqlalchemy import Connection, Engine, func, insert, select

from slurm_budget.errors import BadInput, LedgerUnreachable
from slurm_budget.ledger import connect, migrate
from slurm_budget.ledger.schema import meta, metadata, sums_states

ROWS = 10_000


def backup(engine: Engine, target: Path) -> dict[str, int]:
    """Write the ledger to a new file; returns the rows by table. An existing file is refused."""
    if target.exists():
        raise BadInput("the file is there already", where=str(target), mend="choose another name")
    part = target.with_name(target.name + ".part")
    try:
        part.unlink(missing_ok=True)
        counts = _write(engine, part)
        with part.open("rb") as file:
            os.fsync(file.fileno())
        os.replace(part, target)
    except OSError as bad:
        raise LedgerUnreachable(
            f"the backup could not be written: {bad.strerror}",
            where=str(target),
            mend="free space or choose another folder; the ledger itself is untouched",
        ) from None
    finally:
        if target.parent.is_dir():
            for leftover in target.parent.glob(part.name + "*"):
                leftover.unlink()
    return counts


def _write(engine: Engine, part: Path) -> dict[str, int]:
    copy_engine = connect.connect(f"sqlite:///{part.absolute()}")
    connect.prepare_folder(copy_engine.url)
    try:
        migrate.upgrade(copy_engine)
        with connect.reading(engine) as source, connect.writing(copy_engine) as into:
            counts = copy(source, into)
        with copy_engine.connect() as connection:
            raw = connection.connection.driver_connection
            assert raw is not None
            connection.rollback()
            # one file without a -wal beside it, which a person would forget to copy
            raw.execute("PRAGMA journal_mode = DELETE")
    finally:
        copy_engine.dispose()
    return counts


def copy(source: Connection, into: Connection) -> dict[str, int]:
    """All rows of a ledger into one that has none yet, caches left out."""
    counts = {}
    for table in metadata.sorted_tables:
        if table is sums_states or table is meta:
            continue
        if into.scalar(select(func.count()).select_from(table)):
            raise BadInput(
                f"the target has rows in {table.name} already", mend="copy into an empty ledger"
            )
        counts[table.name] = 0
        rows = source.execute(select(table).execution_options(yield_per=ROWS)).mappings()
        for part in rows.partitions(ROWS):
            into.execute(insert(table), [dict(row) for row in part])
            counts[table.name] += len(part)
    return counts
