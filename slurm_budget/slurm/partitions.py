"""Partitions and whom they let in, by one `scontrol show partition`."""

import re

from slurm_budget.slurm.command import Commands, checked
from slurm_budget.state.slurm import Partition

_PAIR = re.compile(r"(\w+)=(\S*)")


def read(commands: Commands) -> dict[str, Partition]:
    """Partitions by name. Raises SlurmUnreachable."""
    return parse(checked(commands.run("scontrol", "-o", "-a", "show", "partition")))


def parse(reply: str) -> dict[str, Partition]:
    """Partitions by name. Of AllowQos and DenyQos Slurm shows the one that counts."""
    out = {}
    for line in reply.splitlines():
        if line.startswith("PartitionName="):
            fields = dict(_PAIR.findall(line))
            out[fields["PartitionName"]] = Partition(
                qos=_text(fields.get("QoS", "")),
                default=fields.get("Default") == "YES",
                weights=fields.get("TRESBillingWeights", ""),
                min_nodes=int(fields.get("MinNodes") or 0),
                allow_qos=_names(fields["AllowQos"]) if "AllowQos" in fields else None,
                deny_qos=_names(fields.get("DenyQos", "")) or frozenset(),
            )
    return out


def _text(value: str) -> str:
    return "" if value in ("N/A", "(null)") else value


def _names(value: str) -> frozenset[str] | None:
    """None: all."""
    if value.upper() == "ALL":
        return None
    return frozenset(name for name in _text(value).lower().split(",") if name)
