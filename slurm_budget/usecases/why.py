"""Gathers what `sbudget why` answers from: queue, accounting, snapshot, and the ledger; where that
cannot be read, what the last sweep told everybody."""

from dataclasses import replace
from typing import TYPE_CHECKING

from slurm_budget.core import why
from slurm_budget.core.holders import Clock
from slurm_budget.errors import SlurmUnreachable
from slurm_budget.settings import Settings
from slurm_budget.state.answers import Answer, Known, Past
from slurm_budget.state.intent import Intent
from slurm_budget.text import jobids
from slurm_budget.usecases.look import OpenLedger, Sight, look, published_answers
from slurm_budget.usecases.policy import sweep_policy

if TYPE_CHECKING:
    from slurm_budget.slurm.port import CommandSlurm

PAST_DAYS = 30
"""How far back the accounting is asked: job ids are given anew after a while."""


def explain(
    slurm: "CommandSlurm",
    open_ledger: OpenLedger,
    settings: Settings,
    job: str,
    now: int,
    clock: Clock,
) -> tuple[Answer, list[str]]:
    """The answer, and what could not be read for it. BadInput where `job` is no id;
    SlurmUnreachable where neither the queue nor the accounting answers."""
    wanted = jobids.parse(job)
    sight = look(slurm, open_ledger, settings, now, deeply=True)
    asked = job if wanted.het is None else str(wanted.base + wanted.het)
    rows = sight.attempt("accounting", lambda: _past(slurm, asked, now))
    if sight.jobs is None and rows is None:
        raise sight.failed.get("slurm") or SlurmUnreachable("Slurm does not answer")
    known = Known(
        now=now,
        policy=sweep_policy(settings),
        jobs=sight.jobs,
        nodes=sight.nodes,
        past=rows,
        facts=sight.facts,
        intents=_intents(sight),
        outlook=sight.decision.outlook(sight.paused) if sight.decision else None,
        past_days=PAST_DAYS,
    )
    if "ledger" in sight.failed:
        known = _with_told(known, sight, settings)
    return why.answer(job, known, clock), sight.unread


def _past(slurm: "CommandSlurm", job: str, now: int) -> list[Past]:
    return slurm.past(job, now - PAST_DAYS * 86400, now + 1)


def _intents(sight: Sight) -> list[Intent] | None:
    ledger, seen = sight.ledger, sight.world or sight.facts
    if ledger is None or seen is None:
        return None
    cluster, since = seen.cluster, sight.now - PAST_DAYS * 86400
    return sight.attempt("ledger", lambda: ledger.intents_since(cluster, since))


def _with_told(known: Known, sight: Sight, settings: Settings) -> Known:
    """What the last sweep told everybody, for want of the ledger."""
    found = sight.attempt("sweep", lambda: published_answers(settings, sight.now))
    if found is None:
        return known
    del sight.failed["ledger"]  # nothing of the answer is missing
    return replace(
        known,
        intents=found.intents,
        intents_cover=(found.since, found.observed_at),
        outlook=found.outlook,
    )
