"""A small queue for the tests of answers: the jobs, nodes and facts that they are asked about."""

from dataclasses import replace

from slurm_budget.core.marker import Marker
from slurm_budget.state.answers import Known, Past
from slurm_budget.state.jobs import Job, Node
from slurm_budget.state.snapshot import AccountFacts, Policy, Snapshot, UserFacts
from slurm_budget.state.sweep import SweepPolicy

HOUR = 3_600_000
NOW = 100_000
POLICY = SweepPolicy(exempt=1200)


def clock(at: int) -> str:
    return f"T{at - NOW:+d}"


def job(number: int, **given: object) -> Job:
    """Waits, funded, for 8 GPUs of partition gpu."""
    base = Job(
        id=number, label=str(number), user="ana", account="vision", partitions=("gpu",),
        qos="funded-vision", state="PENDING", reason="Resources", submit=NOW - 600, eligible=None,
        start=None, end=None, time_limit=36000, gpus={"h100": 8}, nodes=(), num_nodes=1,
        priority=1, requeue=True, batch=True,
        admin_comment=str(Marker("funded", "funded", 3600, "fits")),
    )  # fmt: skip
    return replace(base, **given)  # type: ignore[arg-type]


def run(number: int, since: int, node: str = "n1", **given: object) -> Job:
    """Has run for `since` seconds on one node."""
    return job(
        number,
        **{"state": "RUNNING", "reason": "", "start": NOW - since, "nodes": (node,),
           "gpus_on": {node: 8}, **given},
    )  # fmt: skip


def free(number: int, since: int, node: str = "n1", **given: object) -> Job:
    """The same, preemptible."""
    mark = str(Marker("preemptible", "preemptible", 3600, "default"))
    return run(number, since, node, **{"qos": "preemptible", "admin_comment": mark, **given})


def preemptible(number: int, why: str, **given: object) -> Job:
    """Waits, preemptible for a reason, though it asked to be funded."""
    mark = str(Marker("preemptible", "funded", 3600, why))
    return job(number, **{"qos": "preemptible", "admin_comment": mark, **given})


def node(number: int, **given: object) -> Node:
    base = Node(f"n{number}", "MIXED", frozenset(), {"h100": 8}, ("gpu",))
    return replace(base, **given)  # type: ignore[arg-type]


def past(number: int, state: str, **given: object) -> Past:
    base = Past(
        number, str(number), "ana", "vision", "funded-vision", state, NOW - 900, NOW - 800,
        NOW - 100, {"h100": 8}, "n1",
    )  # fmt: skip
    return replace(base, **given)  # type: ignore[arg-type]


def facts(vision: float = 100, top: float = 500, back: int | None = None) -> Snapshot:
    """GPU-hours left."""
    return Snapshot(
        "main", NOW - 10, NOW - 9, Policy(node_gpus=8),
        {
            "top": AccountFacts("top", None, "funded-top", 1000 * HOUR, int(top * HOUR), 0),
            "vision": AccountFacts(
                "vision", "top", "funded-vision", 200 * HOUR, int(vision * HOUR),
                int(max(vision, 0) * HOUR) + 10 * HOUR, back,
            ),
            "misc": AccountFacts("misc", "top", "", 0, 0, 0),
        },
        {("vision", "ben"): UserFacts("vision", "ben", 20 * HOUR, 3 * HOUR, 3 * HOUR)},
        {"seeing": "vision"},
    )  # fmt: skip


def known(*jobs: Job, **given: object) -> Known:
    base = Known(NOW, POLICY, jobs, nodes=[node(1), node(2)], past=(), facts=facts())
    return replace(base, **given)  # type: ignore[arg-type]
