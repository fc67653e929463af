"""The table of admission cases and the snapshot that it is about, for both languages."""

import itertools
import json
from pathlib import Path
from typing import Any

from slurm_budget.state.snapshot import AccountFacts, Policy, Snapshot, UserFacts

ROOT = Path(__file__).parents[2]
NOW = 1_700_000_000
GPU_HOUR = 3_600_000
_TABLE = json.loads((ROOT / "tests/data/admission_cases.json").read_text())
CASES: list[dict[str, Any]] = _TABLE["cases"]
IDS = [case["name"] for case in CASES]


def _ms(hours: float) -> int:
    return round(hours * GPU_HOUR)


def _amounts(given: dict[str, Any]) -> dict[str, Any]:
    out: dict[str, Any] = {name: _ms(given[name]) for name in ("budget", "balance", "fast")}
    out["back_at"] = NOW + given["back_in"] if "back_in" in given else None
    return out


def snapshot(policy: dict[str, Any] | None = None, age: int = 10) -> Snapshot:
    """The table's accounts, with these settings besides the table's own."""
    accounts = {
        a["name"]: AccountFacts(
            a["name"],
            a["parent"],
            a.get("qos", "funded-" + a["name"]),
            **_amounts(a),
            gres=a.get("gres", "gres/gpu"),
        )
        for a in _TABLE["accounts"]
    }
    users = {
        (u["account"], u["user"]): UserFacts(u["account"], u["user"], **_amounts(u))
        for u in _TABLE["users"]
    }
    settings = Policy(**{**_TABLE["policy"], **(policy or {})})
    return Snapshot("c1", NOW - age, NOW - age, settings, accounts, users, _TABLE["aliases"])


def snapshot_of(case: dict[str, Any]) -> Snapshot | None:
    """The snapshot that a case is about; None: the file is not there."""
    kind = case.get("snapshot", "good")
    age = {"good": 10, "stale": 901, "future": -86400, "missing": 0}[kind]
    return None if kind == "missing" else snapshot(case.get("policy"), age)


def promised_of(case: dict[str, Any]) -> dict[str, int]:
    return {name: _ms(hours) for name, hours in case.get("promised", {}).items()}


def expected_changes(case: dict[str, Any]) -> dict[str, Any]:
    """The fields of job_desc that must have been written, the marker among them."""
    expect = case["expect"]
    changes = dict(expect["set"])
    if expect["marker"] is not None:
        changes["admin_comment"] = expect.get("admin_comment", "sbudget:1:" + expect["marker"])
    return changes


def with_budget(account: str, hours: float, **policy: Any) -> Snapshot:
    """The table's snapshot, with that much left in an account and in what is above it."""
    base = snapshot({"fast_lane_gpu_time": 0, **policy})
    accounts = dict(base.accounts)
    accounts[account] = accounts[account]._replace(balance=_ms(hours))
    return base._replace(accounts=accounts)


def names_of_one_hash() -> list[str]:
    """64 names of twelve letters that are one number modulo the prime of the snapshot's index:
    16 times that is 2^48 - 256 - 16, so three letters can be moved in step."""
    names = []
    for moves in itertools.product((0, 1), repeat=6):
        letters = [*b"bbbbbbzzzzzz"]
        for place, move in enumerate(moves):
            letters[place] += move
            letters[place + 5] -= move
            letters[place + 6] -= 16 * move
        names.append(bytes(letters).decode())
    return names
