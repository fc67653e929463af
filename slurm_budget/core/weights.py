"""What a GPU counts: weighted thousandths of a GPU.

A site may say that an h200 counts 1.5 and a MIG slice 0.4; a type that is not named counts 1. A
rate times seconds is GPU-milliseconds, so no figure in the ledger is ever a fraction.

    >>> rate({"h100": 4, "": 1}, {"h100": 1500})
    7000
    >>> rate({"h100": 4, "a100_3g.20gb": 2}, {"a100_3g.20gb": 400}, "gres/gpu:a100_3g.20gb")
    800
"""

from collections.abc import Mapping

from slurm_budget.state.budget import ALL_GPUS
from slurm_budget.state.jobs import GpuCounts

ONE_GPU = 1000
"""The weight of a GPU that no setting names, in thousandths."""


def counted_type(gres: str) -> str | None:
    """The GPU type that `gres/gpu:h100` counts; None for `gres/gpu`, which counts all."""
    return None if gres == ALL_GPUS else gres.removeprefix(ALL_GPUS + ":")


def rates(gpus: GpuCounts, weights: Mapping[str, int]) -> dict[str, int]:
    """Weighted thousandths of a GPU by type; the key of an untyped GPU is the empty string."""
    return {kind: count * weights.get(kind, ONE_GPU) for kind, count in gpus.items()}


def rate(gpus: GpuCounts, weights: Mapping[str, int], gres: str = ALL_GPUS) -> int:
    """Weighted thousandths of a GPU that count for a budget of `gres`."""
    by_type = rates(gpus, weights)
    only = counted_type(gres)
    return sum(by_type.values()) if only is None else by_type.get(only, 0)
