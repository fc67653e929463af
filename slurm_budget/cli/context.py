"""What every command may need, made when first asked for. The clock is read once per command."""

import getpass
import os
import pwd
import re
import socket
import time
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from slurm_budget.ledger.store import Ledger
    from slurm_budget.settings import Settings
    from slurm_budget.slurm.command import Commands
    from slurm_budget.slurm.port import CommandSlurm
    from slurm_budget.usecases.accounting import Source
    from slurm_budget.usecases.fence import Fence


def _clock() -> int:
    return int(time.time())


def named_in(conf: Path) -> str:
    """ClusterName of a slurm.conf, so that reports need no slurmctld; empty where it is not."""
    try:
        text = conf.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    found = re.search(r"^\s*ClusterName\s*=\s*(\S+)", text, re.MULTILINE | re.IGNORECASE)
    return found[1].lower() if found else ""


@dataclass
class Context:
    """Handed to commands by click's `pass_obj`."""

    config: Path | None = None
    now: int = field(default_factory=_clock)

    @cached_property
    def settings(self) -> "Settings":
        from slurm_budget import settings

        return settings.load(self.config)

    @cached_property
    def commands(self) -> "Commands":
        from slurm_budget.slurm.command import Commands

        slurm = self.settings.slurm
        return Commands(conf=slurm.conf, bin=slurm.bin, timeout=slurm.timeout)

    def slurm(self) -> "CommandSlurm":
        """The Slurm port, as slurm.backend says."""
        if self.settings.slurm.backend == "pyslurm":
            from slurm_budget.slurm.pyslurm_port import PyslurmSlurm

            return PyslurmSlurm.opened(self.commands)
        from slurm_budget.slurm.port import CommandSlurm

        return CommandSlurm(self.commands)

    def source(self, cluster: str) -> "Source":
        """Where runs of the cluster come from, as slurm.source says."""
        commands = self.commands
        if self.settings.slurm.source == "slurmdbd-sql":
            from slurm_budget.slurm import slurmdbd_sql

            database = slurmdbd_sql.Database.from_slurm(commands)
            return lambda since, until: slurmdbd_sql.runs(database, cluster, since, until)
        from slurm_budget.slurm import sacct

        return lambda since, until: sacct.runs(commands, cluster, since, until)

    @cached_property
    def cluster(self) -> str:
        """The cluster's name: the setting, else slurm.conf's, else what slurmctld says."""
        return self.cluster_named or self.slurm().cluster()

    @property
    def cluster_named(self) -> str:
        """The same without asking slurmctld; empty where no file names it."""
        return self.settings.slurm.cluster or named_in(self.commands.conf_in_force())

    def ledger(self, *, create: bool = False) -> "Ledger":
        """The ledger, opened once."""
        if self._ledger is None:
            from slurm_budget.ledger.store import Ledger

            section = self.settings.ledger
            self._ledger = Ledger.open(
                section.url, password_file=section.password_file, create=create
            )
        return self._ledger

    def close(self) -> None:
        """Let go of the ledger, for those who live on."""
        if self._ledger is not None:
            self._ledger.close()
            self._ledger = None

    def readable_ledger(self) -> "Ledger":
        """The same for answers, which do without where this user may not read it: LedgerUnreachable
        is raised before the database code is loaded, where that can be told."""
        from slurm_budget.errors import LedgerUnreachable

        section = self.settings.ledger
        scheme, _, file = section.url.partition(":///")
        needed = file if scheme == "sqlite" else section.password_file
        if needed and not os.access(needed, os.R_OK):
            raise LedgerUnreachable(
                "this user may not read it, or it is not there",
                where=str(needed),
                mend="ask an administrator, or run this as the ledger's owner",
            )
        return self.ledger()

    _ledger: "Ledger | None" = None

    def fence(self, ttl: int, token: int | None = None) -> "Fence":
        """This process's way to the lease; `token` where it has it from an earlier sweep."""
        from slurm_budget.usecases.fence import Fence

        holder = f"{socket.gethostname()}:{os.getpid()}"
        cooldown = self.settings.sweep.cooldown
        return Fence(self.ledger(), self.cluster, holder, ttl, cooldown, _clock, token)

    @cached_property
    def user(self) -> str:
        """The Unix user who runs this; under sudo the one who called it."""
        if os.geteuid() == 0 and os.environ.get("SUDO_USER"):
            return os.environ["SUDO_USER"]
        try:
            return pwd.getpwuid(os.geteuid()).pw_name
        except KeyError:
            return getpass.getuser()
