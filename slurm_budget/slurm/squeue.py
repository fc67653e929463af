"""Jobs that slurmctld knows now, by few commands, however many there are.

Fields are separated by a control character that no shell types, and the last one is AdminComment,
which only administrators write; job names and comments are user text and are not asked for. A
record ends when all its fields have come, so a newline inside the last one does no harm.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from ClusterShell.NodeSet import NodeSet, NodeSetException

from slurm_budget.core import live
from slurm_budget.errors import BadInput, SlurmUnreachable
from slurm_budget.slurm import versions
from slurm_budget.slurm.command import Commands, checked
from slurm_budget.state.jobs import Job
from slurm_budget.text import durations, jobids, tres

SEPARATOR = "\x1f"
FIELDS = (
    *("JobID", "JobArrayID", "UserName", "Account", "Partition", "QOS", "State", "Reason"),
    *("SubmitTime", "EligibleTime", "StartTime", "EndTime", "TimeLimit"),
    *("tres-alloc", "tres-per-node", "NodeList", "NumNodes", "NumCPUs", "PriorityLong"),
    *("Requeue", "BatchFlag", "ArrayJobID", "PreemptTime", "RestartCnt", "Dependency"),
    *("Feature", "OverSubscribe", "MaxNodes", "tres-per-task", "TimeUsed", "ReqNodes"),
    "admin_comment",
)
_NONE = frozenset({"", "N/A", "NONE", "UNKNOWN", "(NULL)"})


def fields(version: versions.Version) -> tuple[str, ...]:
    """FIELDS, with the one that tells of whole nodes in this version."""
    if not versions.says_exclusive(version):
        return FIELDS
    return tuple("Exclusive" if name == "OverSubscribe" else name for name in FIELDS)


def argv(names: tuple[str, ...] = FIELDS) -> tuple[str, ...]:
    """All states, so that a job in COMPLETING is seen to hold its GPUs still."""
    format_ = ",".join(f"{name}:{SEPARATOR}" for name in names)
    return ("squeue", "-a", "-h", "-t", "all", "-O", format_)


def records(text: str, names: tuple[str, ...] = FIELDS) -> Iterator[dict[str, str]]:
    """Split squeue's output. Raises SlurmUnreachable when its end was cut off."""
    pieces = text.split(SEPARATOR)
    tail = pieces.pop()
    if tail.strip() or len(pieces) % len(names):
        raise SlurmUnreachable(
            f"squeue's output ends in the middle of a job ({len(pieces)} fields)",
            where="squeue -O",
            mend="run it again; if it stays so, report your Slurm version",
        )
    for at in range(0, len(pieces), len(names)):
        row = dict(zip(names, pieces[at : at + len(names)], strict=True))
        row["JobID"] = row["JobID"].lstrip("\n")
        yield row


def _text(value: str) -> str:
    return "" if value.strip().upper() in _NONE else value.strip()


def moment(value: str) -> int | None:
    """Epoch seconds, or None where Slurm has none."""
    return int(value) if value.strip().lstrip("-").isdigit() and int(value) > 0 else None


def _seconds(value: str) -> int | None:
    limit = durations.limit(value)
    return None if limit is None or limit == durations.UNLIMITED else int(limit)


def nodes(text: str) -> tuple[str, ...]:
    """The names in a Slurm node list such as `n[1-3,7]`."""
    value = _text(text)
    if not value or value.startswith("("):
        return ()
    try:
        return tuple(NodeSet(value))
    except NodeSetException as bad:
        raise BadInput(f"{value!r} is no node list: {bad}") from None


def job(row: Mapping[str, str]) -> Job:
    """One job. Which GPUs it holds where is known when it has one node, or asked by node."""
    raw = int(row["JobID"])
    label = row["JobArrayID"].strip()
    ident = jobids.parse(label) if label else jobids.parse(str(raw))
    alloc = tres.gpus(_text(row["tres-alloc"]))
    names = nodes(row["NodeList"])
    count = int(row["NumNodes"] or 0)
    total = sum(alloc.values())
    asked = tres.gpus(_text(row["tres-per-node"]))
    if total and set(alloc) == {tres.UNTYPED} and len(asked) == 1 and tres.UNTYPED not in asked:
        alloc = {next(iter(asked)): total}
    per_node = sum(asked.values()) or None
    even = len(names) == 1 or (per_node or 0) * len(names) == total
    array = _text(row["ArrayJobID"])
    state = row["State"].strip().upper()
    return Job(
        id=raw,
        label=label or str(raw),
        user=row["UserName"].strip(),
        account=_text(row["Account"]).lower(),
        partitions=tuple(part for part in row["Partition"].strip().split(",") if part),
        qos=_text(row["QOS"]),
        state=state,
        reason=_text(row["Reason"]),
        submit=moment(row["SubmitTime"]) or 0,
        eligible=moment(row["EligibleTime"]),
        start=moment(row["StartTime"]) if state != "PENDING" else None,
        end=moment(row["EndTime"]) if state != "PENDING" else None,
        time_limit=_seconds(row["TimeLimit"]),
        gpus=alloc,
        nodes=names if state != "PENDING" else (),
        num_nodes=max(count, 1),
        priority=int(row["PriorityLong"] or 0),
        requeue=row["Requeue"].strip() == "1",
        # counts up when a launch failed
        batch=row["BatchFlag"].strip() not in ("", "0"),
        admin_comment=_text(row["admin_comment"]),
        tasks=max(ident.tasks, 1),
        at_once=max(ident.at_once, 1),
        restarts=int(_text(row["RestartCnt"]) or 0),
        gpus_on={name: total // len(names) for name in names} if even else {},
        preempt_time=moment(row["PreemptTime"]),
        array=int(array) if array.isdigit() and array != str(raw) else None,
        features=_text(row["Feature"]),
        dependency=_text(row["Dependency"]),
        per_node=per_node,
        max_nodes=_most_nodes(row),
        per_task=sum(tres.gpus(_text(row["tres-per-task"])).values()) or None,
        cpus=int(_text(row["NumCPUs"]) or 0),
        exclusive=_exclusive(row),
        expected=moment(row["StartTime"]) if state == "PENDING" else None,
        used=_seconds(row["TimeUsed"]) if state != "PENDING" else None,
        names_nodes=bool(_text(row["ReqNodes"])),
        excluded=nodes(row.get("ExcNodes", "")),
    )


def _exclusive(row: Mapping[str, str]) -> bool:
    if "Exclusive" in row:
        return row["Exclusive"].strip().upper() == "NODE"
    return row["OverSubscribe"].strip().upper() in ("NO", "EXCLUSIVE")


def _most_nodes(row: Mapping[str, str]) -> int | None:
    """How many nodes the job may have; None: any number, as `--gpus` without `-N`.

    squeue fills in MaxNodes and NumNodes for such a job with what it reckons, which is 1 before the
    scheduler has looked; the TRES asked for still count one node then.
    """
    most, reckoned = int(_text(row["MaxNodes"]) or 0), int(row["NumNodes"] or 0)
    asked = re.search(r"(?:^|,)node=(\d+)", row["tres-alloc"])
    return most if most > 1 and asked and int(asked[1]) >= reckoned else None


EXCLUDED = ("squeue", "-a", "-h", "-t", "PENDING", "-o", "%A %x")
"""Raw id and ExcNodes of what waits, a line each."""

LIVE = frozenset({"PENDING", "RUNNING", "SUSPENDED", "COMPLETING", "CONFIGURING", "STOPPED",
                  "SIGNALING", "STAGE_OUT", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED",
                  "RESV_DEL_HOLD", "SPECIAL_EXIT", "RESIZING", "EXPEDITING"})  # fmt: skip


def jobs(
    commands: Commands, version: versions.Version = versions.UNKNOWN, *, shares: bool = True
) -> list[Job]:
    """All jobs that live, with the GPUs they hold on each node and the nodes that they exclude. At
    most two commands, for what `squeue -O` does not tell: see `with_shares` and `with_excluded`."""
    names = fields(version)
    found = [
        job(row)
        for row in records(checked(commands.run(*argv(names))), names)
        if row["State"].strip().upper() in LIVE
    ]
    if not shares:
        return found
    return with_shares(commands, found) if uneven(found) else with_excluded(commands, found)


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
