"""The Slurm port that reads the queue by pyslurm; implements ports.JobPort.

Slurm's commands do what pyslurm 25.11 cannot, so this is the command port with one read replaced:

- requeue: pyslurm cannot say `Incomplete`, and would start a job again that has just ended;
- signal, release, retag, notify: it names jobs by number alone, which for the last task of an array
  means the whole array; and `send_signal` takes an old errno for an answer;
- GPUs by node of an uneven run: it reads them out of a structure that no header of Slurm's shows;
- nodes: it does not tell a node's topology, and takes the type of `gpu:4090:2` for a count;
- runs: its accounting keeps one start of a job that was requeued, under the job's id;
- associations and QOS: it cannot ask for accounts alone; it knows no default QOS, and of a QOS no
  more than the name.
"""

from types import ModuleType
from typing import Any

from slurm_budget.errors import SlurmUnreachable
from slurm_budget.slurm import pyslurm_jobs, pyslurm_library, squeue
from slurm_budget.slurm.command import Commands
from slurm_budget.slurm.port import CommandSlurm
from slurm_budget.slurm.squeue_shares import uneven, with_shares
from slurm_budget.state.jobs import Queue


class PyslurmSlurm(CommandSlurm):
    """The command port, but for the queue, which is one request to slurmctld without a process."""

    def __init__(self, commands: Commands, library: ModuleType) -> None:
        super().__init__(commands)
        self._library = library

    @classmethod
    def opened(cls, commands: Commands) -> "PyslurmSlurm":
        """Raises BadInput where pyslurm does not fit this machine's Slurm."""
        return cls(commands, pyslurm_library.load(commands))

    def queue(self, *, shares: bool = True) -> Queue:
        loaded = self._load()
        try:
            found = [squeue.job(row) for row in pyslurm_jobs.rows(loaded.values())]
            ended = list(pyslurm_jobs.ended(loaded.values()))
        except AttributeError as bad:
            raise SlurmUnreachable(
                f"pyslurm {self._library.__version__} tells of jobs in another way: {bad}",
                where="pyslurm.Jobs.load",
                mend='set slurm.backend = "commands"',
            ) from bad
        if shares and uneven(found):
            found = with_shares(self.commands, found)
        return Queue(found, ended)

    def _load(self) -> Any:
        try:
            return self._library.Jobs.load()
        except self._library.PyslurmError as bad:
            raise SlurmUnreachable(
                f"pyslurm got no jobs: {bad}",
                where="pyslurm.Jobs.load",
                mend="check that slurmctld answers: `scontrol ping`",
            ) from bad
