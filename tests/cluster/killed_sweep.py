"""A sweep that is killed with SIGKILL at a step named on the command line; see test_kill.py. With
`STOP` behind it, it is stopped there with SIGSTOP; see test_daemon.py.

`planned`, `signalled`, `requeued`: when the ledger has just written that step down.
`after-signal`, `after-requeue`: when Slurm has done the deed and the ledger does not know yet.
"""

import os
import signal
import sys

from slurm_budget.cli.context import Context
from slurm_budget.slurm.port import CommandSlurm
from slurm_budget.state.jobs import Deed
from slurm_budget.usecases.sweep import sweep

AT = sys.argv[1]
SIGNAL = signal.SIGSTOP if sys.argv[2:] == ["STOP"] else signal.SIGKILL


def die(step: str) -> None:
    if step == AT:
        os.kill(os.getpid(), SIGNAL)


class Dying(CommandSlurm):
    """Slurm's own commands, and then the end."""

    def signal(self, job: str, name: str) -> Deed:
        deed = super().signal(job, name)
        die("after-signal")
        return deed

    def requeue(self, job: str) -> Deed:
        deed = super().requeue(job)
        die("after-requeue")
        return deed


context = Context()
fence = context.fence(2)
fence.take()
found = sweep(
    Dying(context.commands),
    context.ledger(),
    context.source,
    context.settings,
    context.now,
    fence=fence,
    between=die,
)
fence.release()
sys.stdout.write(found.sentence())
