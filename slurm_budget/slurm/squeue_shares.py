"""What `squeue -O` does not tell of jobs, by one command: the GPUs that a run has on each node, and
the nodes that a job excludes."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from slurm_budget.core import live
from slurm_budget.slurm.command import Commands, checked
from slurm_budget.slurm.nodelist import nodes
from slurm_budget.state.jobs import Job
from slurm_budget.text import tres

EXCLUDED = ("squeue", "-a", "-h", "-t", "PENDING", "-o", "%A %x")
"""Raw id and ExcNodes of what waits, a line each."""


def uneven(found: Iterable[Job]) -> bool:
    """Whether a run of several nodes did not ask for its GPUs by node."""
    return any(item.gpus and item.nodes and not item.gpus_on for item in found)


def with_excluded(commands: Commands, found: list[Job]) -> list[Job]:
    """The same with `--exclude`, which `squeue -O` does not tell, by one command where a job waits
    that GPUs may be freed for."""
    if not any(item.pending and live.class_of(item) == "funded" for item in found):
        return found
    reply = checked(commands.run(*EXCLUDED))
    told = (line.split(maxsplit=1) for line in reply.splitlines())
    excluded = {int(pair[0]): nodes(pair[1]) for pair in told if len(pair) == 2}
    return [replace(item, excluded=excluded.get(item.id, ())) for item in found]


def with_shares(commands: Commands, found: list[Job]) -> list[Job]:
    """The same with GPUs by node and with `--exclude`, by one command. What that does not tell (the
    run started or ended in between) stays empty: not known.
    """
    text = checked(commands.run("scontrol", "-d", "show", "job"))
    exact, excluded = gpus_by_node(text), excluded_by(text)
    return [
        replace(_with(item, exact.get(item.id)), excluded=excluded.get(item.id, ()))
        for item in found
    ]


def _with(item: Job, exact: Mapping[str, int] | None) -> Job:
    if item.gpus_on or exact is None or sum(exact.values()) != item.gpu_total:
        return item
    return replace(item, gpus_on=exact)


_HEAD = re.compile(r"JobId=(\d{1,10})\b")
_EXCLUDED = re.compile(r"^JobId=(\d{1,10})\b|^   ReqNodeList=\S+ ExcNodeList=(\S+)$", re.MULTILINE)


def excluded_by(text: str) -> dict[int, tuple[str, ...]]:
    """The nodes that each job excludes, from `scontrol show job`.

    A newline in a job's name or comment may make a second line of these; such a job excludes none.
    """
    told: dict[int, list[str]] = {}
    at = 0
    for head, listed in _EXCLUDED.findall(text):
        at = int(head) if head else at
        told.setdefault(at, []).append(listed)
    return {number: nodes(lines[1]) for number, lines in told.items() if len(lines) == 2}


def gpus_by_node(text: str) -> dict[int, dict[str, int]]:
    """GPUs on each node of each job, from `scontrol -d show job`.

    Only lines that stand below JOB_GRES are read: a job's name and comment are free text, which may
    hold a newline and what follows one here. A job that seems to come twice is not known.
    """
    out: dict[int, dict[str, int]] = {}
    seen: set[int] = set()
    at: int | None = None
    inside = False
    for line in text.splitlines():
        head = _HEAD.match(line)
        if head:
            at = int(head[1])
            inside = False
            if at in seen:
                out[at] = {}
                at = None
            else:
                seen.add(at)
        elif line.startswith("   JOB_GRES="):
            inside = True
        elif inside and line.startswith("     Nodes=") and at is not None:
            names, _, rest = line.strip().removeprefix("Nodes=").partition(" ")
            held = sum(tres.gpus(rest.rpartition("GRES=")[2]).values())
            for name in nodes(names):
                out.setdefault(at, {})[name] = held
        else:
            inside = False
    return out
