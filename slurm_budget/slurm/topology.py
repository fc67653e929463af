"""Where nodes stand in the network, by one `scontrol show topology`.

A line for each switch of topology/tree, or each block of topology/block, with all nodes below it:

    SwitchName=leaf1 Level=0 LinkSpeed=1 Nodes=n[1-2]
    SwitchName=spine Level=1 LinkSpeed=1 Nodes=n[1-4] Switches=leaf[1-2]
    BlockName=b1 BlockIndex=0 Nodes=n[1-4] BlockSize=4
    AggregatedBlock=b[1-2] BlockIndex=2 Nodes=n[1-8] BlockSize=8

A switch is near by its level. An aggregated block is farther than the blocks in it.
"""

import re

from slurm_budget.slurm.command import Commands, checked
from slurm_budget.slurm.nodelist import nodes
from slurm_budget.state.jobs import Place

_RECORD = re.compile(r"(SwitchName|BlockName|AggregatedBlock)=(\S+)")
_FLAT = "No topology information"


def parse(text: str) -> dict[str, Place]:
    """The place of each node. Under switches no job spans two of the topmost, which are islands;
    blocks are a preference alone."""
    paths: dict[str, list[tuple[int, int, str]]] = {}
    trees: set[str] = set()
    for line in text.splitlines():
        record = _RECORD.match(line.strip())
        if record is None:
            continue
        kind, name = record[1], record[2]
        fields = dict(re.findall(r"(\w+)=(\S*)", line))
        below = nodes(fields.get("Nodes", ""))
        level = int(fields.get("Level") or (0 if kind == "BlockName" else 1))
        for node in below:
            paths.setdefault(node, []).append((level, len(below), name))
        if kind == "SwitchName":
            trees.update(below)
    out = {}
    for node, path in paths.items():
        switches = tuple(name for *_, name in sorted(path))
        out[node] = Place(switches, switches[-1] if node in trees else "")
    return out


def places(commands: Commands) -> dict[str, Place]:
    """The place of each node; empty where slurmctld says that it has no topology."""
    reply = commands.run("scontrol", "show", "topology")
    if _FLAT in reply.out + reply.err:
        return {}
    return parse(checked(reply, silent_ok=False))
