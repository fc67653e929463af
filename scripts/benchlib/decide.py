"""Deciding alone: retag, owed, candidates, space and choose on a cluster made by chance.

Nodes have 8 GPUs and 128 CPUs, 16 under a leaf switch, and are full but for 3%; a tenth of the
runs is preemptible, every tenth job is loose (`--gpus`), and a third of what runs is past its
protection. Half of the waiting jobs ask to be funded, for the class that they have or another one.
"""

import random
import resource
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from slurm_budget.core import live
from slurm_budget.core.budget import account_budgets, user_budgets
from slurm_budget.core.marker import Marker
from slurm_budget.core.standing import Sums, standings, user_standings
from slurm_budget.ledger.store import Ledger
from slurm_budget.state.budget import Amount, BudgetNode, BudgetTree
from slurm_budget.state.jobs import Job, Node, Place
from slurm_budget.state.slurm import Preemption, Qos
from slurm_budget.state.sweep import SweepPolicy
from slurm_budget.usecases.deciding import decide
from slurm_budget.usecases.observe import World

SIZES = [(128, 10_000), (500, 20_000), (1_250, 30_000), (3_500, 60_000), (10_000, 100_000)]
"""(nodes, jobs)."""
LIMITS = {128: (0.3, 1024.0), 10_000: (5.0, 1024.0)}
"""Seconds and MB at most, by nodes."""
NOW = 10**9
WINDOW = 7 * 86400
SHAPES = [(1, 1)] * 30 + [(1, 2)] * 15 + [(1, 4)] * 20 + [(1, 8)] * 20 + [(2, 8)] * 8 + [(4, 8)] * 4
SHAPES += [(8, 8)] * 2 + [(16, 8)]
"""(nodes, GPUs on each), as often as they come."""
POLICY = SweepPolicy(max_gpus=256)


def world(count: int, jobs: int) -> World:
    """A cluster of so many nodes with so many jobs; always the same one."""
    chance = random.Random(count)
    teams = [f"team{i}" for i in range(min(200, 10 + count // 20))]
    share = {team: chance.randint(1, 20) for team in teams}
    scale = 8 * count / sum(share.values())
    tree = BudgetTree(
        "bench",
        {"top": BudgetNode("top", None, Amount("gpus", 8 * count))}
        | {t: BudgetNode(t, "top", Amount("gpus", int(share[t] * scale))) for t in teams},
    )
    nodes = [
        Node(
            f"n{i:05}", "MIXED", frozenset(), {"h100": 8}, ("gpu",), cpus=128,
            place=Place((f"leaf{i // 16}", f"spine{i // 256}", "core"), "core"),
        )
        for i in range(count)
    ]  # fmt: skip
    running = _running(chance, teams, nodes)
    waiting = [_waiting(chance, teams, number) for number in range(len(running) + 1, jobs + 1)]
    every = running + waiting
    budgets = account_budgets(tree, WINDOW, NOW)
    used = {
        (team, f"user{u}", "h100"): int((budgets[team] or 0) * chance.uniform(0.02, 0.25))
        for team in teams
        for u in range(5)
    }
    sums = Sums({key: amount * 4 // 5 for key, amount in used.items()}, used)
    reserved = live.reserved_by_runs(every, POLICY, NOW)
    own = user_budgets(tree, budgets, WINDOW, NOW)
    return World(
        cluster="bench",
        now=NOW,
        config={},
        jobs=every,
        nodes=nodes,
        tree=tree,
        sums=sums,
        accounts=standings(tree, budgets, sums, reserved),
        users=user_standings(tree, own, sums, reserved),
        user_use={(team, user): amount for (team, user, _), amount in used.items()},
        bad_rows=0,
        preemption=Preemption({"preemptible": Qos("preemptible", preempt_exempt_time=1200)}),
    )


def _running(chance: random.Random, teams: list[str], nodes: list[Node]) -> list[Job]:
    out: list[Job] = []
    empty = {node.name: None for node in nodes}
    free = {node.name: 8 for node in nodes}
    for node in nodes:
        while free[node.name] and chance.random() < 0.97:
            wide, gpus = chance.choice(SHAPES)
            gpus = min(gpus, free[node.name])
            empty.pop(node.name, None)
            on = {node.name: gpus}
            if wide > 1 and gpus == 8:
                others = [name for name, _ in zip(empty, range(wide - 1), strict=False)]
                on |= dict.fromkeys(others, 8)
            for name, held in on.items():
                free[name] -= held
                empty.pop(name, None)
            out.append(_job(chance, teams, len(out) + 1, on, NOW - chance.randrange(300, 40_000)))
    return out


def _waiting(chance: random.Random, teams: list[str], number: int) -> Job:
    return _job(chance, teams, number, {}, None)


def _job(
    chance: random.Random, teams: list[str], number: int, on: dict[str, int], start: int | None
) -> Job:
    team = chance.choice(teams)
    wide, gpus = (len(on), next(iter(on.values()))) if on else chance.choice(SHAPES)
    total = sum(on.values()) or wide * gpus
    funded = chance.random() < (0.9 if on else 0.3)
    asks = funded or (not on and chance.random() < 0.3)
    mark = Marker(
        "funded" if funded else "preemptible",
        "funded" if asks else "preemptible",
        chance.choice([600, 3600, 4 * 3600, 8 * 3600]),
        "fits" if funded else "budget",
    )
    loose = chance.random() < 0.1
    return Job(
        id=number,
        label=str(number),
        user=f"user{chance.randrange(5)}",
        account=team,
        partitions=("gpu",),
        qos=live.funded_qos(team) if funded else "preemptible",
        state="RUNNING" if on else "PENDING",
        reason="" if on else chance.choice(["Priority", "Priority", "Resources", "Dependency"]),
        submit=NOW - chance.randrange(50, 100_000),
        eligible=None,
        start=start,
        end=None,
        time_limit=chance.choice([1800, 86400, 7 * 86400]),
        gpus={"h100": total},
        nodes=tuple(on),
        num_nodes=wide,
        priority=chance.randrange(10**6),
        requeue=chance.random() < 0.95,
        batch=True,
        admin_comment=str(mark),
        gpus_on=on,
        per_node=None if loose else gpus,
        cpus=12 * total,
        max_nodes=wide if loose and wide > 1 and chance.random() < 0.5 else None,
    )


def measure(count: int, jobs: int) -> dict[str, float]:
    """One size, in this process."""
    seen = world(count, jobs)
    with Ledger.open("sqlite://", create=True) as ledger:
        begin = time.process_time()
        found = decide(seen, ledger, POLICY)
        seconds = time.process_time() - begin
    return {
        "running": sum(job.running for job in seen.jobs),
        "retags": len(found.verdicts.retags),
        "owed": len(found.owed),
        "start": len(found.choices),
        "requeued": len(found.requeues),
        "seconds": seconds,
        "mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def bench() -> list[str]:
    """Print the table; what is above its limit, as sentences."""
    print("deciding: retag, owed, choose; seconds of CPU (it waits for nothing), one process each;")
    print("the memory counts the input too")
    print(f"{'nodes':>7}{'GPUs':>8}{'jobs':>9}{'run':>8}{'retags':>8}{'owed':>8}", end="")
    print(f"{'start':>7}{'requeued':>10}{'seconds':>9}{'MB':>6}{'us/job':>8}", end="")
    print(f"{'x jobs':>8}{'x time':>8}")
    slow, before = [], None
    for count, jobs in SIZES:
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            row = pool.submit(measure, count, jobs).result()
        growth = "" if before is None else (
            f"{jobs / before[0]:8.1f}{row['seconds'] / before[1]:8.1f}"
        )  # fmt: skip
        print(
            f"{count:7,}{8 * count:8,}{jobs:9,}{row['running']:8,}{row['retags']:8,}"
            f"{row['owed']:8,}{row['start']:7,}{row['requeued']:10,}{row['seconds']:9.3f}"
            f"{row['mb']:6.0f}{row['seconds'] / jobs * 1e6:8.1f}{growth}",
            flush=True,
        )
        before = jobs, row["seconds"]
        limit = LIMITS.get(count)
        if limit and (row["seconds"] > limit[0] or row["mb"] > limit[1]):
            took = f"{row['seconds']:.2f} s of {limit[0]}, {row['mb']:.0f} MB of {limit[1]:.0f}"
            slow.append(f"deciding on {count:,} nodes and {jobs:,} jobs: {took}")
    return slow
