"""The QOS that the budgets want: `preemptible`, and `funded-<account>` where there is a budget."""

from collections.abc import Mapping

from slurm_budget.core import limits
from slurm_budget.core.weights import ONE_GPU
from slurm_budget.state.budget import BudgetNode
from slurm_budget.state.slurm import QosPolicy, SlurmState, Wanted
from slurm_budget.text import tres
from slurm_budget.text.spoken import spoken

GPU_LIMITS = ("grptres", "grptresmins")


def slurm_time(seconds: int) -> str:
    """Seconds as Slurm writes them: `00:20:00`, `1-02:00:00`."""
    days, rest = divmod(seconds, 86400)
    hours, rest = divmod(rest, 3600)
    clock = f"{hours:02}:{rest // 60:02}:{rest % 60:02}"
    return f"{days}-{clock}" if days else clock


def preemptible(policy: QosPolicy) -> Wanted:
    """The QOS of all that is not paid from a budget."""
    exempt, grace = policy.preempt_exempt_time, policy.grace_time
    return Wanted(
        "qos",
        policy.preemptible,
        fields={
            "priority": str(policy.preemptible_priority),
            "preemptmode": "requeue",
            "preemptexempttime": slurm_time(exempt),
            "gracetime": slurm_time(grace),
            "usagefactor": f"{policy.usage_factor:g}",
        },
        why={
            "priority": "below the funded QOS (qos.preemptible_priority)",
            "preemptmode": "preempted runs go back to the queue",
            "preemptexempttime": f"a run is left alone for {spoken(exempt)}"
            " (qos.preempt_exempt_time)",
            "gracetime": f"{spoken(grace)} to write a checkpoint (qos.grace_time)",
            "usagefactor": "idle GPUs are nearly free (qos.usage_factor)",
        },
    )


def funded(
    node: BudgetNode,
    budget_ms: int,
    state: SlurmState,
    policy: QosPolicy,
    window: int,
    largest_job: int,
) -> Wanted:
    """The QOS of an account's funded jobs. `largest_job` in GPUs; 0 where nothing is known."""
    name = policy.funded(node.name)
    weight = limits.weight_of(node.gres, policy.weights)
    nodes = limits.largest_node(node.gres, state.node_gpus)
    cap = limits.grp_gpus(budget_ms, window, policy.burst, weight, nodes, largest_job)
    average = limits.average_gpus(budget_ms, window, weight)
    sum_ = f"{policy.burst:g} x {float(average):g} GPUs"
    if weight != ONE_GPU:
        sum_ += f" of weight {weight / ONE_GPU:g}"
    if nodes > 1:
        sum_ += f", in whole nodes of {nodes}"
    if cap > limits.grp_gpus(budget_ms, window, policy.burst, weight, nodes):
        sum_ += f", at least the largest job ({largest_job} GPUs)"
    mins = ""
    why_mins = "no backstop (qos.backstop = 0)"
    if policy.backstop > 0:
        minutes = limits.grp_gpu_minutes(
            budget_ms, window, policy.backstop, weight, state.half_life
        )
        mins = f"{node.gres}={minutes}"
        why_mins = (
            f"{policy.backstop:g} x {float(average):g} GPUs x half-life "
            f"{spoken(state.half_life)} / ln 2, in minutes"
        )
    seen = state.qos.get(name)
    preempt = (seen.preempt if seen else frozenset()) | {policy.preemptible}
    return Wanted(
        "qos",
        name,
        group=node.name,
        fields={
            "priority": str(policy.funded_priority),
            "preempt": ",".join(sorted(preempt)),
            "grptres": f"{node.gres}={cap}",
            "grptresmins": mins,
        },
        why={
            "priority": f"above {policy.preemptible} (qos.funded_priority)",
            "preempt": "funded jobs take GPUs from preemptible ones",
            "grptres": "budget 0: no new funded jobs" if budget_ms == 0 else sum_,
            "grptresmins": why_mins,
        },
    )


def retired(name: str, account: str, state: SlurmState) -> Wanted:
    """A funded QOS whose budget is gone: nothing new starts in it, what runs is left to end.

    It is not deleted, since accounting rows name it, and it stays in the associations' lists, since
    a pending job whose QOS is taken away is stuck, while one at its limit can be retagged.
    """
    old = tres.limits(limits.gpu_part(state.qos[name].grp_tres))
    items = sorted({*old, "gres/gpu"})
    return Wanted(
        "qos",
        name,
        group=account,
        fields={"grptres": ",".join(f"{item}=0" for item in items)},
        why={"grptres": "its account has no budget now: no new funded jobs"},
    )


def largest_jobs(state: SlurmState) -> Mapping[str, int]:
    """GPUs of the largest job that an account may run, where MaxTRES says so."""
    out = {}
    for (account, user, _), row in state.associations.items():
        gpus = tres.total(tres.gpus(row.max_tres)) if not user and "gpu" in row.max_tres else 0
        if gpus:
            out[account] = gpus
    return out
