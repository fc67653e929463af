"""The ledger's tables as SQL, for people: what sql/schema-sqlite.sql and -mariadb.sql show."""

from sqlalchemy.dialects import mysql, sqlite
from sqlalchemy.engine.interfaces import Dialect
from sqlalchemy.schema import CreateIndex, CreateTable

from slurm_budget.ledger.schema import SCHEMA, metadata


def ddl(database: str) -> str:
    """The statements that make an empty ledger in `sqlite` or `mariadb`, as the migrations do."""
    dialects: dict[str, Dialect] = {
        "sqlite": sqlite.dialect(),
        "mariadb": mysql.dialect(is_mariadb=True),
    }
    dialect = dialects[database]
    out = [
        f"-- The ledger in {database}, schema {SCHEMA}. Made by scripts/generate-schemas from",
        "-- slurm_budget/ledger/schema.py, to be read: `sbudget ledger init` makes the tables.",
    ]
    for table in metadata.sorted_tables:
        # MariaDB keeps the comment itself
        out += ["", f"-- {table.comment}"] if database == "sqlite" else [""]
        out.append(str(CreateTable(table).compile(dialect=dialect)).strip() + ";")
        out += [
            str(CreateIndex(index).compile(dialect=dialect)).strip() + ";"
            for index in sorted(table.indexes, key=lambda index: str(index.name))
        ]
    lines = "\n".join(out).replace("\t", "    ").splitlines()
    return "\n".join(line.rstrip() for line in lines) + "\n"
