"""Sums of a window, kept up: a living process pays for what changed, a new one starts from a cache.

Three steps lead to the sums at `now`: a first count (by one query over the window, or from the
cache in `sums_states`), the runs that were written since, and the runs of which time has passed an
end.
"""

import hashlib
import json
import zlib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import Connection, and_, func, select, text

from slurm_budget.core.tally import Tally
from slurm_budget.core.weights import rates
from slurm_budget.core.window import Scale, Window
from slurm_budget.ledger.counted import CountedReader, columns
from slurm_budget.ledger.names import Names
from slurm_budget.ledger.runs import FIRST, KEPT, NOT_REPLACED
from slurm_budget.ledger.schema import runs as table
from slurm_budget.ledger.schema import sums_states

AFRESH = 50_000
"""More new rows than this are quicker counted afresh."""
FAR = 16
"""Over more than this part of the window, counting afresh is quicker than moving."""
AT_ONCE = 10_000
"""Rows that are fetched together."""
SAVE_AFTER = 5_000
"""Runs that may be visited before the cache is written again."""

# Runs that lie wholly in the window need no more than sums of lengths. A `+` keeps the databases
# from using an index where reading the rows in their order is many times as fast, and one packed
# key sorts faster than three columns.
_BITS = 21
_PACKED = f"(r.account_id << {2 * _BITS}) | (r.user_id << {_BITS}) | r.gpus_id"
_INSIDE = f"""
  FROM runs r WHERE r.id >= :first AND +r.cluster_id = :cluster
    AND +r.counts_from > :edge AND +r.counts_until <= :now AND {KEPT}
"""
_WHOLE = f"""
SELECT packed, SUM(length * funded), SUM(length * (1 - funded)), SUM(charged) FROM (
  SELECT {_PACKED} AS packed, r.funded, r.counts_until - r.counts_from AS length,
         r.charged_until - r.counts_from AS charged {_INSIDE}
) whole GROUP BY packed
"""
# SQLite sorts to group, which takes twice as long as adding up in a dict, if a row is but two
# numbers: the key with the class, and both lengths in one, far enough apart for their sums
_APART = 41
_ROWS = f"""
SELECT (({_PACKED}) << 1) | r.funded,
       (r.counts_until - r.counts_from) | ((r.charged_until - r.counts_from) << {_APART}) {_INSIDE}
"""
_CUT = f"""
SELECT {columns("r")} FROM runs r
WHERE r.id >= :first AND +r.cluster_id = :cluster AND +r.counts_until > :edge
  AND +r.counts_from <= :now AND (r.counts_from <= :edge OR r.counts_until > :now)
  AND {KEPT}
"""
# nothing of a preemptible run is charged: its `charged_until` is its `counts_from`
_ENDS = (("counts_from", ""), ("counts_until", ""), ("charged_until", " AND funded = 1"))


@dataclass
class Running:
    """A tally with the last row that is in it, and what it has cost since it was saved."""

    tally: Tally
    last_run: int
    unsaved: int = 0


def parameters(window: Window, weights: Mapping[str, int]) -> str:
    """What a cached state depends on, besides the runs."""
    return json.dumps({"window": asdict(window), "weights": dict(weights)}, sort_keys=True)


def digest(window: Window, weights: Mapping[str, int]) -> str:
    """The same, short enough for a key."""
    return hashlib.sha256(parameters(window, weights).encode()).hexdigest()


class SumsReader:
    """Works in one reading transaction."""

    def __init__(self, connection: Connection, names: Names, cluster: int) -> None:
        self.connection = connection
        self.names = names
        self.cluster = cluster
        self._reader = CountedReader(connection, names)

    def bring_up(
        self, state: Running | None, window: Window, weights: Mapping[str, int], now: int
    ) -> Running:
        """The state at `now`, from an older one where there is one."""
        last = self._last_run()
        if state is None:
            state = self.load(window, weights)
        if (
            state is None
            or not state.tally.can_move(now)
            or state.last_run > last
            or abs(now - state.tally.at) > window.reach // FAR
            or self._new_rows(state.last_run) > AFRESH
        ):
            return self.afresh(window, weights, now)
        if last > state.last_run:
            self._add_new(state, last)
        self._move(state, now)
        return state

    def _last_run(self) -> int:
        """Of any cluster: it costs nothing, and rows become visible in the order of their ids."""
        return self.connection.scalar(select(func.max(table.c.id))) or 0

    def _new_rows(self, after: int) -> int:
        query = select(table.c.id).where(table.c.id > after).limit(AFRESH + 1)
        counted = self.connection.scalar(select(func.count()).select_from(query.subquery()))
        return counted or 0

    def afresh(self, window: Window, weights: Mapping[str, int], now: int) -> Running:
        """Counted over the whole window: in a sliding one by a query, save for the runs that an end
        of the window cuts; in a decaying one run by run."""
        tally, last = Tally(window, weights, now), self._last_run()
        bounds = {"cluster": self.cluster, "now": now, "edge": now - window.reach}
        bounds["first"] = self.connection.scalar(text(FIRST), bounds) or last + 1
        runs = _CUT
        if window.kind == "decay":
            runs = _CUT.replace(" AND (r.counts_from <= :edge OR r.counts_until > :now)", "")
        else:
            self._add_whole(tally, bounds)
        self.names.learn(self.connection)  # no other query may come between streamed rows
        for row in self.connection.execute(text(runs).execution_options(yield_per=AT_ONCE), bounds):
            tally.add(self._reader.read(row))
        return Running(tally, last, SAVE_AFTER)

    def _add_whole(self, tally: Tally, bounds: Mapping[str, int]) -> None:
        """What lies wholly in the window, by account, user and set of GPUs."""
        mask = (1 << _BITS) - 1
        for packed, funded, preemptible, charged in self._whole(tally, bounds):
            account = self._reader.word(packed >> (2 * _BITS))
            user = self._reader.word(packed >> _BITS & mask)
            for kind, rate in rates(self._reader.gpus(packed & mask), tally.weights).items():
                tally.put_constants((account, user, kind), rate, charged, funded, preemptible)

    def _whole(
        self, tally: Tally, bounds: Mapping[str, int]
    ) -> Iterator[tuple[int, int, int, int]]:
        """(packed key, funded, preemptible, charged seconds); a key may come twice."""
        rows, reach = self._last_run() - bounds["first"] + 1, tally.window.reach
        fits = reach < 1 << (63 - _APART) and rows * reach < 1 << _APART
        if self.connection.dialect.name != "sqlite" or not fits:
            for row in self.connection.execute(text(_WHOLE), bounds).all():
                packed, funded, preemptible, charged = map(int, row)
                yield packed, funded, preemptible, charged
            return
        sums: dict[int, int] = defaultdict(int)
        raw: Any = self.connection.connection.driver_connection
        cursor = raw.execute(_ROWS, bounds)
        while some := cursor.fetchmany(AT_ONCE):
            for key, lengths in some:
                sums[key] += lengths
        for key, lengths in sums.items():
            length, charged = lengths & ((1 << _APART) - 1), lengths >> _APART
            yield (key >> 1, length, 0, charged) if key & 1 else (key >> 1, 0, length, 0)

    def _add_new(self, state: Running, last: int) -> None:
        query = text(
            f"SELECT {columns('r')}, o.id, {columns('o')}"
            " FROM runs r LEFT JOIN runs o ON o.id = r.replaces_id"
            " WHERE r.id > :after AND r.id <= :last AND +r.cluster_id = :cluster"
        )
        bounds = {"after": state.last_run, "last": last, "cluster": self.cluster}
        for row in self.connection.execute(query, bounds):
            if row[7] is not None:
                state.tally.add(self._reader.read(row[8:]), -1)
            state.tally.add(self._reader.read(row[:7]))
            state.unsaved += 1
        state.last_run = last

    def _move(self, state: Running, now: int) -> None:
        stretches = state.tally.passed(now)
        if not stretches:
            return
        pieces, bounds = [], {"cluster": self.cluster}
        for i, (low, high) in enumerate(stretches):
            bounds |= {f"low{i}": low, f"high{i}": high}
            pieces += [
                f"SELECT id FROM runs WHERE +cluster_id = :cluster AND {column} > :low{i}"
                f" AND {column} <= :high{i}{which}"
                for column, which in _ENDS
            ]
        query = text(
            f"SELECT {columns('r')} FROM ({' UNION '.join(pieces)}) passed"
            f" JOIN runs r ON r.id = passed.id WHERE {NOT_REPLACED}"
        )
        passed = [self._reader.read(row) for row in self.connection.execute(query, bounds)]
        state.unsaved += len(passed)
        state.tally.move(passed, now)

    def load(self, window: Window, weights: Mapping[str, int]) -> Running | None:
        """The state that was saved; None where there is none."""
        query = select(sums_states).where(
            sums_states.c.cluster_id == self.cluster,
            sums_states.c.digest == digest(window, weights),
        )
        row = self.connection.execute(query).first()
        if row is None:
            return None
        body = json.loads(zlib.decompress(row.body))
        tally = Tally(window, weights, row.at, Scale(window, body["base"]))
        for account, user, kind, *cell in body["cells"]:
            tally.load((account, user, kind), cell)
        return Running(tally, row.last_run_id)


def save(connection: Connection, cluster: int, state: Running) -> None:
    """Keep a state for the next process. A writing transaction; an older state never wins."""
    tally = state.tally
    own = {"cluster_id": cluster, "digest": digest(tally.window, tally.weights)}
    mine = and_(*(sums_states.c[name] == value for name, value in own.items()))
    there = connection.execute(
        select(sums_states.c.last_run_id, sums_states.c.at).where(mine)
    ).first()
    if there is not None and tuple(there) >= (state.last_run, tally.at):
        return
    cells = [[*key, *cell] for key, cell in tally.cells.items()]
    body = json.dumps({"base": tally.scale.base, "cells": cells}, separators=(",", ":"))
    values = {
        "at": tally.at,
        "last_run_id": state.last_run,
        "parameters": parameters(tally.window, tally.weights),
        "body": zlib.compress(body.encode(), 1),
    }
    if there is None:
        connection.execute(sums_states.insert().values(**own, **values))
    else:
        connection.execute(sums_states.update().where(mine).values(**values))
