"""What slurmctld itself knows of the QOS, by `scontrol show assoc_mgr`.

slurmdbd tells slurmctld of each change; a slurmctld that was not reached goes on with what it had.
"""

import re
import time
from collections.abc import Iterable

from slurm_budget.core import limits
from slurm_budget.slurm.command import Commands, checked
from slurm_budget.state.slurm import Qos

_QOS = re.compile(r"^QOS=(.*?)\(\d+\) ")
_GRP = re.compile(r" GrpTRES=(\S*)")


def parse(text: str) -> dict[str, str]:
    """GrpTRES of GPUs by QOS, canonical. `gres/gpu=96(8)` is a limit of 96 with 8 in use, `N` none.

    >>> parse("QOS=funded-a(4) UsageRaw=0.0 GrpTRES=cpu=N(0),gres/gpu=96(8),gres/gpu:h100=N(8)")
    {'funded-a': 'gres/gpu=96'}
    """
    out = {}
    for line in text.splitlines():
        name, grp = _QOS.search(line), _GRP.search(line)
        if name is None or grp is None:
            continue
        items = (re.sub(r"\(.*", "", item) for item in grp[1].split(","))
        out[name[1]] = limits.gpu_part(",".join(i for i in items if not i.endswith("=N")))
    return out


def lagging(commands: Commands, wanted: Iterable[Qos], patience: float = 3.0) -> dict[str, str]:
    """QOS whose GPU limit slurmctld does not know, with what it has instead, after `patience`
    seconds. Raises SlurmUnreachable where slurmctld does not answer."""
    want = {qos.name: limits.gpu_part(qos.grp_tres) for qos in wanted}
    end = time.monotonic() + patience
    while want:
        text = checked(commands.run("scontrol", "-o", "show", "assoc_mgr", "flags=qos"))
        known = parse(text)
        late = {
            name: known[name] or "unset" if name in known else "nothing of it"
            for name, limit in want.items()
            if known.get(name) != limit
        }
        if not late or time.monotonic() > end:
            return late
        time.sleep(0.3)
    return {}
