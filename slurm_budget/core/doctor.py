"""What Slurm must be set to for budgets to work, as rules over its configuration. Pure.

Each finding names what is wrong, and the line that mends it.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from slurm_budget.state.jobs import Node

Level = Literal["ok", "warning", "error"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One check. `mend` is the line to write, empty when all is well; `where` the file, command or
    database that `what` was seen in, where the check's name does not say it."""

    check: str
    level: Level
    what: str
    mend: str = ""
    where: str = ""


def _words(value: str) -> set[str]:
    return {word.strip().lower() for word in re.split(r"[,\s]+", value) if word.strip()}


def rule(
    check: str, good: bool, what: str, mend: str, level: Level = "error", where: str = ""
) -> Finding:
    """`ok` where it is good, else `level` with how to mend it."""
    if good:
        return Finding(check, "ok", what, where=where)
    return Finding(check, level, what, mend, where)


def slurm_conf(config: Mapping[str, str]) -> list[Finding]:
    """Checks on `scontrol show config`."""
    get = {key.lower(): value for key, value in config.items()}.get
    tres = get("accountingstoragetres", "") or ""
    enforce = _words(get("accountingstorageenforce", "") or "")
    priority = get("prioritytype", "") or ""
    flags = _words(get("priorityflags", "") or "")
    preempt = get("preempttype", "") or ""
    mode = get("preemptmode", "") or ""
    storage = get("accountingstoragetype", "") or ""
    requeue = get("jobrequeue", "1") or "1"
    missing = [word for word in ("associations", "limits", "qos") if word not in enforce]
    return [
        rule(
            "accounting",
            storage.endswith("slurmdbd"),
            f"AccountingStorageType={storage}",
            "slurm.conf: AccountingStorageType=accounting_storage/slurmdbd",
        ),
        rule(
            "gpu accounting",
            "gres/gpu" in _words(tres),
            f"AccountingStorageTRES={tres}",
            "slurm.conf: AccountingStorageTRES=gres/gpu (without it every GPU job costs 0)",
        ),
        rule(
            "enforcement",
            not missing or "all" in enforce,
            f"AccountingStorageEnforce={','.join(sorted(enforce)) or '(none)'}",
            "slurm.conf: AccountingStorageEnforce=associations,limits,qos",
        ),
        rule(
            "safe limits",
            "safe" not in enforce,
            "AccountingStorageEnforce has safe" if "safe" in enforce else "no safe",
            "with qos.backstop set, safe refuses jobs whose whole time limit does not fit",
            "warning",
        ),
        rule(
            "priority",
            priority.endswith("multifactor"),
            f"PriorityType={priority}",
            "slurm.conf: PriorityType=priority/multifactor",
        ),
        rule(
            "fair tree",
            "no_fair_tree" not in flags,
            f"PriorityFlags={','.join(sorted(flags)) or '(default: FAIR_TREE)'}",
            "slurm.conf: remove NO_FAIR_TREE from PriorityFlags",
        ),
        rule(
            "fairshare weight",
            (get("priorityweightfairshare", "0") or "0").strip() != "0",
            f"PriorityWeightFairShare={get('priorityweightfairshare', '0')}",
            "slurm.conf: PriorityWeightFairshare=100000",
        ),
        rule(
            "preemption",
            preempt.endswith("qos"),
            f"PreemptType={preempt}",
            "slurm.conf: PreemptType=preempt/qos",
        ),
        rule(
            "preempt mode",
            "REQUEUE" in mode.upper(),
            f"PreemptMode={mode}",
            "slurm.conf: PreemptMode=REQUEUE",
        ),
        rule(
            "requeue",
            requeue.strip() != "0",
            f"JobRequeue={requeue}",
            "slurm.conf: JobRequeue=1 (else only jobs with --requeue can be funded for long)",
            "warning",
        ),
    ]


def not_accounted(gres: Iterable[str], tres: str) -> Finding | None:
    """A budget of a GPU type that Slurm does not account: sync refuses it, and nothing is charged
    to it. `gres` are those of the budgets, `tres` is AccountingStorageTRES."""
    have = _words(tres)
    missing = sorted({name for name in gres if name.lower() not in have})
    if not missing:
        return None
    line = ",".join(sorted(have | set(missing)))
    return Finding(
        "budgets by type",
        "error",
        f"slurmctld does not account {', '.join(missing)}, which budgets name",
        f"slurm.conf: AccountingStorageTRES={line}, then restart slurmctld; or correct gres",
    )


def partitions(text_by_name: Mapping[str, str], gpu_partitions: set[str]) -> list[Finding]:
    """TRESBillingWeights of each partition that has GPUs; RawUsage counts billing."""
    out = []
    for name, weights in sorted(text_by_name.items()):
        if name in gpu_partitions:
            out.append(
                rule(
                    f"billing of {name}",
                    "gres/gpu" in weights.lower(),
                    f"TRESBillingWeights={weights or '(none)'}",
                    f'slurm.conf: PartitionName={name} TRESBillingWeights="CPU=0,GRES/gpu=1"',
                )
            )
    return out


def gpus(nodes: Sequence[Node]) -> list[Finding]:
    """That Slurm knows GPUs at all, and that they have types."""
    total = sum(node.gpu_total for node in nodes)
    untyped = sorted(node.name for node in nodes if node.gpus.get(""))
    out = [
        rule(
            "gpus",
            total > 0,
            f"{total} GPUs on {sum(bool(n.gpu_total) for n in nodes)} nodes",
            "slurm.conf: GresTypes=gpu and Gres=gpu:TYPE:COUNT on the nodes; gres.conf: File=",
        )
    ]
    if untyped:
        out.append(
            Finding(
                "gpu types",
                "warning",
                f"GPUs without a type on {', '.join(untyped[:5])}",
                "slurm.conf, gres.conf: name the type, if budgets or weights tell them apart",
            )
        )
    return out


def snapshot_place(path: Path, kind: str, theirs: Path | None) -> Finding | None:
    """What is wrong with where the snapshot lies; None: nothing. `kind` as files.kind says it,
    `theirs` is a folder on its way that others may write in."""
    if kind in ("fifo", "socket", "device"):
        return Finding(
            "snapshot",
            "error",
            f"{path} is a {kind}: slurmctld, which opens it at each submission, hangs at it",
            f"run `rm {path}; sbudget sweep`; to free a slurmctld that hangs, `: > {path}` first",
        )
    if theirs is not None:
        return Finding(
            "snapshot",
            "error",
            f"others may write in {theirs}, so they decide what slurmctld reads",
            f"chmod go-w {theirs}",
        )
    return None


def ledger_file(path: Path, mode: int) -> Finding | None:
    """Who may write the ledger's file may change every budget; None: not everybody may."""
    if not mode & 0o002:
        return None
    return Finding("ledger", "error", f"everybody may write {path}", f"chmod o-w {path}")


def snapshot_age(published_at: int | None, max_age: int, now: int) -> Finding:
    """Whether the hook has a snapshot that it will use. None: there is none, or not a whole one."""
    if published_at is None:
        return Finding("snapshot", "error", "no snapshot to read", "run `sbudget sweep`")
    age = now - published_at
    return rule(
        "snapshot",
        -60 <= age <= max_age,
        f"published {age} s ago" if age >= 0 else f"published {-age} s in the future",
        "run `sbudget sweep` at least that often; check this host's clock",
    )
