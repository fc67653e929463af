"""The ledger's tables, the same in SQLite and MariaDB. sql/migrations makes them; sql/schema-*.sql
shows them.

Nothing of budgets and runs is ever rewritten: a changeset or a corrected run is new rows. Times
are epoch seconds, durations seconds; a text that repeats (an account, a user, a set of GPUs)
stands once in `names`. `sums_states` is a cache: it can be emptied at any time.
"""

from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    SmallInteger,
    String,
    Table,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects.mysql import LONGBLOB

SCHEMA = "0004"
"""The migration that this code reads and writes."""
APPLICATION = "slurm-budget"
SQLITE_APPLICATION_ID = 0x53425547

metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "uq": "uq_%(table_name)s_%(column_0_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    }
)

Id = BigInteger().with_variant(Integer, "sqlite")
Name = String(255)
_OPTIONS: dict[str, Any] = {
    "mysql_engine": "InnoDB",
    "mysql_charset": "utf8mb4",
    "mysql_collate": "utf8mb4_bin",
    "mariadb_engine": "InnoDB",
    "mariadb_charset": "utf8mb4",
    "mariadb_collate": "utf8mb4_bin",
}
# a condition of indexes in SQLite; MariaDB has no such indexes, and keeps all rows in them
_FUNDED = text("funded = 1")


def _table(name: str, *parts: Any, comment: str) -> Table:
    return Table(name, metadata, *parts, comment=comment, **_OPTIONS)


def _key() -> Column[int]:
    return Column("id", Id, primary_key=True, autoincrement=True)


def _epoch(name: str, *, nullable: bool = False) -> Column[int]:
    return Column(name, BigInteger, nullable=nullable)


def _name(name: str) -> Column[int]:
    """A text that stands in `names`. No foreign key: its lock would hold up MariaDB's writers."""
    return Column(name, Integer, nullable=False)


meta = _table(
    "meta",
    Column("name", String(64), primary_key=True),
    Column("value", Text, nullable=False),
    comment="whose database this is; the row write-lock is what writers queue at",
)
names = _table(
    "names",
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("text", Name, nullable=False),
    UniqueConstraint("text"),
    comment="texts that repeat: clusters, accounts, users, QOS, partitions, states, GPU sets",
)
changesets = _table(
    "budget_changesets",
    _key(),
    _name("cluster_id"),
    Column("base_id", Id, nullable=True),
    Column("undoes_id", Id, nullable=True),
    Column("author", Name, nullable=False),
    Column("acting_as", Name, nullable=False),
    Column("reason", Text, nullable=False),
    _epoch("made_at"),
    Index(None, "cluster_id", "made_at"),
    comment="who changed budgets, when, why, and what they had seen (base)",
)
entries = _table(
    "budget_entries",
    _key(),
    Column("changeset_id", Id, ForeignKey("budget_changesets.id"), nullable=False),
    Column("account", Name, nullable=False),
    Column("removed", Boolean, nullable=False),
    Column("parent", Name, nullable=True),
    Column("amount_kind", String(16), nullable=True),
    Column("amount", BigInteger, nullable=True),
    Column("gres", Name, nullable=False),
    Column("overcommit", Boolean, nullable=False),
    _epoch("valid_from", nullable=True),
    _epoch("valid_until", nullable=True),
    Column("managers", Text, nullable=False),
    Column("aliases", Text, nullable=False),
    Column("description", Text, nullable=False),
    UniqueConstraint("changeset_id", "account"),
    comment="an account as a changeset left it, whole",
)
entry_users = _table(
    "budget_entry_users",
    Column("entry_id", Id, ForeignKey("budget_entries.id"), primary_key=True),
    Column("user", Name, primary_key=True),
    Column("amount_kind", String(16), nullable=True),
    Column("amount", BigInteger, nullable=True),
    _epoch("valid_from", nullable=True),
    _epoch("valid_until", nullable=True),
    comment="the users of that account, as the same changeset left them",
)
recordings = _table(
    "recordings",
    _key(),
    Column("source", Name, nullable=False),
    _epoch("recorded_at"),
    comment="where and when a batch of runs came from",
)
runs = _table(
    "runs",
    _key(),
    _name("cluster_id"),
    Column("job_id", BigInteger, nullable=False),
    _epoch("start_at"),
    Column("revision", Integer, nullable=False),
    Column("replaces_id", Id, nullable=True),
    Column("recording_id", Id, nullable=False),
    _epoch("end_at", nullable=True),
    _epoch("submit_at"),
    _name("account_id"),
    _name("user_id"),
    _name("qos_id"),
    _name("partition_id"),
    _name("state_id"),
    _name("gpus_id"),
    Column("num_nodes", Integer, nullable=False),
    Column("suspended", BigInteger, nullable=False),
    Column("funded", SmallInteger, nullable=False),
    Column("min_runtime", BigInteger, nullable=True),
    _epoch("counts_from"),
    _epoch("counts_until"),
    _epoch("charged_until"),
    _epoch("eligible_at", nullable=True),
    Column("time_limit", BigInteger, nullable=True),
    UniqueConstraint("cluster_id", "job_id", "start_at", "revision"),
    # without the cluster: a ledger has few, and these four cost as much as all else of a new row
    Index(None, "counts_from"),
    Index(None, "counts_until"),
    # nothing is charged of the others
    Index(None, "charged_until", sqlite_where=_FUNDED),
    Index(None, "account_id", "charged_until", sqlite_where=_FUNDED),
    comment="every start of every job; a correction is a row with the next revision",
)
sums_states = _table(
    "sums_states",
    Column("cluster_id", Integer, primary_key=True, autoincrement=False),
    Column("digest", String(64), primary_key=True),
    _epoch("at"),
    Column("last_run_id", Id, nullable=False),
    Column("parameters", Text, nullable=False),
    Column("body", LargeBinary().with_variant(LONGBLOB, "mysql", "mariadb"), nullable=False),
    comment="cache of the sums in a window, so that a command need not add up a week",
)
cursors = _table(
    "cursors",
    Column("cluster_id", Integer, primary_key=True, autoincrement=False),
    _epoch("position"),
    comment="up to when the accounting has been read",
)
intents = _table(
    "intents",
    _key(),
    _name("cluster_id"),
    Column("job_id", BigInteger, nullable=False),
    _epoch("run_start"),
    _name("victim_account_id"),
    Column("for_job", BigInteger, nullable=True),
    _name("for_account_id"),
    Column("gpus", Integer, nullable=False),
    Column("reason", Text, nullable=False),
    _epoch("created_at"),
    Index(None, "cluster_id", "created_at"),
    comment="a requeue that the sweeper set out to do",
)
intent_steps = _table(
    "intent_steps",
    _key(),
    Column("intent_id", Id, ForeignKey("intents.id"), nullable=False),
    Column("step", String(16), nullable=False),
    _epoch("at"),
    _epoch("grace_until", nullable=True),
    Column("detail", Text, nullable=False),
    Index(None, "intent_id"),
    comment="how far it came; the last step is where it stands",
)
sweeps = _table(
    "sweeps",
    _key(),
    _name("cluster_id"),
    _epoch("at"),
    Column("milliseconds", BigInteger, nullable=False),
    Column("sentence", Text, nullable=False),
    Index(None, "cluster_id", "at"),
    comment="what each sweep said",
)
levels = _table(
    "levels",
    _key(),
    _name("cluster_id"),
    _epoch("at"),
    Column("account_id", Integer, nullable=True),
    _name("type_id"),
    Column("gpus", Integer, nullable=False),
    Index(None, "cluster_id", "at"),
    comment="GPUs that an account's funded jobs wait for; without account: that can be used. "
    "A row where a sweep saw another number than the one before",
)
leases = _table(
    "leases",
    Column("cluster_id", Integer, primary_key=True, autoincrement=False),
    Column("holder", Name, nullable=False),
    Column("token", BigInteger, nullable=False),
    _epoch("expires_at"),
    comment="which of several sidecars acts",
)
brakes = _table(
    "brakes",
    _key(),
    _name("cluster_id"),
    Column("paused", Boolean, nullable=False),
    Column("author", Name, nullable=False),
    Column("reason", Text, nullable=False),
    _epoch("at"),
    Index(None, "cluster_id"),
    comment="sbudget pause and resume; the last row counts",
)
session_notices = _table(
    "session_notices",
    Column("cluster_id", Integer, primary_key=True, autoincrement=False),
    Column("moment", BigInteger, primary_key=True, autoincrement=False),
    Column("job_id", BigInteger, primary_key=True, autoincrement=False),
    Column("kind", String(16), primary_key=True),
    _epoch("at"),
    Column("outcome", String(16), nullable=False),
    comment="sessions that were told of a coming moment, so that each is told once",
)
