"""The facts that the submit hook decides by, as the sweep last published them.

`sbudget-admit` reads them and has 40 ms in all, a quarter of which loading `dataclasses` would
take: hence named tuples here, and in what it imports.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if TYPE_CHECKING:
    from slurm_budget.state.jobs import Class

NOTHING: Mapping[Any, Any] = MappingProxyType({})


class AccountFacts(NamedTuple):
    """One account. GPU-time in weighted GPU-milliseconds.

    `qos` is the funded QOS, empty where the account has no budget. `balance` is what ordinary jobs
    may still promise (less what a waiting job is saving for; may be negative); `fast` what small
    jobs may. `back_at` is when use that leaves the window next raises a spent balance.
    `gres` says which GPUs the budget counts.
    """

    name: str
    parent: str | None
    qos: str
    budget: int
    balance: int
    fast: int
    back_at: int | None = None
    gres: str = "gres/gpu"


class UserFacts(NamedTuple):
    """A user in an account who has a budget of their own."""

    account: str
    user: str
    budget: int
    balance: int
    fast: int
    back_at: int | None = None


class Policy(NamedTuple):
    """The settings that a decision needs. Durations in seconds, weights in thousandths.

    `node_gpus` is what a node has where all are alike; where they are not, `partition_gpus` says it
    for each partition that has GPUs (the fewest of its GPU nodes), and partitions left out have
    none. `job_requeue` is slurm.conf's JobRequeue. `operators` are the uids of Slurm's operators
    and administrators, whose changes to a job the hook lets pass. `several_nodes` are the
    partitions that start no job on one node (MinNodes).
    """

    default_class: Class = "preemptible"
    min_runtime: int = 3600
    min_runtime_cap: int = 28800
    on_exhausted: Literal["preemptible", "wait", "reject"] = "preemptible"
    messages: bool = True
    max_age: int = 900
    fast_lane_gpu_time: int = 7200
    weights: Mapping[str, int] = NOTHING
    node_gpus: int = 0
    topology: bool = False
    preemptible_qos: str = "preemptible"
    partition_gpus: Mapping[str, int] = NOTHING
    job_requeue: bool = True
    operators: tuple[int, ...] = ()
    several_nodes: tuple[str, ...] = ()


class Snapshot(NamedTuple):
    """What the sweep of `observed_at` found. Promises made later than that are not in it yet."""

    cluster: str
    observed_at: int
    published_at: int
    policy: Policy
    accounts: Mapping[str, AccountFacts]
    users: Mapping[tuple[str, str], UserFacts] = NOTHING
    aliases: Mapping[str, str] = NOTHING
