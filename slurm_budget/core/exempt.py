"""After how long Slurm may preempt a run by itself.

    partition QOS    job QOS                   slurm.conf    effective
    0                02:00:00                  01:00:00      0
    0                02:00:00, OverPartQOS     01:00:00      02:00:00
    unset            02:00:00                  01:00:00      02:00:00
    unset            unset                     01:00:00      01:00:00

0 is a time like any other, and unset is none. Where nothing is set, no run is exempt.
"""

from slurm_budget.state.jobs import Job
from slurm_budget.state.slurm import Preemption, Qos
from slurm_budget.state.sweep import SweepPolicy

NOT_OBSERVED = Preemption()


def effective(job: Qos | None, partition: Qos | None, everywhere: int | None) -> int:
    """PreemptExemptTime in seconds, of the job's QOS, its partition's, or slurm.conf."""
    chain = [partition, job]
    if job is not None and "OverPartQOS" in job.flags:
        chain.reverse()
    times = [qos.preempt_exempt_time for qos in chain if qos is not None]
    return next((time for time in [*times, everywhere] if time is not None), 0)


def exempt(job: Job, policy: SweepPolicy, preemption: Preemption = NOT_OBSERVED) -> int:
    """Seconds after which Slurm may preempt a run; the setting where its QOS was not observed."""
    if job.qos not in preemption.qos:
        return policy.exempt
    partition = preemption.partitions.get(job.partitions[0]) if job.partitions else None
    above = preemption.qos.get(partition.qos) if partition else None
    return effective(preemption.qos[job.qos], above, preemption.exempt)
