"""One job that is ours: its protection, its cost, and the verdicts that it can get.

core.admission chooses among them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from slurm_budget.core import admission_text as say
from slurm_budget.core.marker import Marker, merge
from slurm_budget.core.request import NO_VAL, Request
from slurm_budget.state.snapshot import NOTHING, Policy

if TYPE_CHECKING:
    from slurm_budget.state.jobs import Class, GpuCounts

ALL_GPUS = "gres/gpu"
ONE_GPU = 1000
"""The weight of a GPU that no setting names, in thousandths."""
MOST = 2**53
"""Amounts stop here: the last whole number up to which Lua 5.1 counts every one."""
SWITCH_WAIT = 300
"""Seconds that a job waits for nodes under one switch; Slurm's own limit for users."""


class Verdict(NamedTuple):
    """What is to be done with a job.

    `class_` None: it is not ours, and nothing but a QOS that does not exist is changed. `changes`
    are fields of job_desc to write; `messages` lines for the user; `promise` the GPU-milliseconds
    that each budget has promised by it.
    """

    class_: Class | None = None
    asked: Class | None = None
    why: str = ""
    min_runtime: int = 0
    changes: Mapping[str, str | int] = NOTHING
    messages: tuple[str, ...] = ()
    promise: Mapping[str, int] = NOTHING
    reject: bool = False


class Room(NamedTuple):
    """One budget that a job must fit. GPU-milliseconds; `left` and `balance` less the promises."""

    name: str
    label: str
    budget: int
    left: int
    balance: int
    cost: int
    back_at: int | None

    @property
    def slack(self) -> int:
        return self.left - self.cost


class Job:
    """Times in seconds. `min_runtime` is its protection, `cut` what was declared above the cap,
    `limit` infinite where unknown, `small` whether the fast lane is open to it."""

    def __init__(
        self,
        request: Request,
        policy: Policy,
        asked: Class,
        gpus: Mapping[str, int],
        qos: str,
        *,
        placed: bool,
    ) -> None:
        self.request, self.policy, self.asked, self.gpus = request, policy, asked, gpus
        self.preemptible_qos, self.placed = qos, placed
        self.limit = math.inf if request.time_limit is None else request.time_limit
        wanted = request.declared or policy.min_runtime
        self.min_runtime = int(min(wanted, policy.min_runtime_cap, self.limit))
        self.cut = request.declared if (request.declared or 0) > policy.min_runtime_cap else None
        allowed = policy.job_requeue if request.requeue is None else request.requeue
        self.requeueable = allowed and request.batch
        self.small = self._is_small()

    def _is_small(self) -> bool:
        if self.limit == math.inf:
            return False
        weighted = rate(self.gpus, self.policy.weights, ALL_GPUS)
        lane = self.policy.fast_lane_gpu_time
        return is_small(weighted, int(self.limit), self.request.at_once, lane)

    def cost(self, gres: str) -> int:
        one = _times(rate(self.gpus, self.policy.weights, gres), self.min_runtime)
        return _times(one, self.request.at_once)

    def preemptible(self, why: str, lines: tuple[str, ...], *, hold: bool = False) -> Verdict:
        changes = self._changes("preemptible", why, self.preemptible_qos)
        if hold:
            changes["priority"] = 0
        return Verdict(
            "preemptible", self.asked, why, self.min_runtime, changes, self._messages(lines)
        )

    def funded(self, qos: str, rooms: list[Room], tight: Room) -> Verdict:
        if all(room.cost <= room.balance for room in rooms):
            why = "fits"
            line = say.funded(self.min_runtime, self.cut, tight.label, tight.slack, tight.budget)
        else:
            why = "fast"
            line = say.fast_lane(self.min_runtime, tight.label, tight.slack)
        return Verdict(
            "funded",
            self.asked,
            why,
            self.min_runtime,
            self._changes("funded", why, qos),
            self._messages((line,)),
            {room.name: room.cost for room in rooms if room.cost > 0},
        )

    def rejected(self, why: str, lines: tuple[str, ...]) -> Verdict:
        """Told even where messages are off: nobody can act on a refusal without its reason."""
        said = tuple(say.PREFIX + line for line in lines)
        return Verdict("preemptible", self.asked, why, self.min_runtime, {}, said, reject=True)

    def _changes(self, class_: Class, why: str, qos: str) -> dict[str, str | int]:
        request = self.request
        out: dict[str, str | int] = {}
        if request.qos_given != qos:
            out["qos"] = qos
        if request.has_time_min:
            # Slurm would shorten the job by it.
            out["time_min"] = NO_VAL
        if request.account is not None:
            marker = Marker(class_, self.asked, self.min_runtime, why, self.requeueable)
            out["admin_comment"] = merge(request.admin_comment, marker)
        return {**out, **self._placement()} if self.placed else out

    def _placement(self) -> dict[str, str | int]:
        """Near each other where Slurm would not see to it; what the user chose stays."""
        per_node = min(node_gpus(self.request, self.policy), default=0)
        several = any(name in self.policy.several_nodes for name in self.request.partitions)
        fits = sum(self.gpus.values()) <= per_node
        if self.request.one_node_possible and fits and not several:
            return {"min_nodes": 1, "max_nodes": 1}
        if self.policy.topology and self.request.multi_node and not self.request.switch_given:
            return {"req_switch": 1, "wait4switch": SWITCH_WAIT}
        return {}

    def _messages(self, lines: tuple[str, ...]) -> tuple[str, ...]:
        if not self.policy.messages:
            return ()
        notes = []
        if self.request.bad_declared is not None:
            notes.append(say.bad_duration(self.request.bad_declared))
        if sum(self.gpus.values()) > sum(self.request.gpus.values()):
            notes.append(say.whole_nodes(sum(self.gpus.values())))
        return tuple(say.PREFIX + line for line in (*lines, *notes))


def gpus_of(request: Request, policy: Policy) -> Mapping[str, int]:
    """GPUs by type of one task; a job that takes whole nodes gets all their GPUs from Slurm."""
    whole = request.nodes * max(node_gpus(request, policy), default=0) if request.exclusive else 0
    more = whole - sum(request.gpus.values())
    if more <= 0:
        return request.gpus
    kind = next(iter(request.gpus)) if len(request.gpus) == 1 else ""
    return {**request.gpus, kind: request.gpus.get(kind, 0) + more}


def node_gpus(request: Request, policy: Policy) -> list[int]:
    if not policy.partition_gpus:
        return [policy.node_gpus]
    return [policy.partition_gpus.get(name, 0) for name in request.partitions]


def is_small(weighted: int, limit: int, at_once: int, lane_gpu_time: int) -> bool:
    """Whether a job may use the fast lane: by its time limit (s), so that declaring little is no
    help, and with all tasks that may run at once. `weighted` is the rate of one task in thousandths
    of a GPU. A lane of 0 GPU-seconds is none, even for a job that costs nothing.
    """
    whole = _times(_times(weighted, limit), at_once)
    return lane_gpu_time > 0 and whole <= lane_gpu_time * ONE_GPU


def counted_type(gres: str) -> str | None:
    """The GPU type that `gres/gpu:h100` counts; None for `gres/gpu`, which counts all."""
    return None if gres == ALL_GPUS else gres.removeprefix(ALL_GPUS + ":")


def rate(gpus: GpuCounts, weights: Mapping[str, int], gres: str) -> int:
    """Thousandths of a GPU that a budget for `gres` counts, as core.weights counts them for runs.

    A GPU whose type was not named may turn out to be of any, so it counts for each of them.
    """
    only = counted_type(gres)
    counted = gpus if only is None else {only: gpus.get(only, 0) + gpus.get("", 0)}
    total = sum(count * weights.get(kind, ONE_GPU) for kind, count in counted.items())
    return min(total, MOST)


def _times(a: int, b: int) -> int:
    return min(a * b, MOST)
