"""A job of pyslurm as the row that squeue would have printed for it, so that both are read alike.

pyslurm's attributes as of 25.11. It splits texts for its users; they are put together again here.
Its resource_sharing is what OverSubscribe was before 26.05, with a libslurm of 26.05 too.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from slurm_budget.errors import SlurmUnreachable
from slurm_budget.slurm import squeue
from slurm_budget.state.jobs import Ended


def _text(value: object) -> str:
    return "" if value is None else str(value)


def rows(jobs: Iterable[Any]) -> Iterator[dict[str, str]]:
    """The fields of squeue.FIELDS, and ExcNodes, for each `pyslurm.Job` that lives."""
    users: dict[int, str] = {}
    for job in jobs:
        if job.state in squeue.LIVE:
            if job.user_id not in users:
                users[job.user_id] = job.user_name or str(job.user_id)
            yield _row(job, users[job.user_id])


def ended(jobs: Iterable[Any]) -> Iterator[Ended]:
    """The `pyslurm.Job`s that no longer live."""
    for job in jobs:
        if job.state in squeue.ENDED:
            yield Ended(
                job.id,
                job.state,
                job.submit_time or 0,
                job.start_time or None,
                job.end_time or None,
            )


def _row(job: Any, user: str) -> dict[str, str]:
    asked = job.allocated_tres or job.requested_tres
    return {
        "JobID": str(job.id),
        "JobArrayID": _label(job),
        "UserName": user,
        "Account": _text(job.account),
        "Partition": _text(job.partition),
        "QOS": _text(job.qos),
        "State": job.state,
        "Reason": _text(job.state_reason),
        "SubmitTime": _text(job.submit_time),
        "EligibleTime": _text(job.eligible_time),
        "StartTime": _text(job.start_time),
        "EndTime": _text(job.end_time),
        "TimeLimit": _text(job.time_limit),
        "tres-alloc": _resources(asked),
        "tres-per-node": _per_node(job, asked),
        "NodeList": _text(job.allocated_nodes),
        "NumNodes": _text(job.num_nodes),
        "NumCPUs": _text(job.cpus),
        "PriorityLong": _text(job.priority),
        "Requeue": str(int(job.is_requeueable)),
        "BatchFlag": str(int(job.is_batch_job)),
        "ArrayJobID": _text(job.array_id),
        "PreemptTime": _text(job.preempt_time),
        "RestartCnt": _text(job.requeue_count),
        "Dependency": _dependency(job.dependencies),
        "Feature": ",".join(job.constraints),
        "OverSubscribe": _text(job.resource_sharing),
        "MaxNodes": _text(job.max_nodes or job.num_nodes),
        "tres-per-task": _resources(job.tres_per_task),
        "TimeUsed": _clock(job.run_time),
        "ReqNodes": _text(job.required_nodes),
        "ExcNodes": _text(job.excluded_nodes),
        "admin_comment": _text(job.admin_comment),
    }


def _clock(seconds: int | None) -> str:
    """Seconds as squeue writes them."""
    if seconds is None:
        return ""
    return f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def _label(job: Any) -> str:
    """`57_[5-9%4]`, `57_0`, `60+1` or `12`. pyslurm tells of no task 0: it takes 0 for no value."""
    if job.heterogeneous_id:
        return f"{job.heterogeneous_id}+{job.heterogeneous_offset or 0}"
    if not job.array_id:
        return str(job.id)
    if job.array_tasks_waiting:
        throttle = f"%{job.array_tasks_parallel}" if job.array_tasks_parallel else ""
        return f"{job.array_id}_[{job.array_tasks_waiting}{throttle}]"
    return f"{job.array_id}_{job.array_task_id or 0}"


def _resources(found: Any) -> str:
    """GPUs and nodes of pyslurm's TrackableResources, as Slurm writes them."""
    if found is None:
        return ""
    items = [f"gres/{name}={item.count}" for name, item in found.gres.items()]
    if found.node is not None:
        items.append(f"node={found.node.count}")
    return ",".join(items)


def _per_node(job: Any, asked: Any) -> str:
    """GPUs asked for by node. Raises SlurmUnreachable where pyslurm took a GPU type of digits alone
    (`gpu:4090:2`) for a count: then a node would have more than all nodes together."""
    found = job.gres_per_node
    by_node = found.get("gres/gpu", found.get("gpu", 0))
    if by_node > _gpus(asked):
        raise SlurmUnreachable(
            f"job {job.id} asks for {by_node} GPUs on each node and {_gpus(asked)} in all",
            where="pyslurm.Jobs.load",
            mend='pyslurm misreads GPU types of digits alone: set slurm.backend = "commands"',
        )
    return ",".join(f"{name}:{count}" for name, count in found.items())


def _gpus(asked: Any) -> int:
    """All GPUs of pyslurm's TrackableResources; the untyped figure is the sum of all types."""
    if asked is None:
        return 0
    if "gpu" in asked.gres:
        return int(asked.gres["gpu"].count)
    return sum(item.count for name, item in asked.gres.items() if name.startswith("gpu:"))


def _dependency(found: Mapping[str, Any] | None) -> str:
    if found is None:
        return ""
    items = [f"{kind}:{job}" for kind, jobs in found.items() if isinstance(jobs, list)
             for job in jobs]  # fmt: skip
    if found["singleton"]:
        items.append("singleton")
    return ("?" if found["satisfy"] == "any" else ",").join(items) or "other"
