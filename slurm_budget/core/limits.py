"""Limits of a funded QOS, from the budget of its account.

GrpTRES bounds the GPUs that an account's funded jobs hold at once: burst x budget, in whole nodes,
and never below the largest job that the account may run. It holds even when nothing of ours runs.
It is wide on purpose: a tight one starves large jobs, whose account must be able to run above its
average to reach it over the week.

    >>> grp_gpus(budget_ms=16 * 604_800_000, window=604_800, burst=6.0, weight=1000, node=8)
    96
    >>> grp_gpus(budget_ms=604_800_000, window=604_800, burst=1.0, weight=1000, node=8)   # one node
    8
    >>> grp_gpus(budget_ms=0, window=604_800, burst=6.0, weight=1000, node=8)
    0

GrpTRESMins (`backstop`, off by default) bounds used GPU-minutes. Slurm's usage decays with its
half-life h, so a steady g GPUs do not add up to g x window but settle at g x h / ln 2; the backstop
is counted from that. At this limit Slurm kills running jobs, or with
AccountingStorageEnforce=safe starts none that does not fit whole: hence off.

    >>> grp_gpu_minutes(16 * 604_800_000, 604_800, 1.5, 1000, half_life=604_800)
    349017
"""

import math
from collections.abc import Mapping
from fractions import Fraction

from slurm_budget.core.weights import ONE_GPU, counted_type
from slurm_budget.errors import BadInput
from slurm_budget.text import tres


def weight_of(gres: str, weights: Mapping[str, int]) -> int:
    """Thousandths that one GPU of a budget's type counts; a budget of all types counts whole ones,
    since a job of any type may use it."""
    kind = counted_type(gres)
    return ONE_GPU if kind is None else (weights.get(kind, ONE_GPU) or ONE_GPU)


def average_gpus(budget_ms: int, window: int, weight: int = ONE_GPU) -> Fraction:
    """GPUs on average, of the type that weighs `weight` thousandths."""
    return Fraction(budget_ms, window * weight)


def grp_gpus(
    budget_ms: int, window: int, burst: float, weight: int, node: int, largest_job: int = 0
) -> int:
    """GPUs for GrpTRES; 0 only for a budget of 0, which forbids new funded jobs."""
    if budget_ms == 0:
        return 0
    whole = max(node, 1)
    burst_gpus = math.ceil(average_gpus(budget_ms, window, weight) * Fraction(str(burst)))
    return math.ceil(max(burst_gpus, largest_job, 1) / whole) * whole


def grp_gpu_minutes(
    budget_ms: int, window: int, backstop: float, weight: int, half_life: int
) -> int:
    """GPU-minutes for GrpTRESMins. Raises BadInput where Slurm's usage never decays."""
    if half_life <= 0:
        raise BadInput(
            "qos.backstop needs usage that decays, but PriorityDecayHalfLife is 0",
            where="slurm.conf",
            mend="set PriorityDecayHalfLife (7-0 suits a window of 7 days), or backstop = 0",
        )
    steady = float(average_gpus(budget_ms, window, weight)) * half_life / math.log(2)
    return math.ceil(steady * backstop / 60)


def largest_node(gres: str, node_gpus: Mapping[str, int]) -> int:
    """GPUs of the largest node of a budget's type; of any type where that one is not known."""
    return node_gpus.get(counted_type(gres) or "", 0) or node_gpus.get("", 0)


def gpu_part(text: str) -> str:
    """Only the GPU items of a limit, in canonical form: the rest is not ours.

    >>> gpu_part("cpu=5,gres/gpu:h100=4,gres/gpu=8,mem=2G")
    'gres/gpu=8,gres/gpu:h100=4'
    """
    items = tres.limits(tres.canonical(text))
    return ",".join(
        f"{name}={value}" for name, value in sorted(items.items()) if is_gpu(name) and value != "-1"
    )


def is_gpu(name: str) -> bool:
    """`gres/gpu` and `gres/gpu:h100`, not `gres/gpumem`."""
    return name == "gres/gpu" or name.startswith("gres/gpu:")


def to_set(old: str, new: str) -> str:
    """What to write so that `old` becomes `new`: Slurm keeps items that are not named, so those
    that must go are set to -1.

    >>> to_set("gres/gpu=8", "gres/gpu:h100=16")
    'gres/gpu=-1,gres/gpu:h100=16'
    """
    gone = {name: "-1" for name in tres.limits(old) if name not in tres.limits(new)}
    items = {**gone, **tres.limits(new)}
    return ",".join(f"{name}={value}" for name, value in sorted(items.items()))
