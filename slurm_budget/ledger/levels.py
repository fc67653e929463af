"""Levels that sweeps saw: GPUs that jobs wait for, and GPUs that can be used.

Only what changed is written, save by the first sweep of an hour, which writes all that is not 0. So
what held at a moment is found in the rows of the last hour that has any, however long the history.
"""

from collections.abc import Iterator

from sqlalchemy import Connection, func, insert, select

from slurm_budget.core.demand import Levels, changed
from slurm_budget.ledger.names import Names
from slurm_budget.ledger.schema import levels as table
from slurm_budget.state.report import Level

HOUR = 3600


def write(connection: Connection, names: Names, cluster: int, now: int, seen: Levels) -> None:
    """Write down what a sweep saw."""
    before = {
        (level.account, level.kind): level.gpus
        for level in _since_full(connection, names, cluster, now)
    }
    last = connection.scalar(select(func.max(table.c.at)).where(table.c.cluster_id == cluster))
    new = changed(before, seen)
    if last is None or last // HOUR != now // HOUR:
        new |= {key: gpus for key, gpus in seen.items() if gpus}
    if not new:
        return
    rows = [
        {
            "cluster_id": cluster,
            "at": now,
            "account_id": None if account is None else names.number(connection, account),
            "type_id": names.number(connection, kind),
            "gpus": gpus,
        }
        for (account, kind), gpus in new.items()
    ]
    connection.execute(insert(table), rows)


def _since_full(connection: Connection, names: Names, cluster: int, at: int) -> Iterator[Level]:
    """The rows up to `at` that say all that held then, in order."""
    mine = table.c.cluster_id == cluster
    last = connection.scalar(select(func.max(table.c.at)).where(mine, table.c.at <= at))
    if last is not None:
        yield from _between(connection, names, cluster, last // HOUR * HOUR, at + 1)


def between(
    connection: Connection, names: Names, cluster: int, start: int, end: int
) -> Iterator[Level]:
    """What held at `start`, then what changed until `end`, in order; nothing is said twice of a
    moment. Rows that only repeat what held are among them."""
    yield from _since_full(connection, names, cluster, start)
    yield from _between(connection, names, cluster, start + 1, end)


def _between(
    connection: Connection, names: Names, cluster: int, start: int, end: int
) -> Iterator[Level]:
    query = (
        select(table.c.at, table.c.account_id, table.c.type_id, table.c.gpus)
        .where(table.c.cluster_id == cluster, table.c.at >= start, table.c.at < end)
        .order_by(table.c.at, table.c.id)
    )
    for at, account, kind, gpus in connection.execute(query).all():
        name = None if account is None else names.text(connection, account)
        yield Level(at, name, names.text(connection, kind), gpus)
