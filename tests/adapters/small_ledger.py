"""A week of a small cluster, for the golden reports: every kind of run, wait and requeue once."""

from datetime import UTC, datetime

from slurm_budget.ledger.store import Ledger
from slurm_budget.state.budget import Amount, BudgetNode, BudgetTree, UserBudget
from slurm_budget.state.jobs import GpuCounts, Run

NOW = int(datetime(2026, 11, 8, tzinfo=UTC).timestamp())
HOUR = 3600
START = NOW - 2 * 86400
"""When the first run started, and sweeps began to look."""
CLUSTER = "small"

TREE = BudgetTree(
    CLUSTER,
    {
        "institute": BudgetNode("institute", None, Amount("gpus", 32)),
        "vision": BudgetNode(
            "vision",
            "institute",
            Amount("gpus", 16),
            users=(UserBudget("ana", Amount("gpus", 4)), UserBudget("ben")),
            aliases=("seeing",),
        ),
        "language": BudgetNode("language", "institute", Amount("gpus", 12)),
        "robotics": BudgetNode("robotics", "institute", Amount("gpus", 4)),
    },
)


def run(
    job: int,
    user: str,
    account: str,
    gpus: GpuCounts,
    start: float,
    end: float | None,
    *,
    funded: bool = True,
    state: str = "COMPLETED",
    waited: int = 0,
    limit: int = 24 * HOUR,
    min_runtime: int = 4 * HOUR,
) -> Run:
    """A run; `start` and `end` in hours since START."""
    began = START + int(start * HOUR)
    return Run(
        cluster=CLUSTER,
        job_id=job,
        start=began,
        end=None if end is None else START + int(end * HOUR),
        submit=began - waited - 600,
        eligible=began - waited,
        user=user,
        account=account,
        qos=f"funded-{account}" if funded else "preemptible",
        partition="gpu",
        state="RUNNING" if end is None else state,
        gpus=gpus,
        num_nodes=1,
        class_="funded" if funded else "preemptible",
        min_runtime=min_runtime if funded else None,
        time_limit=limit,
    )


H100, A100 = "h100", "a100"
RUNS = [
    run(1, "ana", "seeing", {H100: 8}, 0, 10, waited=60),
    run(2, "ben", "vision", {H100: 16}, 1, 6, funded=False, state="PREEMPTED", waited=5),
    run(2, "ben", "vision", {H100: 16}, 20, 24, funded=False, waited=40_000),
    run(3, "cleo", "language", {H100: 8, A100: 4}, 6, 11.5, state="REQUEUED", waited=1800),
    run(3, "cleo", "language", {H100: 8, A100: 4}, 14, 20, waited=9000),
    run(4, "ana", "vision", {H100: 1}, 12, 12.15, waited=7, limit=1800, min_runtime=1800),
    run(5, "dan", "language", {H100: 4}, 46, None, waited=300),
    run(6, "eve", "guests", {"": 1}, 30, 31, funded=False, waited=2),
    run(7, "ben", "vision", {H100: 8}, 12, 30, waited=12_000),
]


def fill(ledger: Ledger) -> None:
    """Everything above into an empty ledger."""
    ledger.apply_changeset(CLUSTER, TREE, "root", "root", "the first", 0, START - 86400)
    ledger.record_runs(RUNS, source="test", now=NOW)
    made = ledger.open_intent(
        CLUSTER, job_id=3, run_start=START + 6 * HOUR, victim_account="language", for_job=7,
        for_account="vision", gpus=12, reason="vision is owed 8 GPUs for job 7",
        now=START + 11 * HOUR,
    )  # fmt: skip
    ledger.advance_intent(made, "requeued", START + 11 * HOUR + 1800)
    ledger.advance_intent(made, "done", START + 11 * HOUR + 1830)
    there = {(None, H100): 24, (None, A100): 8}
    waiting = {("language", H100): 8, ("language", A100): 4}
    for at in range(START, NOW, 900):
        hour = (at - START) / HOUR
        if 30 <= hour < 33:
            continue  # nobody looked for three hours
        seen = dict(there)
        if hour >= 40:
            seen[None, H100] = 16  # a node is drained
        if 5.5 <= hour < 6 or 11.5 <= hour < 14:
            seen |= waiting
        if 8.6 <= hour < 12:
            seen["vision", H100] = 8
        ledger.record_levels(CLUSTER, at, seen)
        ledger.record_sweep(CLUSTER, at, "swept", 0.1)
