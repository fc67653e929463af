"""What sessions were told, so that each hears of a moment once."""

from sqlalchemy import Connection, insert, select

from slurm_budget.ledger.schema import session_notices as table
from slurm_budget.state.session import Notice


def record(connection: Connection, cluster: int, notice: Notice, at: int, outcome: str) -> None:
    ignore = "OR IGNORE" if connection.dialect.name == "sqlite" else "IGNORE"
    row = {
        "cluster_id": cluster,
        "moment": notice.at,
        "job_id": notice.job_id,
        "kind": notice.kind,
        "at": at,
        "outcome": outcome,
    }
    connection.execute(insert(table).prefix_with(ignore).values(row))


def since(connection: Connection, cluster: int, moment: int) -> set[tuple[int, str, int]]:
    """Keys (state.session.Notice) of moments at or after an epoch second."""
    query = select(table.c.job_id, table.c.kind, table.c.moment).where(
        table.c.cluster_id == cluster, table.c.moment >= moment
    )
    return {(row.job_id, row.kind, row.moment) for row in connection.execute(query)}
