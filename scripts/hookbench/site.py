"""Clusters side by side, alike but for the submit hook, and the time that each submission takes.

The time is slurmctld's own: `sdiag` adds up what REQUEST_SUBMIT_BATCH_JOB took, in microseconds.
"""

import os
import random
import re
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from playground import Failed, Playground

from . import facts

HERE = Path(__file__).resolve().parent
KINDS = ("plain", "other", "named", "ours")
# As Slurm comes, and not as scripts/cluster sets it for quick tests.
SLURM_CONF = ("SchedulerParameters=bf_continue", "MinJobAge=2", "SlurmctldDebug=info")
_SAID = re.compile(
    r"REQUEST_SUBMIT_BATCH_JOB\s+\(\s*\d+\)\s+count:(\d+)\s+ave_time:\d+\s+total_time:(\d+)"
)


@dataclass
class Way:
    """A way to submit: on which cluster, and what is done before each submission."""

    name: str
    play: Playground
    before: Callable[[], None] = lambda: None
    name_qos: bool = False
    """Whether users name the QOS themselves that our hook would give their jobs."""
    blocks: list[tuple[int, int]] = field(default_factory=list)
    """(submissions, microseconds in all) of each block."""

    def mean(self) -> float:
        """Microseconds of one submission."""
        return sum(took for _, took in self.blocks) / sum(count for count, _ in self.blocks)

    def means(self) -> list[float]:
        return [took / count for count, took in self.blocks]


def options(number: int, name_qos: bool = False) -> tuple[str, list[str]]:
    """The user and the options of sbatch for the job of this number; always the same ones."""
    chance = random.Random(number)
    team = chance.randrange(facts.PROGRAMMES, facts.ACCOUNTS)
    kind = chance.random()
    if kind < 0.5:  # asks for protection, which is funded where the balance allows
        what = [f"--gres=gpu:h100:{chance.choice((1, 1, 2, 4, 8))}", "--time-min=4:00:00", "-t1-0"]
    elif kind < 0.6:
        what = ["-N2", "--gres=gpu:8", "--comment=run 7 min-runtime=2h", "-t12:00:00"]
    elif kind < 0.8:  # asks for nothing but GPUs
        what = [f"--gpus={chance.choice((1, 2))}", "-t8:00:00"]
    else:
        what = ["-n4", "-t60"]
    if name_qos and kind < 0.8:
        fits = kind < 0.6 and not facts.is_empty(team)
        what.append(f"--qos=funded-{facts.account(team)}" if fits else "--qos=preemptible")
    return facts.submitter(team), [f"--account={facts.account(team)}", *what]


def playground(name: str, kind: str, nodes: int) -> Playground:
    """One of KINDS, not up yet."""
    hook = kind != "plain"
    return Playground(name, facts.LINUX_USERS, nodes=nodes, slurm_conf=SLURM_CONF, hook=hook)


def up(play: Playground) -> None:
    """A cluster with all accounts, whose nodes are taken: what is submitted then waits."""
    play.up()
    funded = ",".join(f"funded-{facts.account(n)}" for n in range(facts.ACCOUNTS))
    play.slurm("sacctmgr", "-i", "add", "qos", f"preemptible,{funded}")
    load = play.site / "accounts.cfg"
    load.write_text(facts.for_sacctmgr(play.name))
    play.slurm("sacctmgr", "-i", "load", f"file={load}")
    # slurmctld hears of them a little later.
    play.wait("a job that fills the nodes", lambda: _fill(play))
    play.wait("full nodes", lambda: play.slurm("squeue", "-h", "-t", "R").strip())


def _fill(play: Playground) -> bool:
    fill = [
        f"-N{play.nodes}",
        "--exclusive",
        "--gres=gpu:8",
        "-t7-0",
        "--account=" + facts.account(0),
    ]
    return submit(play, facts.submitter(0), [*fill, "--wrap=sleep 100000"], check=False)


def put_hook(play: Playground, name: str, **fields: str) -> None:
    """Another job_submit.lua; slurmctld reads it at the next submission, if its second is new."""
    text = (HERE / f"{name}.lua").read_text()
    for key, value in fields.items():
        text = text.replace(f'{key} = "/nonexistent"', f'{key} = "{value}"', 1)
    time.sleep(1.1)
    new = play.folder / "etc" / "job_submit.new"
    new.write_text(text)
    new.rename(play.folder / "etc" / "job_submit.lua")
    time.sleep(1.1)


def submit(play: Playground, user: str, given: list[str], *, check: bool = True) -> bool:
    """One sbatch as a user; a refusal raises Failed."""
    wrap = [] if any(option.startswith("--wrap") for option in given) else ["--wrap=true"]
    argv = ["sbatch", "--quiet", "--chdir=/tmp", "--output=/dev/null", *given, *wrap]
    done = subprocess.run(
        argv, env=play.env(), user=user, capture_output=True, text=True, check=False, timeout=60
    )
    if done.returncode and check:
        raise Failed(f"{play.name}: {' '.join(argv)}\n{done.stderr}")
    return done.returncode == 0


def block(way: Way, first: int, count: int) -> None:
    """Jobs `first` to `first + count - 1`, one after the other, as one block of the way."""
    way.play.slurm("sdiag", "-r")
    for number in range(first, first + count):
        way.before()
        submit(way.play, *options(number, way.name_qos))
    found = _SAID.search(way.play.slurm("sdiag"))
    if not found or int(found[1]) != count:
        raise Failed(f"{way.play.name}: sdiag does not count {count} submissions")
    way.blocks.append((int(found[1]), int(found[2])))


def rounds(ways: list[Way], submissions: int, size: int, first: int = 0) -> None:
    """So many submissions each way, in blocks that take turns; who begins changes each time.

    None is cancelled: a file system that has just freed many inodes may take a millisecond more for
    each new job's folder, on one cluster and not on another.
    """
    # What comes first warms caches, and loads the hook.
    for way in ways:
        block(way, first + submissions, size)
        way.blocks.pop()
    for number in range(submissions // size):
        turn = number % len(ways)
        for way in ways[turn:] + ways[:turn]:
            block(way, first + number * size, size)


def funded(play: Playground) -> int:
    """How many waiting jobs are in a funded QOS: that the hook did its work."""
    out = play.slurm("squeue", "-h", "-t", "PD", "-o", "%q")
    return sum(line.startswith("funded-") for line in out.splitlines())


def load() -> str:
    return " ".join(f"{value:.1f}" for value in os.getloadavg())
