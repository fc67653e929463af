"""When Slurm preempts by itself: QOS from slurmdbd, partitions and slurm.conf from slurmctld."""

import re
from collections.abc import Mapping

from slurm_budget.slurm import sacctmgr
from slurm_budget.slurm.command import Commands, checked
from slurm_budget.state.slurm import Preemption
from slurm_budget.text import durations

_PARTITION = re.compile(r"^PartitionName=(\S+)", re.MULTILINE)
_QOS = re.compile(r" QoS=(\S+)")


def partitions(commands: Commands) -> str:
    """`scontrol show partition`, a line each."""
    return checked(commands.run("scontrol", "-o", "-a", "show", "partition"))


def partition_qos(text: str) -> dict[str, str]:
    """The QOS of each partition that has one."""
    out = {}
    for line in text.splitlines():
        name, qos = _PARTITION.match(line), _QOS.search(line)
        if name and qos and qos[1] not in ("N/A", "(null)"):
            out[name[1]] = qos[1]
    return out


def everywhere(config: Mapping[str, str]) -> int | None:
    """PreemptExemptTime of slurm.conf; unset is -1 or NONE."""
    text = config.get("PreemptExemptTime", "")
    if text.upper() in ("", "-1", "NONE", "(NULL)", "INVALID"):
        return None
    return int(durations.elapsed(text))


def read(commands: Commands, config: Mapping[str, str]) -> Preemption:
    """Two commands. Raises SlurmUnreachable."""
    return Preemption(
        sacctmgr.read_qos(commands), partition_qos(partitions(commands)), everywhere(config)
    )
