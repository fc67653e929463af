"""A whole sweep on a real cluster: 128 nodes of 8 GPUs and 5,000 jobs, a tenth of them in arrays.

Two teams fill the cluster; most of what waits is funded or asks to be. Each sweep is the same
function as `sbudget sweep`, in this process, so that the time in Slurm's commands can be told from
ours, and the deeds (a command for each job) from the commands that see.
"""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from statistics import median

from playground import Playground

from slurm_budget.cli.context import Context
from slurm_budget.slurm.port import CommandSlurm
from slurm_budget.state.jobs import Deed
from slurm_budget.usecases.sweep import sweep

NODES, JOBS, SWEEPS = 128, 5_000, 5
LIMIT, MOST = 3.0, 10
"""Seconds of a sweep without its deeds, and commands by which it sees."""
TEAMS = {"bench-ana": "vision", "bench-ben": "language"}
SETTINGS = """
    [window]
    length = "1h"
    [jobs]
    min_runtime = "5min"
    [sweep]
    patience = "0s"
    grace = "0s"
    margin = 0.01
    max_gpus = 64
"""
SHAPES = (
    "--gres=gpu:8 --comment=min-runtime=1s", "--gres=gpu:1", "-N2 --gpus=10", "--gres=gpu:4",
    "--gres=gpu:2", "-N2 --gres=gpu:8", "--gres=gpu:8", "--gpus=4", "--gres=gpu:1 --time=10",
    "-N4 --gres=gpu:8",
)  # fmt: skip


class Timed(CommandSlurm):
    """Slurm's commands, with the deeds counted apart."""

    deeds = 0
    deed_seconds = 0.0

    def _timed(self, deed: Callable[..., Deed], *args: object) -> Deed:
        started = time.perf_counter()
        done = deed(*args)
        self.deeds += 1
        self.deed_seconds += time.perf_counter() - started
        return done

    def requeue(self, *args: object) -> Deed:
        return self._timed(super().requeue, *args)

    def signal(self, *args: object) -> Deed:
        return self._timed(super().signal, *args)

    def retag(self, *args: object) -> Deed:
        return self._timed(super().retag, *args)


def budgets(play: Playground, gpus: int) -> None:
    """Both teams with half of the cluster, in the ledger and in Slurm."""
    lines = [f"cluster: {play.name}", "accounts:", "  institute:", f"    gpus: {gpus}"]
    lines.append("    accounts:")
    for user, team in TEAMS.items():
        lines.append(f"      {team}: {{gpus: {gpus // 2}, users: [{user}]}}")
    file = play.site / "budgets.yaml"
    file.write_text("\n".join(lines) + "\n")
    play.sbudget("ledger", "init")
    play.sbudget("budget", "load", str(file), "-m", "bench")
    play.sbudget("sync", "--yes")
    play.sbudget("sweep")


def _submit(play: Playground, user: str, numbers: range) -> None:
    for first in range(numbers.start, numbers.stop, 200):
        lines = []
        for number in range(first, min(first + 200, numbers.stop)):
            class_ = "funded" if number % 10 < 8 else "preemptible"
            shape = SHAPES[number // 10 % len(SHAPES)]
            lines.append(
                f"sbatch -o /dev/null --qos={class_} {shape} --wrap='sleep 900' >/dev/null 2>&1"
            )
        play.as_user(user, "sh", "-c", "\n".join(lines))


def fill(play: Playground) -> float:
    """Submit all jobs as their users; how many seconds it took."""
    started = time.perf_counter()
    alone = JOBS * 9 // 10 // len(TEAMS)
    with ThreadPoolExecutor(len(TEAMS)) as pool:
        list(pool.map(lambda user: _submit(play, user, range(alone)), TEAMS))
    array = ("--gres=gpu:1", "--qos=funded", "-o", "/dev/null", "--wrap=sleep 900")
    for user in TEAMS:
        play.as_user(user, "sbatch", f"--array=1-{JOBS // 10 // len(TEAMS)}", *array)
    play.wait("the cluster to fill", lambda: _running(play) >= NODES, 120)
    return time.perf_counter() - started


def _running(play: Playground) -> int:
    return len(play.slurm("squeue", "-h", "-a", "-t", "R", "-o", "%i").split())


def bench(keep: bool = False) -> list[str]:
    """Print what sweeps take; what is above its limit, as sentences."""
    conf = ("MaxJobCount=20000", "MaxArraySize=5001", "MinJobAge=30")
    play = Playground("sbbench", tuple(TEAMS), nodes=NODES, settings=SETTINGS, slurm_conf=conf)
    try:
        started = time.perf_counter()
        play.up()
        budgets(play, 8 * NODES)
        up = time.perf_counter() - started
        print(f"\na whole sweep: {NODES} nodes x 8 GPUs up in {up:.0f} s,")
        print(f"{JOBS:,} jobs submitted and the cluster full in {fill(play):.0f} s", flush=True)
        return _sweeps(play)
    finally:
        if not keep:
            play.down()


def _sweeps(play: Playground) -> list[str]:
    print(f"{'sweep':>5}{'records':>9}{'running':>8}{'seconds':>9}{'Slurm':>7}{'ours':>7}", end="")
    print(f"{'commands':>10}{'retags':>8}{'deeds':>7}{'in':>8}   (seconds without the deeds)")
    rows, deeds, deed_seconds = [], 0, 0.0
    for number in range(1, SWEEPS + 1):
        context = Context(config=play.config)
        slurm = Timed(context.commands)
        before = time.perf_counter()
        with context.ledger() as ledger:
            fence = context.fence(60)
            fence.take()
            found = sweep(
                slurm, ledger, context.source, context.settings, context.now, fence=fence
            )
            fence.release()
        whole = time.perf_counter() - before - slurm.deed_seconds
        seeing = context.commands.calls - slurm.deeds
        theirs = context.commands.seconds - slurm.deed_seconds
        rows.append((whole, seeing))
        deeds, deed_seconds = deeds + slurm.deeds, deed_seconds + slurm.deed_seconds
        running = sum(job.running for job in found.world.jobs)
        print(
            f"{number:5}{len(found.world.jobs):9,}{running:8,}{whole:9.2f}{theirs:7.2f}"
            f"{whole - theirs:7.2f}{seeing:10}{len(found.retagged):8}{slurm.deeds:7}"
            f"{slurm.deed_seconds:6.2f} s",
            flush=True,
        )
    if deeds:
        each = deed_seconds / deeds
        print(f"a deed takes {each * 1000:.1f} ms, so 200 retags (max_updates) {200 * each:.1f} s")
    before = time.perf_counter()
    play.sbudget("sweep")
    print(f"`sbudget sweep` as a program: {time.perf_counter() - before:.2f} s with its deeds")
    print(f"p50 {median(row[0] for row in rows):.2f} s, max {max(row[0] for row in rows):.2f} s")
    out = []
    if max(row[0] for row in rows) > LIMIT:
        out.append(f"a sweep took {max(row[0] for row in rows):.2f} s of {LIMIT}")
    if max(row[1] for row in rows) > MOST:
        out.append(f"a sweep ran {max(row[1] for row in rows)} commands of {MOST}")
    return out
