"""When Slurm preempts by itself: QOS from slurmdbd, partitions and slurm.conf from slurmctld."""

from collections.abc import Mapping

from slurm_budget.slurm import partitions, sacctmgr
from slurm_budget.slurm.command import Commands
from slurm_budget.state.slurm import Preemption
from slurm_budget.text import durations


def everywhere(config: Mapping[str, str]) -> int | None:
    """PreemptExemptTime of slurm.conf; unset is -1 or NONE."""
    text = config.get("PreemptExemptTime", "")
    if text.upper() in ("", "-1", "NONE", "(NULL)", "INVALID"):
        return None
    return int(durations.elapsed(text))


def read(commands: Commands, config: Mapping[str, str]) -> Preemption:
    """Two commands. Raises SlurmUnreachable."""
    return Preemption(sacctmgr.read_qos(commands), partitions.read(commands), everywhere(config))
