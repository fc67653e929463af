"""Carry out the steps of a plan. What Slurm says is read by one pure function; what it did is for
the caller to see by reading again."""

import os
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock

from slurm_budget.core.plan import Change
from slurm_budget.errors import SlurmUnreachable
from slurm_budget.slurm import sacctmgr_steps, versions
from slurm_budget.slurm.command import Commands, Reply
from slurm_budget.slurm.sacctmgr_steps import Step
from slurm_budget.state.slurm import RowKey, SlurmState, WriteReport

SECONDS_A_ROW = 1.0
"""Time limit for a row of a load, beside that of a command; the slowest seen took 0.1 s."""

MOST_RETRIES = 40
"""Halvings of one step that looks for the row that is refused; then the rest counts as failed."""

_NOTHING = ("nothing modified", "nothing new added")
_CHATTER = ("done adding cluster in usec",)
_FOR_ALL = (
    "permission",
    "privilege",
    "not running a",
    "need to be",
    "accounting storage is disabled",
)


def refusal(reply: Reply) -> str:
    """Why Slurm did not do it; empty when it says that it did, or that nothing was to be done.

    The exit code does not tell: refusing a DefaultQOS exits 0, `Nothing modified` exits 0 or 1.
    """
    lines = [line.strip() for line in reply.err.splitlines()]
    said = [x for x in lines if x and not any(word in x.lower() for word in _CHATTER)]
    text = " ".join(line.removeprefix("sacctmgr: error: ") for line in said)
    if text:
        return text[:300]
    out = reply.out.strip()
    if reply.code and not any(word in out.lower() for word in _NOTHING):
        return out[-300:] or f"exit {reply.code}, and it said nothing"
    return ""


class _Run:
    """One write: what failed, what was not tried, and whether to stop."""

    def __init__(
        self, commands: Commands, progress: Callable[[int], None], stop: Callable[[], bool]
    ) -> None:
        self._commands, self._progress, self._stop = commands, progress, stop
        self._lock = Lock()
        self.failed: dict[RowKey, str] = {}
        self.not_tried: set[RowKey] = set()
        self.stopped = ""

    def step(self, step: Step) -> None:
        with self._lock:
            if not self.stopped and self._stop():
                self.stopped = "interrupted"
            if self.stopped:
                self.not_tried.update(row.key for row in step.rows)
                return
        try:
            self._try(step, [MOST_RETRIES])
        except SlurmUnreachable as bad:
            with self._lock:
                self.stopped = str(bad.what)
                self.not_tried.update(row.key for row in step.rows)
            return
        self._progress(len(step.rows))

    def _try(self, step: Step, retries: list[int]) -> None:
        why = refusal(self._call(step))
        if not why:
            return
        hopeless = any(word in why.lower() for word in _FOR_ALL)
        if len(step.rows) == 1 or hopeless or retries[0] <= 0:
            with self._lock:
                self.failed.update({row.key: why for row in step.rows})
            return
        retries[0] -= 1
        for half in step.split():
            self._try(half, retries)

    def _call(self, step: Step) -> Reply:
        limit = self._commands.timeout + SECONDS_A_ROW * len(step.rows)
        if step.verb != "load":
            reply = self._commands.run(*step.argv(), timeout=limit)
        else:
            descriptor, name = tempfile.mkstemp(prefix="sbudget-", suffix=".cfg")
            try:
                with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                    file.write(step.text())
                reply = self._commands.run(*step.argv(name), timeout=limit)
            finally:
                Path(name).unlink(missing_ok=True)
        if reply.unreachable:
            raise SlurmUnreachable(
                f"slurmdbd stopped answering: {(reply.err or reply.out).strip()[:200]}",
                where=" ".join(reply.argv[:5]),
                mend="look at slurmdbd, then sync again: it finishes what is left",
            )
        return reply


def write(
    commands: Commands,
    changes: Sequence[Change],
    state: SlurmState,
    version: versions.Version,
    progress: Callable[[int], None],
    stop: Callable[[], bool],
) -> WriteReport:
    """Carry out `changes`, which were planned against `state`. `progress` is told the rows done."""
    run = _Run(commands, progress, stop)
    for parallel, steps in sacctmgr_steps.phases(changes, state, version):
        workers = versions.parallel_loads(version) if parallel else 1
        if workers > 1:
            # Smaller loads, so that all workers have work; still enough rows to be worth reading
            # all associations for each.
            halves = list(_shares(steps, workers))
            with ThreadPoolExecutor(workers) as pool:
                list(pool.map(run.step, halves))
            continue
        for step in steps:
            run.step(step)
    return WriteReport(run.failed, frozenset(run.not_tried), run.stopped)


def _shares(steps: Sequence[Step], workers: int) -> Sequence[Step]:
    rows = [row for step in steps for row in step.rows]
    size = max(20, min(sacctmgr_steps.MOST_LINES, -(-len(rows) // workers)))
    return [
        Step("load", steps[0].cluster, tuple(rows[at : at + size]))
        for at in range(0, len(rows), size)
    ]
