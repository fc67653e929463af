"""What reports need: waiting and usable GPUs as sweeps saw them; when runs could have started.

Revision ID: 0003
"""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
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
    # MariaDB keeps each of these at once, so an upgrade that was killed has left some of them
    there = sa.inspect(op.get_bind())
    if not there.has_table("levels"):
        op.create_table(
            "levels",
            sa.Column("id", ID, autoincrement=True, nullable=False),
            sa.Column("cluster_id", sa.Integer(), nullable=False),
            sa.Column("at", sa.BigInteger(), nullable=False),
            sa.Column("account_id", sa.Integer(), nullable=True),
            sa.Column("type_id", sa.Integer(), nullable=False),
            sa.Column("gpus", sa.Integer(), nullable=False),
            sa.PrimaryKeyConstraint("id", name="pk_levels"),
            comment="GPUs that an account's funded jobs wait for; without account: that can be"
            " used. A row where a sweep saw another number than the one before",
            **OPTIONS,
        )
    op.create_index("ix_levels_cluster_id_at", "levels", ["cluster_id", "at"], if_not_exists=True)
    columns = {column["name"] for column in there.get_columns("runs")}
    for name in ("eligible_at", "time_limit"):
        if name not in columns:
            op.add_column("runs", sa.Column(name, sa.BigInteger(), nullable=True))


def downgrade() -> None:
    raise NotImplementedError("restore the backup that was made before the upgrade")
