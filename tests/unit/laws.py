"""The two laws of requeueing, read off the accounting after every test on a real Slurm.

1. Nothing is requeued or preempted inside its protection.
2. Nothing is requeued while nobody is owed: behind each requeue stands an intent in the ledger, for
   an owed job or with another reason (the repair of a node).

What a node failure, `scancel` or a time limit ended has another state and is not looked at. A test
that requeues by hand says so with the mark `requeued_by_hand`.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from slurm_budget.core import live
from slurm_budget.core.marker import parse
from slurm_budget.state.intent import Intent

FIELDS = ("JobIDRaw", "State", "QOS", "Start", "End", "TimelimitRaw", "AdminComment")


@dataclass(frozen=True)
class Row:
    """One start of a job as sacct has it; `time_limit` in seconds, None: unlimited."""

    job_id: int
    state: str
    qos: str
    start: int
    end: int | None
    time_limit: int | None
    admin_comment: str


def rows(text: str) -> list[Row]:
    """From `sacct -D -X -n -P -o FIELDS`, times in epoch seconds; without what never ran."""
    out = []
    for line in text.splitlines():
        cells = line.split("|", len(FIELDS) - 1)
        if len(cells) == len(FIELDS) and cells[3].isdigit():
            job, state, qos, start, end, limit, comment = cells
            minutes = int(limit) * 60 if limit.isdigit() else None
            over = int(end) if end.isdigit() else None
            out.append(Row(int(job), state, qos, int(start), over, minutes, comment))
    return out


def broken(found: Iterable[Row], intents: Iterable[Intent], default: int) -> list[str]:
    """Each breach in a sentence. `default` is the site's minimum runtime in seconds, for rows of
    which no marker is known: sacct forgets it between a requeue and the end of the next run."""
    found = list(found)
    markers = {row.job_id: mark for row in found if (mark := parse(row.admin_comment)) is not None}
    meant = {
        (intent.job_id, intent.run_start)
        for intent in intents
        if intent.step not in ("planned", "left") and (intent.for_job is not None or intent.reason)
    }
    out = []
    for row in found:
        if row.state not in ("REQUEUED", "PREEMPTED") or row.end is None:
            continue
        mark = parse(row.admin_comment) or markers.get(row.job_id)
        least = default if mark is None else mark.min_runtime
        if row.time_limit is not None:
            least = min(least, row.time_limit)
        ran = row.end - row.start
        if live.class_of_qos(row.qos) == "funded" and ran < least:
            out.append(
                f"job {row.job_id} in {row.qos} was {row.state} {ran} s after its start, "
                f"inside its protection of {least} s"
            )
        if row.state == "REQUEUED" and (row.job_id, row.start) not in meant:
            out.append(f"job {row.job_id} was requeued, and no intent says for whom")
    return out
