"""What became of a job that has ended, and why earlier runs of a job were stopped. Pure."""

from collections import Counter
from collections.abc import Sequence

from slurm_budget.core import live
from slurm_budget.core.holders import Clock
from slurm_budget.state.answers import Answer, Known, Past
from slurm_budget.text.spoken import spoken

MOST_EARLIER = 5
_ENDS = {
    "COMPLETED": "completed",
    "FAILED": "failed",
    "TIMEOUT": "reached its time limit and was ended",
    "OUT_OF_MEMORY": "was ended because it used more memory than it had",
    "NODE_FAIL": "was ended because a node failed",
    "BOOT_FAIL": "was ended because a node did not boot",
    "DEADLINE": "was ended at its deadline",
    "LAUNCH_FAILED": "could not be launched",
    "REVOKED": "was taken over by another cluster of the federation",
}


def answer(rows: Sequence[Past], known: Known, clock: Clock) -> Answer:
    """For a job of which the queue knows nothing any more; `rows` oldest first, at least one."""
    last = rows[-1]
    mine = [row for row in rows if row.id == last.id]
    out = [_ended(last, known, clock)]
    tasks = {row.id: row.state for row in rows}
    if len(tasks) > 1:
        counts = ", ".join(f"{n} {state}" for state, n in Counter(tasks.values()).most_common())
        base = last.label.partition("_")[0]
        out.insert(0, f"Of array {base}, {counts}; below is {last.label}.")
    class_ = live.class_of_qos(last.qos)
    if last.gpu_total and last.start is not None:
        paid = "its protected part is charged" if class_ == "funded" else "it costs no budget"
        out.append(f"It ran {class_} (QOS {last.qos}) with {last.gpu_total} GPUs; {paid}.")
    out += earlier(mine[:-1] if _over(last) else mine, None, known, clock)
    return Answer(last.label, last.state, tuple(out), class_=class_ if last.gpu_total else "")


def _over(row: Past) -> bool:
    return row.state not in ("REQUEUED", "PREEMPTED")


def _ended(row: Past, known: Known, clock: Clock) -> str:
    who = f"Job {row.label} of {row.user} in {row.account}"
    if row.state in ("RUNNING", "PENDING", "SUSPENDED"):
        if known.jobs is None:
            return f"{who} is {row.state} by the accounting; the queue could not be read."
        return (
            f"{who} is {row.state} by the accounting, but the queue does not show it: either it is"
            " hidden from you, or its end was never recorded (`sacctmgr show runawayjobs`)."
        )
    when = "" if row.end is None else f" at {clock(row.end)}"
    if row.state == "CANCELLED":
        by = f" by {row.by}" if row.by else ""
        if row.start is None or (row.end is not None and row.end <= row.start):
            return f"{who} was cancelled{by}{when}, before it started."
        return f"{who} was cancelled{by}{when}{_after(row)}."
    if not _over(row):
        return f"{who} was stopped{when}{_after(row)}, and is in the queue no more."
    code = f" with exit code {row.exit_code}" if row.state == "FAILED" else ""
    return f"{who} {_ENDS.get(row.state, 'ended as ' + row.state)}{when}{code}{_after(row)}."


def _after(row: Past) -> str:
    if row.start is None or row.end is None:
        return ""
    return f", after {spoken(max(row.end - row.start, 0))}" + (f" on {row.nodes}" * bool(row.nodes))


def earlier(rows: Sequence[Past], start: int | None, known: Known, clock: Clock) -> list[str]:
    """Why runs before the one that began at `start` were stopped, the last ones, oldest first."""
    found = [
        _stopped(row, known, clock)
        for row in rows
        if row.start is not None and row.start != start and not _over(row)
    ]
    if len(found) > MOST_EARLIER:
        found = [f"It was stopped {len(found)} times; the last:", *found[-MOST_EARLIER:]]
    return found


def _stopped(row: Past, known: Known, clock: Clock) -> str:
    begin = f"Its run of {clock(row.start or 0)}"
    when = "" if row.end is None else f" at {clock(row.end)}"
    after = _after(row)
    if row.state == "PREEMPTED":
        return (
            f"{begin} was preempted by Slurm{when}{after}: a funded job needed the GPUs that it"
            " used as a preemptible one."
        )
    for intent in known.intents or ():
        if (intent.job_id, intent.run_start) == (row.id, row.start) and _carried_out(intent.step):
            return f"{begin} was requeued by the sweeper{when}{after}: {intent.reason}."
    since, until = known.intents_cover or (0, known.now)
    if known.intents is None or not since <= (row.end or 0) <= until:
        return (
            f"{begin} was requeued{when}{after}; whether by the sweeper, and for whom, stands in"
            " the ledger."
        )
    return (
        f"{begin} was requeued{when}{after} by hand (`scontrol requeue`) or by Slurm, not by the"
        " sweeper."
    )


def _carried_out(step: str) -> bool:
    return step in ("requeued", "done")
