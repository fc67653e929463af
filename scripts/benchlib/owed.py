"""From the moment that a job is owed GPUs to its start, in beats; patience and grace are 0.

Four nodes are full with one team's runs past their protection. The other team submits a job for a
whole node at a moment that chance takes within a beat; it is owed from then on.
"""

import random
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

from playground import Playground

from .real import TEAMS, budgets

LIMIT = 2.0
"""Beats."""
SETTINGS = """
    [window]
    length = "10min"
    [jobs]
    min_runtime = "1s"
    [qos]
    preempt_exempt_time = "4s"
    [sweep]
    beat = "{beat}s"
    patience = "0s"
    grace = "0s"
    cooldown = "0s"
    margin = 0.01
"""
FUNDED = ("--gres=gpu:8", "--qos=funded", "--comment=min-runtime=1s")


def bench(beat: int, trials: int, cron: bool, keep: bool = False) -> list[str]:
    """Print the beats of each trial; what is above its limit, as sentences."""
    by = "sbudget sweep at each beat" if cron else "sbudget run"
    print(f"\nfrom owed to started, {trials} trials, a beat of {beat} s, {by}", flush=True)
    play = Playground("sbbench", tuple(TEAMS), settings=SETTINGS.format(beat=beat))
    sweeper = None
    try:
        play.up()
        budgets(play, 32)
        taker, owed = TEAMS
        runs = [play.sbatch(taker, *FUNDED, "3000")[0] for _ in range(4)]
        command = [sys.executable, "-c", _LOOP, str(beat)] if cron else [
            str(Path(sys.executable).parent / "sbudget"), "run"]  # fmt: skip
        sweeper = subprocess.Popen(command, env=play.env(), stdout=subprocess.DEVNULL)
        chance, found = random.Random(1), []
        for trial in range(trials):
            play.wait("all run", lambda: all(play.state(job) == "RUNNING" for job in runs), 60)
            time.sleep(2 + beat * chance.random())
            found.append(_trial(play, owed) / beat)
            print(f"  trial {trial + 1}: {found[-1]:.2f} beats", flush=True)
    finally:
        if sweeper is not None:
            sweeper.terminate()
            sweeper.wait()
        if not keep:
            play.down()
    print(f"p50 {median(found):.2f}, max {max(found):.2f} beats")
    worst = max(found)
    return [f"an owed job started after {worst:.2f} beats of {LIMIT}"] if worst > LIMIT else []


def _trial(play: Playground, user: str) -> float:
    """Seconds from the submission to the start."""
    submitted = time.monotonic()
    job, _ = play.sbatch(user, *FUNDED, "1000")
    play.wait("it starts", lambda: play.state(job) == "RUNNING", 120, every=0.1)
    seconds = time.monotonic() - submitted
    play.slurm("scancel", str(job))
    return seconds


_LOOP = """
import subprocess, sys, time
from pathlib import Path
beat, at = int(sys.argv[1]), time.monotonic()
while True:
    subprocess.run([str(Path(sys.executable).parent / "sbudget"), "sweep"], check=False,
                   stdout=subprocess.DEVNULL)
    at += beat
    time.sleep(max(at - time.monotonic(), 0))
"""
"""What cron does, with a beat of its own."""
