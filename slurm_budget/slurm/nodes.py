"""Nodes and what they hold, by one `scontrol show node`."""

import re

from slurm_budget.slurm.command import Commands, checked
from slurm_budget.state.jobs import Node
from slurm_budget.text import tres

_PAIR = re.compile(r"(\w+)=(\S*)")


def parse(text: str) -> list[Node]:
    """Nodes from `scontrol -o show node`; a line without NodeName is no node."""
    out = []
    for line in text.splitlines():
        if not line.startswith("NodeName="):
            continue
        # Reason and OS are free text and stand behind what we read
        fields: dict[str, str] = {}
        for key, value in _PAIR.findall(line):
            fields.setdefault(key, value)
        base, *flags = (
            fields.get("State", "UNKNOWN").upper().replace("*", "+NOT_RESPONDING").split("+")
        )
        features = fields.get("ActiveFeatures", "")
        out.append(
            Node(
                name=fields["NodeName"],
                state=base,
                flags=frozenset(flags),
                gpus=tres.gpus(fields.get("Gres")),
                partitions=tuple(p for p in fields.get("Partitions", "").split(",") if p),
                cpus=int(fields.get("CPUEfctv") or fields.get("CPUTot") or 0),
                cpus_used=int(fields.get("CPUAlloc") or 0),
                gpus_used=sum(tres.gpus(fields.get("AllocTRES")).values()),
                reason=line.partition(" Reason=")[2].strip(),
                features=frozenset(features.split(",")) if features != "(null)" else frozenset(),
                topology=fields.get("Topology", "").replace("(null)", ""),
            )
        )
    return out


def nodes(commands: Commands) -> list[Node]:
    """All nodes. Raises SlurmUnreachable where there is none: a cluster has nodes."""
    return parse(checked(commands.run("scontrol", "-o", "-a", "show", "node"), silent_ok=False))
