"""The Slurm port by Slurm's own commands; implements ports.JobPort."""

import pwd
import re
from collections.abc import Mapping

from slurm_budget.errors import SlurmUnreachable
from slurm_budget.slurm import (
    actions,
    history,
    nodes,
    partitions,
    preemption,
    squeue,
    topology,
    versions,
)
from slurm_budget.slurm.command import Commands, checked
from slurm_budget.state.answers import Past
from slurm_budget.state.jobs import Deed, Job, Node, Place, Queue
from slurm_budget.state.slurm import Partition, Preemption

_MAY_CHANGE_ANY_JOB = ("operator", "administrator")
_CONFIG = re.compile(r"^(\S+)\s*=\s?(.*)$", re.MULTILINE)


class CommandSlurm:
    """Reads and deeds, each one command. Every read raises SlurmUnreachable rather than guess."""

    def __init__(self, commands: Commands) -> None:
        self.commands = commands
        self._version: versions.Version | None = None

    def config(self) -> dict[str, str]:
        """slurmctld's configuration in force (`scontrol show config`)."""
        return self.config_at()[0]

    def config_at(self) -> tuple[dict[str, str], int | None]:
        """The same, and slurmctld's own time when it answered (epoch seconds; None: not told)."""
        text = checked(self.commands.run("scontrol", "show", "config"), silent_ok=False)
        at = re.match(r"Configuration data as of (\d+)\s", text)
        config = {key: value.strip() for key, value in _CONFIG.findall(text)}
        self._version = versions.parse(config.get("SLURM_VERSION", ""))
        return config, int(at[1]) if at else None

    def cluster(self) -> str:
        name = self.config().get("ClusterName", "")
        if not name:
            raise SlurmUnreachable(
                "slurmctld does not say its ClusterName",
                where="scontrol show config",
                mend="set slurm.cluster in slurm-budget.toml",
            )
        return name

    def queue(self, *, shares: bool = True) -> Queue:
        """All jobs. `shares`: with the GPUs that each has on each of its nodes, for which a second
        command may be needed."""
        if self._version is None:
            self.config()
        return squeue.queue(self.commands, self._version or versions.UNKNOWN, shares=shares)

    def jobs(self, *, shares: bool = True) -> list[Job]:
        """Those that live."""
        return self.queue(shares=shares).jobs

    def nodes(self) -> list[Node]:
        return nodes.nodes(self.commands)

    def places(self) -> dict[str, Place]:
        """Where nodes stand in the topology, from slurmctld."""
        return topology.places(self.commands)

    def preemption(self, config: Mapping[str, str]) -> Preemption:
        """When Slurm preempts by itself; `config` is slurmctld's, as read."""
        return preemption.read(self.commands, config)

    def accounts(self, cluster: str) -> dict[str, str]:
        """Parent by account, from slurmdbd. Raises SlurmUnreachable where there is none."""
        reply = self.commands.run(
            "sacctmgr", "-nP", "show", "assoc", "where", f"cluster={cluster}", "user=",
            "format=account,parentname",
        )  # fmt: skip
        rows = [line.split("|") for line in checked(reply, silent_ok=False).splitlines()]
        return {row[0].strip(): row[1].strip() for row in rows if len(row) >= 2}

    def operators(self) -> tuple[int, ...]:
        """Uids of Slurm's operators and administrators that this machine knows, in order. Names
        without a uid here cannot change a job from here either."""
        reply = self.commands.run("sacctmgr", "-nP", "show", "user", "format=user,adminlevel")
        found = set()
        for line in checked(reply, silent_ok=False).splitlines():
            name, _, level = line.partition("|")
            if level.strip().lower() in _MAY_CHANGE_ANY_JOB:
                try:
                    found.add(pwd.getpwnam(name.strip()).pw_uid)
                except KeyError:
                    continue
        return tuple(sorted(found))

    def qos_names(self) -> set[str]:
        """Every QOS that slurmdbd knows; there is always `normal`."""
        reply = self.commands.run("sacctmgr", "-nP", "show", "qos", "format=name")
        return set(checked(reply, silent_ok=False).split())

    def partitions(self) -> dict[str, Partition]:
        """What each partition asks of a job."""
        return partitions.read(self.commands)

    def default_partition(self) -> str:
        """The partition of jobs that name none; empty where there is none."""
        return next((name for name, one in self.partitions().items() if one.default), "")

    def accounts_of(self, cluster: str, user: str) -> list[str]:
        """The accounts that a user may charge, the default one first."""
        reply = self.commands.run(
            "sacctmgr", "-nP", "show", "user", "withassoc", "where", f"name={user}",
            f"cluster={cluster}", "format=account,defaultaccount",
        )  # fmt: skip
        rows = {tuple(line.strip().split("|")) for line in checked(reply).splitlines()}
        found = [(row[0], row[1]) for row in rows if len(row) == 2]
        return [name for name, first in sorted(found, key=lambda row: (row[0] != row[1], row[0]))]

    def past(self, job: str, since: int, until: int) -> list[Past]:
        """What the accounting has of one job between two epoch seconds."""
        return history.of_job(self.commands, job, since, until)

    def requeue(self, job: str) -> Deed:
        return actions.requeue(self.commands, job)

    def signal(self, job: str, name: str) -> Deed:
        return actions.signal(self.commands, job, name)

    def notify(self, job_id: int, text: str) -> Deed:
        return actions.notify(self.commands, job_id, text)

    def release(self, job: str) -> Deed:
        return actions.release(self.commands, job)

    def retag(self, job: str, qos: str, admin_comment: str) -> Deed:
        return actions.retag(self.commands, job, qos, admin_comment)
