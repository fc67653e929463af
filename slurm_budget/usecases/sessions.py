"""Telling sessions that their time is nearly over: once each, remembered in the ledger.

The ledger hears of it after the deed: a kill between the two says it a second time, which is
harmless, while the other order could lose it. A pause does not stop it, for it changes no job, and
what it tells of is Slurm's own doing.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from slurm_budget.core.sessions import due
from slurm_budget.errors import SlurmUnreachable
from slurm_budget.ledger.store import Ledger
from slurm_budget.ports import JobPort
from slurm_budget.state.jobs import Job
from slurm_budget.state.sweep import SweepPolicy

AT_MOST = 20
"""Sessions told in one sweep; the others hear it in the next."""


@dataclass(slots=True)
class Told:
    """Job ids of the sessions that were told, and of those that could not be, with the reason."""

    jobs: list[int] = field(default_factory=list)
    left: list[tuple[int, str]] = field(default_factory=list)


def warn(
    slurm: JobPort, ledger: Ledger, cluster: str, jobs: Iterable[Job], policy: SweepPolicy, now: int
) -> Told:
    """Tell the sessions that have not heard yet.

    What Slurm refuses or cannot do is not tried again. What it could not be asked is left to the
    next sweep.
    """
    told = Told()
    notices = due(jobs, policy, now)
    if not notices:
        return told
    said = ledger.notices_since(cluster, notices[0].at)
    for notice in [notice for notice in notices if notice.key not in said][:AT_MOST]:
        try:
            deed = slurm.notify(notice.job_id, notice.text)
        except SlurmUnreachable:
            break
        ledger.record_notice(cluster, notice, now, deed.outcome)
        if deed.outcome == "done":
            told.jobs.append(notice.job_id)
        elif deed.outcome != "gone":
            told.left.append((notice.job_id, f"not warned: {deed.detail}"))
    return told
