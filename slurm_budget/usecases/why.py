"""Gathers what `sbudget why` answers from: queue, accounting, snapshot, and the ledger if it can be
read."""

from typing import TYPE_CHECKING

from slurm_budget.core import why
from slurm_budget.core.holders import Clock
from slurm_budget.errors import SlurmUnreachable
from slurm_budget.settings import Settings
from slurm_budget.state.answers import Answer, Known, Outlook, Past
from slurm_budget.state.intent import Intent
from slurm_budget.text import jobids
from slurm_budget.usecases.look import OpenLedger, Sight, look
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
        outlook=_outlook(sight),
        past_days=PAST_DAYS,
    )
    return why.answer(job, known, clock), sight.unread


def _past(slurm: "CommandSlurm", job: str, now: int) -> list[Past]:
    return slurm.past(job, now - PAST_DAYS * 86400, now + 1)


def _intents(sight: Sight) -> list[Intent] | None:
    ledger, seen = sight.ledger, sight.world or sight.facts
    if ledger is None or seen is None:
        return None
    cluster = seen.cluster
    return sight.attempt(
        "ledger", lambda: ledger.intents_since(cluster, sight.now - PAST_DAYS * 86400)
    )


def _outlook(sight: Sight) -> Outlook | None:
    found = sight.decision
    if found is None:
        return None
    return Outlook(
        victims={c.job_id: tuple(run.job_id for run in c.victims) for c in found.choices},
        going={requeue.job.id: requeue.reason for requeue in found.requeues},
        left={leave.job_id: leave.reason for leave in found.left},
        paused=sight.paused,
    )
