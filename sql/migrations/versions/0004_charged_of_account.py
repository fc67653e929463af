"""What is charged of an account is found by an index.

Of funded rows alone, where the database can do that. So is from now on the index by which sums are
kept up: both together are about as large as that one was.

Revision ID: 0004
"""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

FUNDED = sa.text("funded = 1")


def upgrade() -> None:
    if op.get_bind().dialect.name == "sqlite":
        op.drop_index("ix_runs_charged_until", "runs")
        op.create_index("ix_runs_charged_until", "runs", ["charged_until"], sqlite_where=FUNDED)
    op.create_index(
        "ix_runs_account_id_charged_until",
        "runs",
        ["account_id", "charged_until"],
        sqlite_where=FUNDED,
        # MariaDB keeps it at once; an upgrade was killed behind it
        if_not_exists=True,
    )


def downgrade() -> None:
    raise NotImplementedError("restore the backup that was made before the upgrade")
