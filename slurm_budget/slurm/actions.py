"""The deeds: signal, notify, requeue, retag. What Slurm answers is read by one pure table. Where it
does not answer they raise SlurmUnreachable: whether the deed was done is then not known."""

from slurm_budget.errors import SlurmUnreachable
from slurm_budget.slurm.command import Commands, Reply
from slurm_budget.state.jobs import Deed

_BENIGN = {
    "invalid job id": "the job is gone",
    "job/step already completing or completed": "the job has ended",
    "job is pending execution": "the job is pending already",
    "job has already finished": "the job has ended",
    "job is no longer pending execution": "the job has started",
    "jobs already in pending state": "the job is pending already",
}
_REFUSED = {
    "only batch jobs are accepted": "not a batch job",
    "requested operation is presently disabled": "not requeueable (--no-requeue)",
    "access/permission denied": "no permission: run as root, SlurmUser or a Slurm administrator",
    "invalid user id": "no permission: root and SlurmUser alone may do this",
    "invalid qos": "the QOS is not there: run `sbudget sync`",
    "invalid account or account/partition": "the association is not there: run `sbudget sync`",
}


def read(reply: Reply) -> Deed:
    """What a reply of scontrol or scancel means. Exit 0 with text on stderr is not success."""
    text = (reply.err + reply.out).lower()
    if reply.unreachable:
        raise SlurmUnreachable(
            f"{reply.argv[0]} failed: {(reply.err or reply.out).strip()}",
            where=" ".join(reply.argv[:4]),
            mend="check that slurmctld answers: `scontrol ping`",
        )
    for sign, meaning in _BENIGN.items():
        if sign in text:
            return Deed("gone", meaning)
    for sign, meaning in _REFUSED.items():
        if sign in text:
            return Deed("refused", meaning)
    if reply.code or reply.err.strip():
        return Deed("failed", (reply.err or reply.out).strip() or f"exit {reply.code}")
    return Deed("done", "")


def requeue(commands: Commands, job: str) -> Deed:
    """`Incomplete` keeps Slurm from restarting a job that has finished meanwhile.

    22.05 answers 0 without a word then, and for a job that is pending: the next sweep sees it.
    """
    return read(commands.run("scontrol", "requeue", "Incomplete", job))


def signal(commands: Commands, job: str, name: str) -> Deed:
    """Warn a job so that it can write its checkpoint: its batch shell and all its steps.

    Each needs a call of its own: `--full` reaches the batch shell with its children, but not what
    srun has started, and srun keeps SIGCONT to itself.
    """
    steps = read(commands.run("scancel", f"--signal={name}", job))
    if steps.outcome != "done":
        return steps
    return read(commands.run("scancel", f"--signal={name}", "--full", job))


def notify(commands: Commands, job_id: int, text: str) -> Deed:
    """A line on the terminal of the job's salloc or srun; for a batch job, in its error file.

    `salloc --no-shell` has neither, which Slurm words as it words `--no-requeue`.
    """
    reply = commands.run("scontrol", "notify", str(job_id), text)
    if "requested operation is presently disabled" in reply.err.lower():
        return Deed("gone", "nobody is there to read it")
    return read(reply)


def release(commands: Commands, job: str) -> Deed:
    """End the hold in which the hook left a job that waits for budget."""
    return read(commands.run("scontrol", "release", job))


def retag(commands: Commands, job: str, qos: str, admin_comment: str) -> Deed:
    """Move a pending job to another QOS and write the marker beside it, in one request."""
    return read(
        commands.run(
            "scontrol", "update", f"JobId={job}", f"QOS={qos}", f"AdminComment={admin_comment}"
        )
    )
