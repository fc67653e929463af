"""The first schema.

Revision ID: 0001
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mysql import LONGBLOB

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
NAME = sa.String(255)
BLOB = sa.LargeBinary().with_variant(LONGBLOB, "mysql", "mariadb")
OPTIONS = {
    f"{dialect}_{option}": value
    for dialect in ("mysql", "mariadb")
    for option, value in (
        ("engine", "InnoDB"),
        ("charset", "utf8mb4"),
        ("collate", "utf8mb4_bin"),
    )
}


def upgrade() -> None:

    op.create_table(
        "brakes",
        sa.Column("id", ID, autoincrement=True, nullable=False),
        sa.Column("cluster_id", sa.Integer(), nullable=False),
        sa.Column("paused", sa.Boolean(), nullable=False),
        sa.Column("author", NAME, nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_brakes"),
        comment="sbudget pause and resume; the last row counts",
        **OPTIONS,
    )
    op.create_index("ix_brakes_cluster_id", "brakes", ["cluster_id"])
    op.create_table(
        "budget_changesets",
        sa.Column("id", ID, autoincrement=True, nullable=False),
        sa.Column("cluster_id", sa.Integer(), nullable=False),
        sa.Column("base_id", ID, nullable=True),
        sa.Column("undoes_id", ID, nullable=True),
        sa.Column("author", NAME, nullable=False),
        sa.Column("acting_as", NAME, nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("made_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_budget_changesets"),
        comment="who changed budgets, when, why, and what they had seen (base)",
        **OPTIONS,
    )
    op.create_index(
        "ix_budget_changesets_cluster_id_made_at", "budget_changesets", ["cluster_id", "made_at"]
    )
    op.create_table(
        "cursors",
        sa.Column("cluster_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("cluster_id", name="pk_cursors"),
        comment="up to when the accounting has been read",
        **OPTIONS,
    )
    op.create_table(
        "intents",
        sa.Column("id", ID, autoincrement=True, nullable=False),
        sa.Column("cluster_id", sa.Integer(), nullable=False),
        sa.Column("job_id", sa.BigInteger(), nullable=False),
        sa.Column("run_start", sa.BigInteger(), nullable=False),
        sa.Column("victim_account_id", sa.Integer(), nullable=False),
        sa.Column("for_job", sa.BigInteger(), nullable=True),
        sa.Column("for_account_id", sa.Integer(), nullable=False),
        sa.Column("gpus", sa.Integer(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_intents"),
        comment="a requeue that the sweeper set out to do",
        **OPTIONS,
    )
    op.create_index("ix_intents_cluster_id_created_at", "intents", ["cluster_id", "created_at"])
    op.create_table(
        "leases",
        sa.Column("cluster_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("holder", NAME, nullable=False),
        sa.Column("token", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("cluster_id", name="pk_leases"),
        comment="which of several sidecars acts",
        **OPTIONS,
    )
    op.create_table(
        "meta",
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_meta"),
        comment="whose database this is; the row write-lock is what writers queue at",
        **OPTIONS,
    )
    op.create_table(
        "names",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("text", NAME, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_names"),
        sa.UniqueConstraint("text", name="uq_names_text"),
        comment="texts that repeat: clusters, accounts, users, QOS, partitions, states, GPU sets",
        **OPTIONS,
    )
    op.create_table(
        "recordings",
        sa.Column("id", ID, autoincrement=True, nullable=False),
        sa.Column("source", NAME, nullable=False),
        sa.Column("recorded_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_recordings"),
        comment="where and when a batch of runs came from",
        **OPTIONS,
    )
    op.create_table(
        "runs",
        sa.Column("id", ID, autoincrement=True, nullable=False),
        sa.Column("cluster_id", sa.Integer(), nullable=False),
        sa.Column("job_id", sa.BigInteger(), nullable=False),
        sa.Column("start_at", sa.BigInteger(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("replaces_id", ID, nullable=True),
        sa.Column("recording_id", ID, nullable=False),
        sa.Column("end_at", sa.BigInteger(), nullable=True),
        sa.Column("submit_at", sa.BigInteger(), nullable=False),
        sa.Column("account_id", sa.Integer(), nullable=False),
        sa.Column("user_id", sa.Integer(), nullable=False),
        sa.Column("qos_id", sa.Integer(), nullable=False),
        sa.Column("partition_id", sa.Integer(), nullable=False),
        sa.Column("state_id", sa.Integer(), nullable=False),
        sa.Column("gpus_id", sa.Integer(), nullable=False),
        sa.Column("num_nodes", sa.Integer(), nullable=False),
        sa.Column("suspended", sa.BigInteger(), nullable=False),
        sa.Column("funded", sa.SmallInteger(), nullable=False),
        sa.Column("min_runtime", sa.BigInteger(), nullable=True),
        sa.Column("counts_from", sa.BigInteger(), nullable=False),
        sa.Column("counts_until", sa.BigInteger(), nullable=False),
        sa.Column("charged_until", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_runs"),
        sa.UniqueConstraint(
            "cluster_id", "job_id", "start_at", "revision", name="uq_runs_cluster_id"
        ),
        comment="every start of every job; a correction is a row with the next revision",
        **OPTIONS,
    )
    op.create_index("ix_runs_charged_until", "runs", ["charged_until"])
    op.create_index("ix_runs_counts_from", "runs", ["counts_from"])
    op.create_index("ix_runs_counts_until", "runs", ["counts_until"])
    op.create_table(
        "sums_states",
        sa.Column("cluster_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("last_run_id", ID, nullable=False),
        sa.Column("parameters", sa.Text(), nullable=False),
        sa.Column("body", BLOB, nullable=False),
        sa.PrimaryKeyConstraint("cluster_id", "digest", name="pk_sums_states"),
        comment="cache of the sums in a window, so that a command need not add up a week",
        **OPTIONS,
    )
    op.create_table(
        "sweeps",
        sa.Column("id", ID, autoincrement=True, nullable=False),
        sa.Column("cluster_id", sa.Integer(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("milliseconds", sa.BigInteger(), nullable=False),
        sa.Column("sentence", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_sweeps"),
        comment="what each sweep said",
        **OPTIONS,
    )
    op.create_index("ix_sweeps_cluster_id_at", "sweeps", ["cluster_id", "at"])
    op.create_table(
        "budget_entries",
        sa.Column("id", ID, autoincrement=True, nullable=False),
        sa.Column("changeset_id", ID, nullable=False),
        sa.Column("account", NAME, nullable=False),
        sa.Column("removed", sa.Boolean(), nullable=False),
        sa.Column("parent", NAME, nullable=True),
        sa.Column("amount_kind", sa.String(length=16), nullable=True),
        sa.Column("amount", sa.BigInteger(), nullable=True),
        sa.Column("gres", NAME, nullable=False),
        sa.Column("overcommit", sa.Boolean(), nullable=False),
        sa.Column("valid_from", sa.BigInteger(), nullable=True),
        sa.Column("valid_until", sa.BigInteger(), nullable=True),
        sa.Column("managers", sa.Text(), nullable=False),
        sa.Column("aliases", sa.Text(), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["changeset_id"], ["budget_changesets.id"], name="fk_budget_entries_changeset_id"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_budget_entries"),
        sa.UniqueConstraint("changeset_id", "account", name="uq_budget_entries_changeset_id"),
        comment="an account as a changeset left it, whole",
        **OPTIONS,
    )
    op.create_table(
        "intent_steps",
        sa.Column("id", ID, autoincrement=True, nullable=False),
        sa.Column("intent_id", ID, nullable=False),
        sa.Column("step", sa.String(length=16), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("grace_until", sa.BigInteger(), nullable=True),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["intent_id"], ["intents.id"], name="fk_intent_steps_intent_id"),
        sa.PrimaryKeyConstraint("id", name="pk_intent_steps"),
        comment="how far it came; the last step is where it stands",
        **OPTIONS,
    )
    op.create_index("ix_intent_steps_intent_id", "intent_steps", ["intent_id"])
    op.create_table(
        "budget_entry_users",
        sa.Column("entry_id", ID, nullable=False),
        sa.Column("user", NAME, nullable=False),
        sa.Column("amount_kind", sa.String(length=16), nullable=True),
        sa.Column("amount", sa.BigInteger(), nullable=True),
        sa.Column("valid_from", sa.BigInteger(), nullable=True),
        sa.Column("valid_until", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(
            ["entry_id"], ["budget_entries.id"], name="fk_budget_entry_users_entry_id"
        ),
        sa.PrimaryKeyConstraint("entry_id", "user", name="pk_budget_entry_users"),
        comment="the users of that account, as the same changeset left them",
        **OPTIONS,
    )

    meta = sa.table("meta", sa.column("name"), sa.column("value"))
    op.bulk_insert(
        meta,
        [
            {"name": "application", "value": "slurm-budget"},
            {"name": "write-lock", "value": ""},
        ],
    )


def downgrade() -> None:
    raise NotImplementedError("restore the backup that was made before the upgrade")
