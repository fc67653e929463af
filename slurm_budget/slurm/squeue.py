"""Jobs that slurmctld knows now, by few commands, however many there are.

Fields are separated by a control character that no shell types, and the last one is AdminComment,
which only administrators write; job names and comments are user text and are not asked for. A
record ends when all its fields have come, so a newline inside the last one does no harm.
"""

import re
from collections.abc import Iterator, Mapping

from slurm_budget.errors import SlurmUnreachable
from slurm_budget.slurm import versions
from slurm_budget.slurm.command import Commands, checked
from slurm_budget.slurm.nodelist import nodes, said
from slurm_budget.slurm.squeue_shares import uneven, with_excluded, with_shares
from slurm_budget.state.jobs import Ended, Job, Queue
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


def moment(value: str) -> int | None:
    """Epoch seconds, or None where Slurm has none."""
    return int(value) if value.strip().lstrip("-").isdigit() and int(value) > 0 else None


def _seconds(value: str) -> int | None:
    limit = durations.limit(value)
    return None if limit is None or limit == durations.UNLIMITED else int(limit)


def _state(row: Mapping[str, str]) -> str:
    return row["State"].strip().upper()


def job(row: Mapping[str, str]) -> Job:
    """One job. Which GPUs it holds where is known when it has one node, or asked by node."""
    raw = int(row["JobID"])
    label = row["JobArrayID"].strip()
    ident = jobids.parse(label) if label else jobids.parse(str(raw))
    alloc = tres.gpus(said(row["tres-alloc"]))
    names = nodes(row["NodeList"])
    count = int(row["NumNodes"] or 0)
    total = sum(alloc.values())
    asked = tres.gpus(said(row["tres-per-node"]))
    if total and set(alloc) == {tres.UNTYPED} and len(asked) == 1 and tres.UNTYPED not in asked:
        alloc = {next(iter(asked)): total}
    per_node = sum(asked.values()) or None
    even = len(names) == 1 or (per_node or 0) * len(names) == total
    array = said(row["ArrayJobID"])
    state = _state(row)
    return Job(
        id=raw,
        label=label or str(raw),
        user=row["UserName"].strip(),
        account=said(row["Account"]).lower(),
        partitions=tuple(part for part in row["Partition"].strip().split(",") if part),
        qos=said(row["QOS"]),
        state=state,
        reason=said(row["Reason"]),
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
        admin_comment=said(row["admin_comment"]),
        tasks=max(ident.tasks, 1),
        at_once=max(ident.at_once, 1),
        restarts=int(said(row["RestartCnt"]) or 0),
        gpus_on={name: total // len(names) for name in names} if even else {},
        preempt_time=moment(row["PreemptTime"]),
        array=int(array) if array.isdigit() and array != str(raw) else None,
        features=said(row["Feature"]),
        dependency=said(row["Dependency"]),
        per_node=per_node,
        max_nodes=_most_nodes(row),
        per_task=sum(tres.gpus(said(row["tres-per-task"])).values()) or None,
        cpus=int(said(row["NumCPUs"]) or 0),
        exclusive=_exclusive(row),
        expected=moment(row["StartTime"]) if state == "PENDING" else None,
        used=_seconds(row["TimeUsed"]) if state != "PENDING" else None,
        names_nodes=bool(said(row["ReqNodes"])),
        excluded=nodes(row.get("ExcNodes", "")),
    )


def ended(row: Mapping[str, str]) -> Ended:
    """A job that no longer lives."""
    return Ended(
        id=int(row["JobID"]),
        state=_state(row),
        submit=moment(row["SubmitTime"]) or 0,
        start=moment(row["StartTime"]),
        end=moment(row["EndTime"]),
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
    most, reckoned = int(said(row["MaxNodes"]) or 0), int(row["NumNodes"] or 0)
    asked = re.search(r"(?:^|,)node=(\d+)", row["tres-alloc"])
    return most if most > 1 and asked and int(asked[1]) >= reckoned else None


LIVE = frozenset({"PENDING", "RUNNING", "SUSPENDED", "COMPLETING", "CONFIGURING", "STOPPED",
                  "SIGNALING", "STAGE_OUT", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED",
                  "RESV_DEL_HOLD", "SPECIAL_EXIT", "RESIZING", "EXPEDITING"})  # fmt: skip

ENDED = frozenset({"BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "LAUNCH_FAILED",
                   "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED", "TIMEOUT"})  # fmt: skip
"""A state that is in neither may be a live one of a later Slurm, whose EndTime lies ahead."""


def queue(
    commands: Commands, version: versions.Version = versions.UNKNOWN, *, shares: bool = True
) -> Queue:
    """All jobs that live, with the GPUs they hold on each node and the nodes that they exclude, and
    those that have ended since MinJobAge. At most two commands, for what `squeue -O` does not tell:
    see squeue_shares."""
    names = fields(version)
    living, gone = [], []
    for row in records(checked(commands.run(*argv(names))), names):
        state = _state(row)
        if state in LIVE:
            living.append(job(row))
        elif state in ENDED:
            gone.append(ended(row))
    if not shares:
        return Queue(living, gone)
    complete = with_shares if uneven(living) else with_excluded
    return Queue(complete(commands, living), gone)


def jobs(
    commands: Commands, version: versions.Version = versions.UNKNOWN, *, shares: bool = True
) -> list[Job]:
    """Those that live."""
    return queue(commands, version, shares=shares).jobs
