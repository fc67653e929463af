"""The schema: migrations and tables agree, the shown SQL is up to date, strangers are refused."""

import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import event, text

from slurm_budget.core.window import Window
from slurm_budget.errors import BadInput, LedgerUnreachable
from slurm_budget.ledger import connect, migrate
from slurm_budget.ledger.schema import SCHEMA, metadata
from slurm_budget.ledger.store import Ledger
from slurm_budget.state.jobs import Run

from .conftest import ROOT, Database

DATA = ROOT / "tests" / "data"


def test_the_migrations_make_the_tables_that_the_code_uses(ledger: Ledger) -> None:
    with ledger.engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, metadata) == []


def test_this_program_uses_the_newest_migration() -> None:
    config = Config()
    config.set_main_option("script_location", str(migrate.sql_folder() / "migrations"))
    assert ScriptDirectory.from_config(config).get_current_head() == SCHEMA


def test_the_schemas_that_are_shown_are_up_to_date() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "generate-schemas"), "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def test_the_schema_shown_for_sqlite_is_what_init_makes(tmp_path: Path) -> None:
    with Database("sqlite", f"sqlite:///{tmp_path / 'a.db'}").open() as ledger:
        ledger.close()
    shown = sqlite3.connect(":memory:")
    shown.executescript((ROOT / "sql" / "schema-sqlite.sql").read_text())

    def columns(link: sqlite3.Connection) -> dict[str, list[tuple[object, ...]]]:
        names = [
            row[0]
            for row in link.execute(
                "SELECT name FROM sqlite_master WHERE type IN ('table','index')"
            )
            if not row[0].startswith(("sqlite_", "alembic_"))
        ]
        return {name: link.execute(f"PRAGMA table_info({name})").fetchall() for name in names}

    def indexes(link: sqlite3.Connection) -> set[tuple[object, ...]]:
        return {row[1:] for row in link.execute("PRAGMA index_list(runs)")}

    made = sqlite3.connect(tmp_path / "a.db")
    assert columns(shown) == columns(made)
    assert indexes(shown) == indexes(made)


def test_the_queries_for_admins_run_on_both_databases(ledger: Ledger) -> None:
    files = sorted((ROOT / "sql" / "queries").glob("*.sql"))
    listed = (ROOT / "sql" / "queries" / "README.md").read_text()
    assert len(files) >= 6
    with ledger.engine.connect() as connection:
        for file in files:
            assert file.name in listed
            assert connection.execute(text(file.read_text().rstrip().rstrip(";"))).all() == []


@pytest.mark.parametrize("frozen", sorted(DATA.glob("ledger-*.sql")), ids=lambda file: file.stem)
def test_a_frozen_ledger_of_every_released_schema_upgrades(frozen: Path, tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    link = sqlite3.connect(path)
    link.executescript(frozen.read_text())
    link.commit()
    link.close()
    engine = connect.connect(f"sqlite:///{path}")
    migrate.upgrade(engine)
    engine.dispose()
    with Ledger.open(f"sqlite:///{path}") as ledger:
        assert [node.name for node in ledger.budget_tree("main").nodes.values()] == [
            "institute", "vision", "language",
        ]  # fmt: skip
        assert len(ledger.log("main")) == 2
        assert len(list(ledger.runs_between("main", 0, 10**10))) == 4
        assert [intent.step for intent in ledger.open_intents("main")] == ["signalled"]
        assert ledger.cursor("main") == 10_000


@pytest.mark.parametrize("step", range(1, int(SCHEMA)))
def test_an_upgrade_that_is_killed_is_finished_by_the_next(database: Database, step: int) -> None:
    engine = connect.connect(database.url, database.password_file)
    connect.prepare_folder(engine.url)
    migrate.upgrade(engine, "0001")
    steps = iter(range(1, step))

    def die(*call: Any) -> None:
        # all of a step is done, and the ledger does not say so yet
        if call[2].startswith("UPDATE alembic_version") and next(steps, None) is None:
            raise KeyboardInterrupt

    event.listen(engine, "before_cursor_execute", die)
    with pytest.raises(KeyboardInterrupt):
        migrate.upgrade(engine)
    event.remove(engine, "before_cursor_execute", die)
    assert migrate.upgrade(engine)[1] == SCHEMA
    engine.dispose()
    with database.open(create=False) as ledger, ledger.engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []


def test_a_ledger_is_not_scanned_for_what_is_charged_or_has_changed_by_time(tmp_path: Path) -> None:
    run = Run("main", 1, 100, 900, 50, "ana", "vision", "funded-vision", "gpu", "COMPLETED",
              {"h100": 1}, 1, 0, "funded", 200)  # fmt: skip
    window, asked = Window(), list[tuple[str, Any]]()
    with Database("sqlite", f"sqlite:///{tmp_path / 'a.db'}").open() as ledger:
        ledger.record_runs([run], source="t", now=1)
        ledger.sums("main", window, 200, {})

        def note(*call: Any) -> None:
            asked.append((call[2], call[3]))

        event.listen(ledger.engine, "before_cursor_execute", note)
        assert len(list(ledger.charged_between("main", ["vision"], 0, 400))) == 1
        assert ledger.sums("main", window, 400, {}).charge == {("vision", "ana", "h100"): 200_000}
        event.remove(ledger.engine, "before_cursor_execute", note)
        with ledger.engine.connect() as connection:
            plans = [
                [
                    row[3]
                    for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {query}", values)
                ]
                for query, values in asked
                if "FROM runs" in query and "charged_until" in query
            ]
    assert len(plans) == 2
    assert any("INDEX ix_runs_account_id_charged_until " in step for step in plans[0])
    assert any("INDEX ix_runs_charged_until " in step for step in plans[1])
    assert not [step for plan in plans for step in plan if step in ("SCAN r", "SCAN runs")]


def test_wal_and_foreign_keys_are_on_in_sqlite(tmp_path: Path) -> None:
    ledger = Database("sqlite", f"sqlite:///{tmp_path / 'a.db'}").open()
    with ledger, ledger.engine.connect() as connection:
        assert connection.scalar(text("PRAGMA journal_mode")) == "wal"
        assert connection.scalar(text("PRAGMA foreign_keys")) == 1
        assert connection.scalar(text("PRAGMA application_id")) == 0x53425547


def test_opening_does_not_make_a_ledger_by_accident(database: Database, tmp_path: Path) -> None:
    with pytest.raises(LedgerUnreachable, match=r"there is no ledger|never made") as caught:
        database.open(create=False)
    assert "sbudget ledger init" in str(caught.value)
    assert not list(tmp_path.glob("*.db"))


def test_another_programs_database_is_refused(database: Database) -> None:
    engine = connect.connect(database.url, database.password_file)
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE jobs (id INTEGER)"))
    engine.dispose()
    for create in (False, True):
        with pytest.raises(LedgerUnreachable, match="holds something else"):
            database.open(create=create)


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("the budget is 12 GPUs\n" * 200)
    with pytest.raises(LedgerUnreachable, match="is not a ledger"):
        Ledger.open(f"sqlite:///{path}")
    assert path.read_text().startswith("the budget")


@pytest.mark.parametrize(("found", "mend"), [("0000", "upgrade"), ("9999", "newer slurm-budget")])
def test_another_schema_is_refused_with_what_to_do(
    database: Database, found: str, mend: str
) -> None:
    with database.open() as ledger, ledger.engine.connect() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = :v"), {"v": found})
        connection.commit()
    with pytest.raises(LedgerUnreachable, match=f"schema {found}") as caught:
        database.open(create=False)
    assert mend in caught.value.mend


def test_a_folder_that_cannot_be_made_is_named() -> None:
    with pytest.raises(LedgerUnreachable, match="cannot be made") as caught:
        Ledger.open("sqlite:////proc/nowhere/ledger.db", create=True)
    assert caught.value.where == "/proc/nowhere/ledger.db"


@pytest.mark.parametrize(
    ("url", "what"),
    [
        ("postgresql://u@h/d", "not supported"),
        ("not a url", "not a database URL"),
        ("mariadb+pymysql://u:geheim@h/d", "holds a password"),
    ],
)
def test_urls_that_cannot_be_used(url: str, what: str) -> None:
    with pytest.raises(BadInput, match=what) as caught:
        Ledger.open(url)
    assert "geheim" not in str(caught.value)
