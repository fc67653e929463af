"""After how long Slurm may preempt a run by itself.

    partition QOS    job QOS                   slurm.conf    effective
    0                02:00:00                  01:00:00      0
    0                02:00:00, OverPartQOS     01:00:00      02:00:00
    unset            02:00:00                  01:00:00      02:00:00
    unset            unset                     01:00:00      01:00:00

0 is a time like any other, and unset is none. Where nothing is set, no run is exempt.
"""

from slurm_budget.state.slurm import Preemption, Qos


def effective(job: Qos | None, partition: Qos | None, everywhere: int | None) -> int:
    """PreemptExemptTime in seconds, of the job's QOS, its partition's, or slurm.conf."""
    chain = [partition, job]
    if job is not None and "OverPartQOS" in job.flags:
        chain.reverse()
    times = [qos.preempt_exempt_time for qos in chain if qos is not None]
    return next((time for time in [*times, everywhere] if time is not None), 0)


def exempt(preemption: Preemption, qos: str, partition: str, default: int) -> int:
    """The same by names; `default` where the job's QOS was not observed."""
    if qos not in preemption.qos:
        return default
    above = preemption.qos.get(preemption.partition_qos.get(partition, ""))
    return effective(preemption.qos[qos], above, preemption.exempt)
