"""The lease: one row for each cluster, which says who may act. All of it inside a transaction that
the caller has open; who changes the row, or relies on it, locks it first.

A holder is known by its token, not by its name: two containers may both be `localhost:1`.
"""

from sqlalchemy import Connection, insert, select, update

from slurm_budget.errors import LeaseLost
from slurm_budget.ledger.schema import leases
from slurm_budget.state.lease import Lease

LONGEST = 3600
"""No lease is for longer than these seconds; one that seems to be was written by a clock that was
ahead, and counts as run out."""


def make(connection: Connection, cluster: int) -> None:
    """The row to queue at, held by nobody. A transaction of its own: of several who would make it
    and go on to `acquire`, MariaDB would throw some out as deadlocked."""
    ignore = "OR IGNORE" if connection.dialect.name == "sqlite" else "IGNORE"
    nobody = {"cluster_id": cluster, "holder": "", "token": 0, "expires_at": 0}
    connection.execute(insert(leases).prefix_with(ignore).values(nobody))


def find(connection: Connection, cluster: int, *, lock: bool = False) -> Lease | None:
    """The lease as it stands, run out or not; None before there ever was one. With `lock` it stays
    so until the transaction ends."""
    query = select(leases).where(leases.c.cluster_id == cluster)
    row = connection.execute(query.with_for_update() if lock else query).first()
    return None if row is None else Lease(row.holder, int(row.token), int(row.expires_at))


def acquire(connection: Connection, cluster: int, holder: str, now: int, ttl: int) -> int | None:
    """Take a lease that is free, with a higher token; None while somebody holds it."""
    old = find(connection, cluster, lock=True)
    assert old is not None, "make() comes first"
    if now < old.expires_at <= now + LONGEST:
        return None
    _set(connection, cluster, Lease(holder, old.token + 1, now + ttl))
    return old.token + 1


def renew(
    connection: Connection, cluster: int, holder: str, token: int, now: int, ttl: int
) -> bool:
    """Hold it for `ttl` more seconds, even when it ran out; False when another took it since."""
    old = find(connection, cluster, lock=True)
    if old is None or (old.holder, old.token) != (holder, token):
        return False
    _set(connection, cluster, Lease(holder, token, now + ttl))
    return True


def demand(connection: Connection, cluster: int, token: int) -> None:
    """Raise LeaseLost when somebody took the lease since `token`; until the transaction ends nobody
    can."""
    found = find(connection, cluster, lock=True)
    if found is None or found.token != token:
        raise LeaseLost(f"another sidecar took over: {found}")


def release(connection: Connection, cluster: int, token: int, now: int) -> None:
    """Let it run out now; another's lease is left alone."""
    connection.execute(
        update(leases)
        .where(leases.c.cluster_id == cluster, leases.c.token == token)
        .values(expires_at=now)
    )


def _set(connection: Connection, cluster: int, lease: Lease) -> None:
    connection.execute(
        update(leases)
        .where(leases.c.cluster_id == cluster)
        .values(holder=lease.holder, token=lease.token, expires_at=lease.expires_at)
    )
