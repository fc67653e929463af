"""A small cluster in memory: Slurm's scheduling in a few rules, and our real sweep on top.

Time goes in beats. In each, runs end, jobs start (funded ones first, by their team's standing, and
over preemptible runs past their exemption), and one sweep decides and acts with the code that acts
on a real cluster: `decide`, `move_classes`, `Actor`. What differs from Slurm: no backfill
reservations, no topology, GPUs alone bind.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, cast

from slurm_budget.core import live
from slurm_budget.core.budget import account_budgets
from slurm_budget.core.marker import Marker
from slurm_budget.core.standing import Standing, standings
from slurm_budget.core.tally import tally
from slurm_budget.core.window import Window
from slurm_budget.ledger.store import Ledger
from slurm_budget.ledger.sweeping import Sweep
from slurm_budget.state.budget import BudgetTree
from slurm_budget.state.intent import Intent, Step
from slurm_budget.state.jobs import Deed, Job, Node, Run
from slurm_budget.state.sweep import SweepPolicy
from slurm_budget.usecases.act import Actor
from slurm_budget.usecases.deciding import decide
from slurm_budget.usecases.moving import move_classes
from slurm_budget.usecases.observe import World
from slurm_budget.usecases.swept import Swept

DONE = Deed("done", "")
GONE = Deed("gone", "the job is gone")
AFTER_REQUEUE = 120
"""Seconds that Slurm holds a requeued job back."""


class Killed(Exception):
    """A sweep that is gone in the middle."""


class MemoryLedger:
    """The part of the ledger that deciding and acting use. `kill` is asked before each write of a
    step, when the deed that it tells of is done already."""

    def __init__(self) -> None:
        self.intents: list[Intent] = []
        self.sweeps: list[Sweep] = []
        self.kill: Callable[[], bool] = lambda: False

    def plan_requeues(self, wanted: Sequence[Intent], *, token: int | None = None) -> list[int]:
        for intent in wanted:
            self.intents.append(replace(intent, id=len(self.intents)))
        return []

    def advance_intent(
        self,
        id: int,
        step: Step,
        now: int,
        detail: str = "",
        *,
        grace_until: int | None = None,
        token: int | None = None,
    ) -> None:
        if self.kill():
            raise Killed
        old = self.intents[id]
        until = old.grace_until if grace_until is None else grace_until
        self.intents[id] = replace(old, step=step, updated=now, detail=detail, grace_until=until)

    def open_intents(self, cluster: str) -> list[Intent]:
        return [intent for intent in self.intents if intent.open]

    def intents_touched_since(self, cluster: str, since: int) -> list[Intent]:
        return [intent for intent in self.intents if intent.updated >= since]

    def last_sweeps(self, count: int, cluster: str | None = None) -> list[Sweep]:
        return self.sweeps[::-1][:count]


@dataclass(frozen=True)
class Ended:
    """A run that is over: why is `done`, `preempted` (by Slurm) or `requeued` (by us)."""

    job: Job
    at: int
    why: str


@dataclass
class SimCluster:
    """Jobs by id, with the seconds of work they have left; a JobPort for the sweep."""

    tree: BudgetTree
    policy: SweepPolicy
    window: Window
    node_count: int = 4
    beat: int = 60
    now: int = 1_000_000
    queue: dict[int, Job] = field(default_factory=dict)
    work: dict[int, int] = field(default_factory=dict)
    ended: list[Ended] = field(default_factory=list)
    accounts: dict[str, Standing] = field(default_factory=dict)
    ledger: MemoryLedger = field(default_factory=MemoryLedger)
    signals: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        names = [f"n{number}" for number in range(self.node_count)]
        self.hosts = {name: Node(name, "MIXED", frozenset(), {"": 8}, ("gpu",)) for name in names}
        self._runs: list[Run] = []
        self._next = 1

    # -- what users do -----------------------------------------------------------------------

    def submit(
        self, account: str, work: int, declared: int, gpus: int, nodes: int = 1, user: str = "u",
        asked: str = "funded",
    ) -> int:  # fmt: skip
        """A job of `gpus` on each of `nodes` that asks for a class; it comes in as preemptible."""
        number = self._next
        self._next += 1
        mark = Marker("preemptible", cast(Any, asked), declared, "budget")
        self.queue[number] = Job(
            id=number, label=str(number), user=user, account=account, partitions=("gpu",),
            qos=self.policy.preemptible_qos, state="PENDING", reason="Priority", submit=self.now,
            eligible=self.now, start=None, end=None, time_limit=7 * 86400,
            gpus={"": gpus * nodes}, nodes=(), num_nodes=nodes, priority=0, requeue=True,
            batch=True, admin_comment=str(mark), per_node=gpus,
        )  # fmt: skip
        self.work[number] = work
        return number

    # -- what Slurm does -----------------------------------------------------------------------

    def step(self) -> None:
        """One beat: time passes, runs end, jobs start, a sweep (which may be killed)."""
        self.now += self.beat
        for job in list(self.queue.values()):
            if job.running and self.now - (job.start or 0) >= self.work[job.id]:
                self._end(job, "done")
                del self.queue[job.id]
        self._schedule()
        with suppress(Killed):
            self.sweep()

    def _schedule(self) -> None:
        waiting = [job for job in self.queue.values() if job.pending]
        for job in sorted(waiting, key=self._rank):
            rank = self._rank(job)[1]
            late = (job.eligible or 0) > self.now
            if late or not self._start(job):
                why = "BeginTime" if late else "Resources"
                self.queue[job.id] = replace(job, priority=-int(rank * 1000), reason=why)

    def _rank(self, job: Job) -> tuple[bool, float, int]:
        standing = self.accounts[job.account].standing if self.accounts else None
        return (live.class_of(job) != "funded", float(standing or 0), job.id)

    def free(self) -> dict[str, int]:
        free = dict.fromkeys(self.hosts, 8)
        for job in self.queue.values():
            for name, count in job.gpus_on.items():
                free[name] -= count
        return free

    def _start(self, job: Job) -> bool:
        """Where the fewest GPUs are left over; a funded job may preempt what Slurm lets it."""
        need, free = job.per_node or 0, self.free()
        victims: list[Job] = []
        if live.class_of(job) == "funded":
            victims = [run for run in self.queue.values() if self._preemptible(run)]
        place = sorted((name for name in free if free[name] >= need), key=lambda n: (free[n], n))
        while len(place) < job.num_nodes and victims:
            run = victims.pop()
            for name, count in run.gpus_on.items():
                free[name] += count
            place = sorted((n for n in free if free[n] >= need), key=lambda n: (free[n], n))
        if len(place) < job.num_nodes:
            return False
        chosen = place[: job.num_nodes]
        for run in [run for run in self.queue.values() if self._preemptible(run)]:
            if any(self.free()[name] < need and name in run.gpus_on for name in chosen):
                self._again(run, "preempted")
        self.queue[job.id] = replace(
            self.queue[job.id], state="RUNNING", reason="", start=self.now, nodes=tuple(chosen),
            gpus_on=dict.fromkeys(chosen, need),
        )  # fmt: skip
        return True

    def _preemptible(self, run: Job) -> bool:
        return (
            run.running
            and live.class_of(run) == "preemptible"
            and self.now - (run.start or 0) >= self.policy.exempt
        )

    def _end(self, job: Job, why: str) -> None:
        self.ended.append(Ended(job, self.now, why))
        self._runs.append(self._run(job, self.now))

    def _again(self, job: Job, why: str) -> None:
        """Requeued: what it computed is kept, for it writes checkpoints."""
        self._end(job, why)
        self.work[job.id] = max(self.work[job.id] - (self.now - (job.start or 0)), 1)
        self.queue[job.id] = replace(
            job, state="PENDING", reason="BeginTime", start=None, nodes=(), gpus_on={},
            eligible=self.now + AFTER_REQUEUE, restarts=job.restarts + 1,
        )  # fmt: skip

    def _run(self, job: Job, end: int | None) -> Run:
        funded = live.class_of(job) == "funded"
        return Run(
            "sim", job.id, job.start or 0, end, job.submit, job.user, job.account, job.qos, "gpu",
            job.state, job.gpus, job.num_nodes, class_=live.class_of(job),
            min_runtime=live.min_runtime(job, self.policy) if funded else None,
        )  # fmt: skip

    # -- what we do ------------------------------------------------------------------------------

    def sweep(self) -> Swept:
        world = self.world()
        ledger = cast(Ledger, self.ledger)
        decision = decide(world, ledger, self.policy)
        fence = cast(Any, SimpleNamespace(token=None, check=lambda: None))
        actor = Actor(cast(Any, self), ledger, self.policy, self.now, fence, world.nodes)
        out = Swept(world, decision, actor.acted)
        move_classes(cast(Any, self), out, self.policy)
        actor.open("sim", decision.requeues)
        actor.advance("sim", world.jobs)
        if actor.acted.requeued:
            actor.advance("sim", self.jobs())
        self.ledger.sweeps.append(Sweep(self.now, "sim", out.sentence(), 0.0))
        return out

    def world(self) -> World:
        edge = self.now - self.window.reach
        self._runs = [run for run in self._runs if (run.end or 0) > edge]
        jobs = self.jobs()
        going = [self._run(job, None) for job in jobs if job.running]
        sums = tally([*self._runs, *going], self.window, {}, self.now, 100)
        reserved = live.reserved_by_runs(jobs, self.policy, self.now)
        budgets = account_budgets(self.tree, self.window.budget_seconds, self.now)
        self.accounts = standings(self.tree, budgets, sums, reserved)
        use: dict[tuple[str, str], int] = {}
        for (account, user, _), amount in sums.use.items():
            use[account, user] = use.get((account, user), 0) + amount
        nodes = list(self.hosts.values())
        return World(
            "sim", self.now, {}, jobs, nodes, self.tree, sums, self.accounts, {}, use, 0
        )  # fmt: skip

    def jobs(self) -> list[Job]:
        return list(self.queue.values())

    def signal(self, job: str, name: str) -> Deed:
        self.signals.append(job)
        return DONE if int(job) in self.queue else GONE

    def requeue(self, job: str) -> Deed:
        found = self.queue.get(int(job))
        if found is None or not found.running:
            return GONE
        self._again(found, "requeued")
        return DONE

    def release(self, job: str) -> Deed:
        return DONE

    def retag(self, job: str, qos: str, admin_comment: str) -> Deed:
        found = self.queue.get(int(job))
        if found is None or not found.pending:
            return GONE
        self.queue[found.id] = replace(found, qos=qos, admin_comment=admin_comment)
        return DONE

    # -- what came of it -------------------------------------------------------------------------

    def delivered(self, account: str) -> int:
        """GPU-seconds that an account has got, of both classes."""
        over = sum(
            end.job.gpu_total * (end.at - (end.job.start or 0))
            for end in self.ended
            if end.job.account == account
        )
        return over + sum(
            job.gpu_total * (self.now - (job.start or 0))
            for job in self.queue.values()
            if job.account == account and job.running
        )

    def requeues(self, account: str | None = None) -> Sequence[Ended]:
        """Runs that we requeued."""
        ours = [end for end in self.ended if end.why == "requeued"]
        return [end for end in ours if account in (None, end.job.account)]
