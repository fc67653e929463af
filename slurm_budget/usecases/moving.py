"""Moving waiting jobs to the class that was decided."""

from collections.abc import Callable

from slurm_budget.core import live
from slurm_budget.core.retag import held_for_budget
from slurm_budget.ports import JobPort
from slurm_budget.state.sweep import SweepPolicy
from slurm_budget.usecases.swept import Swept


def move_classes(
    slurm: JobPort,
    out: Swept,
    policy: SweepPolicy,
    *,
    check: Callable[[], None] = lambda: None,
    between: Callable[[str], None] = lambda step: None,
) -> None:
    """At most `max_updates` jobs; an array is one. What a budget gives up comes before what it
    gives, and if a job could not be moved out (it may have started) nothing is given before the
    next sweep has seen why: what is promised together stays within the budget."""
    wanted = sorted(out.decision.verdicts.retags, key=lambda retag: retag.class_ == "funded")
    kept, out.later = False, len(wanted)
    for retag in wanted[: policy.max_updates]:
        if kept and retag.class_ == "funded":
            break
        out.later -= 1
        check()
        where = live.address(retag.job)
        if held_for_budget(retag.job):
            # whatever it becomes, it no longer waits for its budget; and first, for a kill behind
            # it leaves a job that waits, and none that is held for ever
            slurm.release(where)
            check()
        deed = slurm.retag(where, retag.qos, retag.admin_comment)
        if deed.outcome == "done":
            out.retagged.append(retag)
        else:
            kept = kept or live.class_of(retag.job) == "funded"
            if deed.outcome != "gone":
                out.refused.append((retag.job.id, deed.detail))
        between("retagged")
