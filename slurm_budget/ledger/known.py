"""Every name that the ledger has ever seen: of now, of former budgets, and of runs.

Reads all runs of a cluster, so ask only where a name is not among today's budgets.
"""

import json

from sqlalchemy import Column, Connection, select

from slurm_budget.ledger.schema import changesets, entries, entry_users, names, runs, sweeps


def clusters(connection: Connection) -> set[str]:
    """Those with budgets, runs or sweeps."""
    out: set[str] = set()
    for column in (changesets.c.cluster_id, runs.c.cluster_id, sweeps.c.cluster_id):
        numbers = select(column).distinct()
        out.update(connection.scalars(select(names.c.text).where(names.c.id.in_(numbers))))
    return out


def accounts(connection: Connection, cluster: int) -> set[str]:
    """Accounts and their former names, in budgets and in runs."""
    out = _of_runs(connection, cluster, runs.c.account_id)
    of_cluster = (
        select(entries.c.account, entries.c.aliases)
        .join(changesets, changesets.c.id == entries.c.changeset_id)
        .where(changesets.c.cluster_id == cluster)
        .distinct()
    )
    for row in connection.execute(of_cluster):
        out |= {row.account, *json.loads(row.aliases)}
    return out


def users(connection: Connection, cluster: int) -> set[str]:
    """Users in budgets and in runs."""
    of_budgets = (
        select(entry_users.c.user)
        .join(entries, entries.c.id == entry_users.c.entry_id)
        .join(changesets, changesets.c.id == entries.c.changeset_id)
        .where(changesets.c.cluster_id == cluster)
        .distinct()
    )
    found = _of_runs(connection, cluster, runs.c.user_id)
    return found | set(connection.scalars(of_budgets))


def _of_runs(connection: Connection, cluster: int, column: Column[int]) -> set[str]:
    numbers = select(column).where(runs.c.cluster_id == cluster).distinct()
    return set(connection.scalars(select(names.c.text).where(names.c.id.in_(numbers))))
