"""Answers as JSON, version 1 of each: GPU-milliseconds as integers, epoch seconds, null where
something is not known."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from slurm_budget.core.balance import Balance
from slurm_budget.core.fit import Fit
from slurm_budget.state.answers import Answer


def why_json(answer: Answer, now: int, unread: Sequence[str]) -> str:
    return _text(
        "sbudget-why-1",
        now,
        unread,
        {
            "job": answer.job,
            "state": answer.state,
            "class": answer.class_ or None,
            "why": answer.why or None,
            "reason": answer.reason or None,
            "protected_until": answer.protected_until,
            "sentences": list(answer.sentences),
        },
    )


def balances_json(found: Iterable[Balance], now: int, unread: Sequence[str]) -> str:
    return _text("sbudget-balance-1", now, unread, {"accounts": [_account(one) for one in found]})


def fit_json(fit: Fit, now: int, unread: Sequence[str]) -> str:
    return _text(
        "sbudget-fit-1",
        now,
        unread,
        {
            "verdict": fit.verdict,
            "why": fit.why,
            "as_of": fit.as_of,
            "nodes": None if fit.nodes is None else list(fit.nodes),
            "requeues": list(fit.requeues),
            "sentences": list(fit.sentences),
        },
    )


def _account(one: Balance) -> dict[str, Any]:
    facts = one.facts
    return {
        "account": facts.name,
        "budget": facts.budget if facts.qos else None,
        "left": facts.balance if facts.qos else None,
        "left_for_small_jobs": facts.fast if facts.qos else None,
        "charged": one.charged,
        "back_at": facts.back_at,
        "as_of": one.as_of,
        "above": [{"account": a.name, "left": a.balance, "budget": a.budget} for a in one.above],
        "own": None if one.own is None else {"left": one.own.balance, "budget": one.own.budget},
        "protected": None
        if one.runs is None
        else [
            {"job": r.job, "user": r.user, "account": r.account, "gpus": r.gpus, "until": r.until}
            for r in one.runs
        ],
        "past_protection_gpus": None if one.runs is None else one.past_gpus,
        "waiting_jobs": None if one.runs is None else one.waiting_jobs,
        "waiting_gpus": None if one.runs is None else one.waiting_gpus,
        "returns": None
        if one.returns is None
        else [{"within": seconds, "amount": amount} for seconds, amount in one.returns],
    }


def _text(schema: str, now: int, unread: Sequence[str], rest: dict[str, Any]) -> str:
    return json.dumps({"schema": schema, "now": now, **rest, "unread": list(unread)}, indent=2)
