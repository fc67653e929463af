"""`sbudget ledger check`: is what the ledger holds whole, and are its caches right?

Each check is a query whose rows are faults; a sound ledger gives none. Nothing is changed.
"""

import json
from collections.abc import Iterator

from sqlalchemy import Connection, text

from slurm_budget.core import budget_rules
from slurm_budget.core.window import Window
from slurm_budget.ledger import budgets
from slurm_budget.ledger.names import Names
from slurm_budget.ledger.sums import SumsReader, digest

_NUMBERED = ("cluster", "account", "user", "qos", "partition", "state", "gpus")

_CHECKS = {
    "a correction does not name the row before it": """
        SELECT r.id, r.job_id FROM runs r
        LEFT JOIN runs o ON o.id = r.replaces_id AND o.cluster_id = r.cluster_id
             AND o.job_id = r.job_id AND o.start_at = r.start_at AND o.revision = r.revision - 1
        WHERE (r.revision > 0 AND o.id IS NULL) OR (r.revision = 0 AND r.replaces_id IS NOT NULL)
    """,
    "what counts of a run is not what its times say": """
        SELECT id, job_id FROM runs
        WHERE counts_from <> start_at + suspended
           OR (end_at IS NOT NULL AND counts_until <>
               CASE WHEN end_at > counts_from THEN end_at ELSE counts_from END)
           OR (end_at IS NULL AND counts_until < 4611686018427387904)
           OR (funded = 0 AND charged_until <> counts_from)
           OR (funded = 1 AND charged_until <> CASE
               WHEN counts_from + COALESCE(min_runtime, 0) < counts_until
               THEN counts_from + COALESCE(min_runtime, 0) ELSE counts_until END)
    """,
    "a run names a recording that is not there": """
        SELECT r.id, r.job_id FROM runs r LEFT JOIN recordings n ON n.id = r.recording_id
        WHERE n.id IS NULL
    """,
    **{
        f"a run names a {what} that is not there": f"""
            SELECT r.id, r.job_id FROM runs r LEFT JOIN names n ON n.id = r.{what}_id
            WHERE n.id IS NULL
        """
        for what in _NUMBERED
    },
    "an intent has no step": """
        SELECT i.id, i.job_id FROM intents i LEFT JOIN intent_steps s ON s.intent_id = i.id
        WHERE s.id IS NULL
    """,
    "a changeset is based on one that came later": """
        SELECT id, base_id FROM budget_changesets WHERE base_id >= id
    """,
}


def faults(connection: Connection, names: Names, window: Window, now: int) -> Iterator[str]:
    """Every fault as a sentence. Where the rows are sound, the caches are compared with a fresh
    count, so this takes as long as reading the whole window."""
    found = list(_row_faults(connection))
    yield from found
    yield from _tree_faults(connection, names, window, now)
    if not found:
        yield from _cache_faults(connection, names)


def _row_faults(connection: Connection) -> Iterator[str]:
    if connection.dialect.name == "sqlite":
        for row in connection.execute(text("PRAGMA integrity_check(10)")):
            if row[0] != "ok":
                yield f"SQLite: {row[0]}"
        for row in connection.execute(text("PRAGMA foreign_key_check")):
            yield f"table {row[0]}: row {row[1]} points to nothing in {row[2]}"
    for what, query in _CHECKS.items():
        found = connection.execute(text(query + " LIMIT 6")).all()
        if found:
            shown = ", ".join(f"{row[0]} (job {row[1]})" for row in found[:5])
            more = ", ..." if len(found) > 5 else ""
            yield f"{what}: rows {shown}{more}"


def _tree_faults(connection: Connection, names: Names, window: Window, now: int) -> Iterator[str]:
    clusters = text("SELECT DISTINCT cluster_id FROM budget_changesets")
    for number in connection.scalars(clusters).all():
        cluster = names.text(connection, number)
        tree = budgets.tree(connection, cluster, number, budgets.latest(connection, number))
        for _, fault in budget_rules.faults(tree, window.budget_seconds, now):
            yield f"budgets of {cluster}: {fault.what}"


def _cache_faults(connection: Connection, names: Names) -> Iterator[str]:
    """A cached state of sums must be what a fresh count over the same runs gives."""
    for row in connection.execute(text("SELECT cluster_id, digest, parameters FROM sums_states")):
        parameters = json.loads(row.parameters)
        window = Window(**parameters["window"])
        weights = parameters["weights"]
        if digest(window, weights) != row.digest:
            yield f"the cache of sums {row.digest[:12]} does not say what it is for"
            continue
        reader = SumsReader(connection, names, row.cluster_id)
        cached = reader.load(window, weights)
        assert cached is not None
        moment = cached.tally.at
        kept = reader.bring_up(cached, window, weights, moment).tally.sums(1000)
        fresh = reader.afresh(window, weights, moment).tally.sums(1000)
        for figure in ("charge", "use"):
            one = {k: v for k, v in getattr(kept, figure).items() if v}
            two = {k: v for k, v in getattr(fresh, figure).items() if v}
            if one != two:
                wrong = sum(one.get(key) != two.get(key) for key in one.keys() | two.keys())
                yield (
                    f"the cache of sums is wrong for the {figure} of {wrong} users in "
                    f"{names.text(connection, row.cluster_id)}; `sbudget ledger rebuild` mends it"
                )
