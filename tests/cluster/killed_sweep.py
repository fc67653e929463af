"""`sbudget sweep`, to which something happens at a step; see test_kill.py and test_faults.py.

    killed_sweep.py STEP            it is killed there, with SIGKILL
    killed_sweep.py STEP STOP       it is stopped there, with SIGSTOP
    killed_sweep.py STEP COMMAND    a shell runs COMMAND there, once
    killed_sweep.py clock -3600     its clock is so many seconds off
    killed_sweep.py patience 1      it waits so many seconds for SQLite's lock

`planned`, `signalled`, `requeued`, `done`, `left`: when the ledger has just written that step down.
`planning`: between two intents of the one transaction that writes them.
`between-signals`: between the two calls of a warning.
`after-signal`, `after-requeue`, `after-release`, `after-retag`: when Slurm has done the deed and
the ledger does not know yet.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from slurm_budget.cli.main import main
from slurm_budget.ledger import connect, sweeping
from slurm_budget.ledger.sweep_door import SweepDoor
from slurm_budget.slurm.command import Commands
from slurm_budget.slurm.port import CommandSlurm

STEP, WHAT = sys.argv[1], " ".join(sys.argv[2:])
reached: set[str] = set()


def reach(step: str) -> None:
    if step != STEP or step in reached:
        return
    reached.add(step)
    if WHAT in ("", "STOP"):
        os.kill(os.getpid(), signal.SIGSTOP if WHAT else signal.SIGKILL)
    else:
        subprocess.run(WHAT, shell=True, check=True, stdout=subprocess.DEVNULL)


def behind(owner: Any, name: str, step: Callable[..., str]) -> None:
    """Reach a step after each call of a function; `step` gets what it was called with."""
    plain = getattr(owner, name)

    def called(*args: Any, **named: Any) -> Any:
        out = plain(*args, **named)
        reach(step(*args))
        return out

    setattr(owner, name, called)


def first_signal(_: Commands, *argv: str) -> str:
    return "between-signals" if argv[0] == "scancel" and "--full" not in argv else ""


behind(sweeping, "open_intent", lambda *_: "planning")
behind(SweepDoor, "plan_requeues", lambda *_: "planned")
behind(SweepDoor, "advance_intent", lambda ledger, number, step, *_: step)
behind(Commands, "run", first_signal)
for deed in ("signal", "requeue", "release", "retag"):
    behind(CommandSlurm, deed, lambda *_, deed=deed: f"after-{deed}")
if STEP == "clock":
    right = time.time
    time.time = lambda: right() + int(WHAT)
if STEP == "patience":
    connect.BUSY_SECONDS = int(WHAT)
sys.argv = ["sbudget", "sweep"]
main()
