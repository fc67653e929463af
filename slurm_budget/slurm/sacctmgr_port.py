"""The slurmdbd port by sacctmgr; implements ports.AssociationPort."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cached_property

from slurm_budget.core.plan import Change
from slurm_budget.errors import SlurmUnreachable
from slurm_budget.slurm import assoc_mgr, sacctmgr, sacctmgr_apply, squeue, transactions, versions
from slurm_budget.slurm.command import Commands, checked
from slurm_budget.slurm.port import CommandSlurm
from slurm_budget.state.slurm import AccountInfo, Qos, SlurmState, Transaction, WriteReport
from slurm_budget.text import durations


class Sacctmgr:
    """Associations and QOS of one slurmdbd."""

    def __init__(self, commands: Commands, funded_prefix: str = "funded-") -> None:
        self.commands = commands
        self._prefix = funded_prefix

    @cached_property
    def version(self) -> versions.Version:
        return versions.parse(checked(self.commands.run("sacctmgr", "-V")))

    def observe(self, cluster: str) -> SlurmState:
        """Everything that a plan depends on, with lists taken as absolute (see `in_force`). Raises
        SlurmUnreachable where a part does not answer: slurmctld too, since whole nodes and the
        half-life are its."""
        ask = self.commands
        # At once: each answer takes 0.2 s on old versions however small, most of it waiting.
        with ThreadPoolExecutor(6) as pool:
            clusters = pool.submit(sacctmgr.read_clusters, ask)
            rows = pool.submit(sacctmgr.read_own, ask, cluster)
            qos = pool.submit(sacctmgr.read_qos, ask)
            tres = pool.submit(sacctmgr.read_tres, ask)
            node_gpus = pool.submit(sacctmgr.node_gpus, ask)
            half_life = pool.submit(self._half_life)
            known = sacctmgr.check_cluster(cluster, clusters.result())
            others = [name for name in known if name != cluster]
            funded = [name for name in qos.result() if name.startswith(self._prefix)]
            return SlurmState(
                cluster=cluster,
                associations=sacctmgr.associations(cluster, rows.result()),
                qos=qos.result(),
                tres=tres.result(),
                node_gpus=node_gpus.result(),
                half_life=half_life.result(),
                elsewhere=sacctmgr.used_elsewhere(ask, others, funded),
            )

    def in_force(self, state: SlurmState) -> SlurmState:
        """The same state with the lists of QOS that Slurm says are in force."""
        text = sacctmgr.read_in_force(self.commands, state.cluster)
        return replace(state, associations=sacctmgr.in_force(state.associations, text))

    def _half_life(self) -> int:
        text = CommandSlurm(self.commands).config().get("PriorityDecayHalfLife", "")
        try:
            return int(durations.elapsed(text))
        except Exception as bad:
            raise SlurmUnreachable(
                f"PriorityDecayHalfLife is {text!r}, which is no time",
                where="scontrol show config",
                mend="report your Slurm version",
            ) from bad

    def account_info(self) -> dict[str, AccountInfo]:
        """Descriptions and coordinators of accounts."""
        return sacctmgr.read_account_info(self.commands)

    def in_use(self) -> Mapping[str, Mapping[str, int]]:
        """GPUs that running jobs hold, by QOS and type; the empty string: all types together."""
        out: dict[str, dict[str, int]] = {}
        for job in squeue.jobs(self.commands, shares=False):
            if job.state not in ("RUNNING", "COMPLETING", "SUSPENDED"):
                continue
            used = out.setdefault(job.qos, {})
            used[""] = used.get("", 0) + job.gpu_total
            for kind, count in job.gpus.items():
                if kind:
                    used[kind] = used.get(kind, 0) + count
        return out

    def write(
        self,
        changes: Sequence[Change],
        state: SlurmState,
        progress: Callable[[int], None],
        stop: Callable[[], bool],
    ) -> WriteReport:
        """Carry out `changes`; see sacctmgr_apply."""
        return sacctmgr_apply.write(self.commands, changes, state, self.version, progress, stop)

    def lagging(self, qos: Iterable[Qos]) -> Mapping[str, str]:
        """QOS whose GPU limit slurmctld does not know yet, with what it has instead."""
        return assoc_mgr.lagging(self.commands, qos)

    def transactions(self, cluster: str, since: int) -> list[Transaction]:
        """What was changed in slurmdbd since an epoch second, by whom; oldest first."""
        return transactions.read(self.commands, cluster, since)
