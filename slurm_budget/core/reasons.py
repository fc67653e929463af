"""Slurm's reasons why a job waits, in plain words.

The words are those of `squeue -O Reason` (slurm's job_state_reason table, 22.05 to 26.05). Limits
have names that are put together, and are read so: `QOSGrpGRES` is a limit of a QOS, of all its jobs
together, on GRES.

    >>> plain("Priority")
    'jobs with a higher priority wait for the same nodes, and come first'
    >>> plain("QOSMaxGRESPerUser")
    'a limit of its QOS is reached: GPUs (GRES) of one user'
    >>> plain("SomethingNew")
    ''
"""

import re

REASONS = {
    "None": "the scheduler has not looked at it yet",
    "Resources": "it is among the first in line, and waits for nodes and GPUs to become free",
    "Priority": "jobs with a higher priority wait for the same nodes, and come first",
    "JobHeldUser": "its user holds it; `scontrol release JOBID` lets it go on",
    "JobHeldAdmin": "an administrator holds it, and must release it (`scontrol release JOBID`)",
    "JobHoldMaxRequeue": "it was requeued so often that Slurm holds it (max_batch_requeue)",
    "launch failed requeued held": "its launch failed; an administrator must release it",
    "job requeued in held state": "it was requeued and is held (`scontrol release JOBID`)",
    "Dependency": "a job that it depends on has not come so far yet",
    "DependencyNeverSatisfied": "what it depends on cannot come any more: cancel it",
    "BeginTime": "it may not start before the time it was given (--begin)",
    "JobArrayTaskLimit": "as many tasks of its array run as may at once (%)",
    "Cleaning": "what is left of its last run is being cleaned up",
    "BadConstraints": "no node can ever fulfil what it asks for: change it or cancel it",
    "ReqNodeNotAvail": "nodes that it needs are down, drained, reserved or in use otherwise",
    "Nodes required for job are DOWN": "so many of the nodes that it needs are down, drained or"
    " reserved that it cannot start",
    "NodeDown": "a node that it needs is down",
    "PartitionDown": "its partition is down",
    "PartitionInactive": "its partition is inactive",
    "PartitionNodeLimit": "it asks for more nodes than its partition allows, or has",
    "PartitionTimeLimit": "its time limit is above that of its partition",
    "PartitionConfig": "its partition does not allow what it asks for",
    "AccountNotAllowed": "its account may not use its partition",
    "QOSNotAllowed": "its QOS may not be used in its partition or by its account",
    "QOSJobLimit": "as many jobs of its QOS run as may",
    "QOSResourceLimit": "its QOS has as many resources as it may",
    "QOSTimeLimit": "its QOS has used the time that it may",
    "QOSUsageThreshold": "its QOS needs a better fairshare than it has",
    "InvalidAccount": "its account does not exist any more: an administrator must see to it",
    "InvalidQOS": "its QOS does not exist any more: an administrator must see to it",
    "Reservation": "it waits for its reservation to begin",
    "ReservationDeleted": "its reservation was deleted: change it or cancel it",
    "Licenses": "it waits for a license",
    "Deadline": "it cannot end before its deadline",
    "Prolog": "the prolog of its nodes runs",
    "FrontEndDown": "no front end node is up",
    "SchedDefer": "it asks to start at once and the scheduler is set to defer",
    "ReservationMaxDuration": "it is longer than its reservation",
    "FedJobLock": "the clusters of the federation agree on who starts it",
    "OutOfMemory": "a run of it had too little memory",
    "NodeFailure": "a node of it failed",
    "SystemFailure": "slurmctld or the network failed when it was started; it is tried again",
    "MaxRequeue": "it was requeued as often as is allowed",
    "MaxMemPerLimit": "it asks for more memory per CPU or node than is allowed",
    "BurstBufferResources": "it waits for room in the burst buffer",
    "BurstBufferStageIn": "its data are being staged in",
}
"""By Slurm's word. Sentences without a capital and without a full stop."""

_LIMIT = re.compile(r"(QOS|Assoc)(Grp|Max)(.+)", re.ASCII)
_OF = {"QOS": "its QOS", "Assoc": "its account or user"}
_WHAT = {
    "GRES": "GPUs (GRES)",
    "CPU": "CPUs",
    "Cpu": "CPUs",
    "Node": "nodes",
    "Mem": "memory",
    "Jobs": "jobs",
    "Job": "jobs",
    "SubmitJobs": "submitted jobs",
    "WallDuration": "time limits",
    "Wall": "time limits",
    "Billing": "billing units",
    "License": "licenses",
    "BB": "burst buffer",
    "Energy": "energy",
    "Unknown": "a resource",
}


def plain(reason: str) -> str:
    """What a reason means; empty for one that we do not know."""
    word = reason.partition(",")[0].strip()
    if word in REASONS:
        return REASONS[word]
    found = _LIMIT.fullmatch(word)
    if found is None:
        return ""
    scope, _, rest = found.groups()
    per = ""
    for suffix, text in (
        ("PerUser", " of one user"),
        ("PerAccount", " of one account"),
        ("PerAcct", " of one account"),
        ("PerJob", " of one job"),
        ("PerNode", " on one node"),
    ):
        if rest.endswith(suffix):
            rest, per = rest.removesuffix(suffix), text
    spent = " minutes" if rest.endswith(("Minutes", "RunMinutes")) else ""
    rest = rest.removesuffix("RunMinutes").removesuffix("Minutes").removesuffix("Limit")
    what = _WHAT.get(rest, rest or "jobs")
    return f"a limit of {_OF[scope]} is reached: {what}{spent}{per}"
