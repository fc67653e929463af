"""What sessions were told.

Revision ID: 0002
"""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

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
    if sa.inspect(op.get_bind()).has_table("session_notices"):
        return  # MariaDB keeps a table at once; an upgrade was killed behind this one
    op.create_table(
        "session_notices",
        sa.Column("cluster_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("moment", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("job_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("outcome", sa.String(length=16), nullable=False),
        sa.PrimaryKeyConstraint(
            "cluster_id", "moment", "job_id", "kind", name="pk_session_notices"
        ),
        comment="sessions that were told of a coming moment, so that each is told once",
        **OPTIONS,
    )


def downgrade() -> None:
    raise NotImplementedError("restore the backup that was made before the upgrade")
