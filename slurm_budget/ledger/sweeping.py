"""What sweeps keep: intents with their steps, what was said, and the brake."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from sqlalchemy import Connection, Select, func, insert, select

from slurm_budget.errors import BadInput
from slurm_budget.ledger.names import Names
from slurm_budget.ledger.schema import brakes, intent_steps, intents, sweeps
from slurm_budget.state.intent import CLOSED, Intent, Step


@dataclass(frozen=True, slots=True)
class Sweep:
    """One sweep that was; `seconds` is what it took."""

    at: int
    cluster: str
    sentence: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Totals:
    """Since the ledger began: sweeps that were, and requeues that were carried out with their GPUs,
    by the account that made way."""

    sweeps: int
    requeues: Mapping[str, int]
    gpus: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Brake:
    """`sbudget pause`: whether acting is paused, by whom and why."""

    paused: bool
    author: str
    reason: str
    at: int


def open_intent(connection: Connection, names: Names, intent: Intent) -> int:
    """Write an intent with its first step; `id` and `updated` of `intent` are not looked at."""
    done = connection.execute(
        insert(intents).values(
            cluster_id=names.number(connection, intent.cluster),
            job_id=intent.job_id,
            run_start=intent.run_start,
            victim_account_id=names.number(connection, intent.victim_account),
            for_job=intent.for_job,
            for_account_id=names.number(connection, intent.for_account),
            gpus=intent.gpus,
            reason=intent.reason,
            created_at=intent.created,
        )
    )
    key = done.inserted_primary_key
    assert key is not None
    number = int(key[0])
    add_step(connection, number, intent.step, intent.created, intent.detail, intent.grace_until)
    return number


def add_step(
    connection: Connection, number: int, step: Step, now: int, detail: str, grace_until: int | None
) -> None:
    connection.execute(
        insert(intent_steps).values(
            intent_id=number, step=step, at=now, detail=detail, grace_until=grace_until
        )
    )


def advance(
    connection: Connection, number: int, step: Step, now: int, detail: str, grace_until: int | None
) -> None:
    """Add a step; without a new `grace_until` the old one stays."""
    last = connection.execute(
        select(intent_steps)
        .where(intent_steps.c.intent_id == number)
        .order_by(intent_steps.c.id.desc())
        .limit(1)
    ).first()
    if last is None:
        raise _no_intent(number)
    if last.step in CLOSED:
        raise BadInput(
            f"intent {number} is {last.step} already and cannot become {step}",
            mend="open a new intent",
        )
    add_step(
        connection,
        number,
        step,
        now,
        detail,
        last.grace_until if grace_until is None else grace_until,
    )


def cluster_of(connection: Connection, number: int) -> int:
    """The number of an intent's cluster."""
    found = connection.scalar(select(intents.c.cluster_id).where(intents.c.id == number))
    if found is None:
        raise _no_intent(number)
    return int(found)


def _no_intent(number: int) -> BadInput:
    return BadInput(f"there is no intent {number}", mend="see `sbudget report requeues`")


def _with_last_step(cluster: int) -> Select[Any]:
    last = (
        select(func.max(intent_steps.c.id).label("id"))
        .group_by(intent_steps.c.intent_id)
        .subquery()
    )
    return (
        select(
            intents,
            intent_steps.c.step,
            intent_steps.c.at.label("updated_at"),
            intent_steps.c.detail,
            intent_steps.c.grace_until,
        )
        .join(intent_steps, intent_steps.c.intent_id == intents.c.id)
        .join(last, last.c.id == intent_steps.c.id)
        .where(intents.c.cluster_id == cluster)
        .order_by(intents.c.id)
    )


def find_intents(
    connection: Connection,
    names: Names,
    cluster: str,
    *,
    only_open: bool = False,
    since: int | None = None,
    touched_since: int | None = None,
) -> list[Intent]:
    """Intents of a cluster, oldest first."""
    number = names.find(connection, cluster)
    if number is None:
        return []
    query = _with_last_step(number)
    if only_open:
        query = query.where(intent_steps.c.step.not_in(CLOSED))
    if since is not None:
        query = query.where(intents.c.created_at >= since)
    if touched_since is not None:
        query = query.where(intent_steps.c.at >= touched_since)
    return [
        Intent(
            id=row.id,
            cluster=cluster,
            job_id=row.job_id,
            run_start=row.run_start,
            victim_account=names.text(connection, row.victim_account_id),
            for_job=row.for_job,
            for_account=names.text(connection, row.for_account_id),
            gpus=row.gpus,
            step=cast(Step, row.step),
            reason=row.reason,
            created=row.created_at,
            updated=row.updated_at,
            grace_until=row.grace_until,
            detail=row.detail,
        )
        for row in connection.execute(query)
    ]


def record_sweep(
    connection: Connection, cluster: int, at: int, sentence: str, seconds: float
) -> None:
    connection.execute(
        insert(sweeps).values(
            cluster_id=cluster, at=at, sentence=sentence, milliseconds=round(seconds * 1000)
        )
    )


def last_sweeps(
    connection: Connection, names: Names, count: int, cluster: int | None
) -> list[Sweep]:
    """The last sweeps, newest first."""
    query = select(sweeps).order_by(sweeps.c.id.desc()).limit(count)
    if cluster is not None:
        query = query.where(sweeps.c.cluster_id == cluster)
    return [
        Sweep(
            row.at,
            names.text(connection, row.cluster_id),
            row.sentence,
            row.milliseconds / 1000,
        )
        for row in connection.execute(query)
    ]


def totals(connection: Connection, names: Names, cluster: int) -> Totals:
    """Counts over everything; a requeue counts once its command was sent."""
    count = select(func.count()).select_from(sweeps).where(sweeps.c.cluster_id == cluster)
    sent = select(intent_steps.c.intent_id).where(intent_steps.c.step == "requeued").distinct()
    rows = connection.execute(
        select(intents.c.victim_account_id, func.count(), func.sum(intents.c.gpus))
        .where(intents.c.cluster_id == cluster, intents.c.id.in_(sent))
        .group_by(intents.c.victim_account_id)
    ).all()
    by_name = {names.text(connection, number): (many, gpus) for number, many, gpus in rows}
    return Totals(
        sweeps=int(connection.scalar(count) or 0),
        requeues={name: int(many) for name, (many, _) in by_name.items()},
        gpus={name: int(gpus) for name, (_, gpus) in by_name.items()},
    )


def newest_sweep(connection: Connection, cluster: int) -> tuple[int | None, int | None]:
    """The highest time of any sweep, and the first time recorded after that sweep."""
    of_cluster = sweeps.c.cluster_id == cluster
    newest = connection.execute(
        select(sweeps.c.at, sweeps.c.id)
        .where(of_cluster)
        .order_by(sweeps.c.at.desc(), sweeps.c.id.desc())
        .limit(1)
    ).first()
    if newest is None:
        return None, None
    after = select(sweeps.c.at).where(of_cluster, sweeps.c.id > newest.id)
    return newest.at, connection.scalar(after.order_by(sweeps.c.id).limit(1))


def brake(connection: Connection, cluster: int) -> Brake | None:
    """What pause or resume last said."""
    row = connection.execute(
        select(brakes).where(brakes.c.cluster_id == cluster).order_by(brakes.c.id.desc()).limit(1)
    ).first()
    return None if row is None else Brake(bool(row.paused), row.author, row.reason, row.at)
