"""A made-up month of a cluster of 400 GPUs and 15 teams, the same for the same seed.

A toy of what Slurm and the sweeper do, good enough for a picture: jobs come by day more than by
night, funded ones start in the order of standing, the others on what is idle; a funded job that has
waited for an hour stops preemptible runs, then runs past their protection of teams far over their
budget.
"""

import random
from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime
from math import log

from slurm_budget.ledger.store import Ledger
from slurm_budget.state.budget import Amount, BudgetNode, BudgetTree
from slurm_budget.state.jobs import Run

CLUSTER = "an example, made-up data"
START = int(datetime(2026, 10, 1, tzinfo=UTC).timestamp())
END = int(datetime(2026, 11, 1, tzinfo=UTC).timestamp())
BEAT, HOUR, DAY = 600, 3600, 86400
GPUS = 400
TEAMS = {
    "perception": {"vision": 60, "video": 28, "medical-imaging": 24, "robotics": 20},
    "language": {"pretraining": 88, "dialogue": 28, "translation": 20, "speech": 24},
    "science": {"proteins": 28, "climate": 20, "materials": 12, "astronomy": 8},
    "foundations": {"theory": 8, "optimisation": 12, "privacy": 4},
}


def tree() -> BudgetTree:
    """380 of the 400 GPUs, promised to 15 teams in four programmes."""
    nodes = {"institute": BudgetNode("institute", None, Amount("gpus", 384))}
    for programme, teams in TEAMS.items():
        nodes[programme] = BudgetNode(programme, "institute", Amount("gpus", sum(teams.values())))
        for team, gpus in teams.items():
            nodes[team] = BudgetNode(team, programme, Amount("gpus", gpus))
    return BudgetTree(CLUSTER, nodes)


@dataclass
class Job:
    number: int
    team: str
    gpus: int
    funded: bool
    submit: int
    left: int
    protection: int
    since: int = 0
    start: int = 0


class Month:
    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.budget = {team: gpus for teams in TEAMS.values() for team, gpus in teams.items()}
        self.waiting: list[Job] = []
        self.running: list[Job] = []
        self.runs: list[Run] = []
        self.stops: list[tuple[Job, Job, int]] = []
        self.use: dict[str, float] = defaultdict(float)
        self.numbers = iter(range(10_000, 10**9))

    def arrivals(self, at: int) -> None:
        """Each team asks for a little less than its budget, with busy and quiet weeks."""
        hour, day = at // HOUR % 24, (at - START) // DAY
        rhythm = (1.5 if 8 <= hour < 19 else 0.65) * (0.55 if (day + 3) % 7 >= 5 else 1.15)
        for place, (team, gpus) in enumerate(self.budget.items()):
            mood = 0.4 if (day // 4 + place) % 5 == 0 else 1.05
            for funded, part in ((True, 1.62), (False, 0.40)):
                size = self.dice.choice((1, 1, 2, 4, 8) if gpus < 40 else (1, 2, 4, 8, 8, 16, 32))
                mean = 5 * HOUR
                chance = part * mood * rhythm * gpus * BEAT / (6.0 if gpus < 40 else 12) / mean
                for _ in range(int(chance) + (self.dice.random() < chance % 1)):
                    self.waiting.append(self.job(team, size, funded, at, mean))

    def job(self, team: str, gpus: int, funded: bool, at: int, mean: int) -> Job:
        asked = at - self.dice.randrange(60)
        length = int(-log(1 - self.dice.random() * 0.98) * mean) + 120
        if self.dice.random() < 0.2:
            gpus, length = 1, self.dice.randrange(120, 1500)
        protection = min(length, self.dice.choice((1, 2, 4, 8)) * HOUR)
        return Job(next(self.numbers), team, gpus, funded, asked, length, protection, asked)

    def end(self, job: Job, at: int, state: str) -> None:
        self.running.remove(job)
        limit = 1800 if job.gpus == 1 and job.left < 1500 else 24 * HOUR
        self.runs.append(
            Run(
                CLUSTER, job.number, job.start, at, job.submit, f"{job.team}-user", job.team,
                f"funded-{job.team}" if job.funded else "preemptible", "gpu", state,
                {"h100": job.gpus}, 1, 0, "funded" if job.funded else "preemptible",
                job.protection if job.funded else None, job.since, limit,
            )
        )  # fmt: skip

    def stop(self, job: Job, at: int, state: str) -> None:
        """Back to the queue, as after a checkpoint of the last hour."""
        self.end(job, at, state)
        job.left = max(job.left - (at - job.start) // HOUR * HOUR, 600)
        job.since = at + 120
        self.waiting.append(job)

    def capacity(self, at: int) -> int:
        """A node is drained now and then, and one day a rack."""
        day = (at - START) // DAY
        return GPUS - 8 * (day % 3 == 1) - 64 * (day in (13, 14))

    def beat(self, at: int) -> None:
        for job in [job for job in self.running if job.start + job.left <= at]:
            self.end(job, job.start + job.left, "COMPLETED")
        self.arrivals(at)
        for team in self.use:
            self.use[team] *= 0.5 ** (BEAT / (3 * DAY))
        for job in self.running:
            self.use[job.team] += job.gpus * (1.0 if job.funded else 0.1)
        free = self.capacity(at) - sum(job.gpus for job in self.running)
        while free < 0:
            job = min(self.running, key=lambda one: (one.funded, -one.start))
            self.stop(job, at, "NODE_FAIL")
            free += job.gpus
        order = sorted(self.waiting, key=lambda job: (
            not job.funded, self.use[job.team] / self.budget[job.team], job.submit))  # fmt: skip
        blocked = False
        for job in order:
            if job.gpus > free and job.funded and at - job.since >= 1800:
                free += self.make_way(job, job.gpus - free, at)
            if job.gpus <= free and not (blocked and (job.gpus > 4 or not job.funded)):
                self.waiting.remove(job)
                self.running.append(job)
                job.start = max(at, job.since) + self.dice.randrange(2, 40)
                free -= job.gpus
            elif job.funded:
                blocked = True

    def make_way(self, job: Job, need: int, at: int) -> int:
        """GPUs of preemptible runs, then of those that are past their protection."""
        mine = self.use[job.team] / self.budget[job.team]

        def can(run: Job) -> bool:
            over = self.use[run.team] / self.budget[run.team] > 1.2 * mine
            return not run.funded or (run.start + run.protection <= at and over and run.gpus >= 4)

        found, victims = 0, []
        for run in sorted(filter(can, self.running), key=lambda run: (run.funded, -run.start)):
            if found < need:
                victims.append(run)
                found += run.gpus
        if found < need:
            return 0
        for run in victims:
            if run.funded:
                self.stops.append((run, job, run.start))
            self.stop(run, at, "REQUEUED" if run.funded else "PREEMPTED")
        return found


def fill(ledger: Ledger, seed: int = 20261129) -> None:
    """The month into an empty ledger."""
    month, day_before = Month(seed), START - 2 * DAY
    ledger.apply_changeset(CLUSTER, tree(), "root", "root", "a made-up month", 0, day_before)
    for at in range(day_before, END, BEAT):
        month.stops.clear()
        month.beat(at)
        for run, job, began in month.stops:
            made = ledger.open_intent(
                CLUSTER, job_id=run.number, run_start=began, victim_account=run.team,
                for_job=job.number, for_account=job.team, gpus=run.gpus,
                reason=f"{job.team} is owed {job.gpus} GPUs", now=at - 120,
            )  # fmt: skip
            ledger.advance_intent(made, "requeued", at)
            ledger.advance_intent(made, "done", at + 30)
        seen: dict[tuple[str | None, str], int] = {(None, "h100"): month.capacity(at)}
        for job in month.waiting:
            if job.funded:
                key = (job.team, "h100")
                seen[key] = seen.get(key, 0) + job.gpus
        ledger.record_levels(CLUSTER, at, seen)
        ledger.record_sweep(CLUSTER, at, "made up", 0.1)
    for job in list(month.running):
        month.end(job, min(job.start + job.left, END + DAY), "COMPLETED")
    month.runs.sort(key=lambda run: (run.start, run.job_id))
    ledger.record_runs(month.runs, source="made up", now=END)
