"""Figures for Prometheus, by its conventions: base units, `_total` for counters, few labels.

What could not be read is left out, never 0; `slurm_budget_up` says which source failed. Labels are
bounded: accounts of the budgets (jobs of all others count as `other`), two classes, three sources.
"""

from collections.abc import Iterable, Iterator
from math import inf

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from slurm_budget.core.overview import Load
from slurm_budget.usecases.overview import Overview

SOURCES = ("slurm", "ledger", "snapshot")
_CLASSES = ("funded", "preemptible")


def families(seen: Overview) -> Iterator[Metric]:
    """All metrics of one look."""
    up = GaugeMetricFamily(
        "slurm_budget_up", "Whether a source could be read (1) or not (0).", labels=["source"]
    )
    for source in SOURCES:
        up.add_metric([source], float(source not in seen.failed))
    yield up
    yield from _sweeps(seen)
    yield from _budgets(seen)
    if seen.loads is not None:
        yield from _loads(seen.loads)
    if seen.gpus is not None:
        gpus = GaugeMetricFamily(
            "slurm_budget_gpus", "GPUs of the cluster, by what they are.", labels=["state"]
        )
        gpus.add_metric(["total"], seen.gpus.total)
        gpus.add_metric(["held"], seen.gpus.held)
        gpus.add_metric(["unusable"], seen.gpus.unusable)
        yield gpus


def _sweeps(seen: Overview) -> Iterator[Metric]:
    if seen.observed_at is not None:
        yield GaugeMetricFamily(
            "slurm_budget_snapshot_timestamp_seconds",
            "When the sweep behind the published snapshot observed.",
            value=seen.observed_at,
        )
    if seen.sweeps:
        yield GaugeMetricFamily(
            "slurm_budget_last_sweep_timestamp_seconds",
            "When the last sweep was.",
            value=seen.sweeps[0].at,
        )
        yield GaugeMetricFamily(
            "slurm_budget_last_sweep_duration_seconds",
            "How long the last sweep took.",
            value=seen.sweeps[0].seconds,
        )
    if seen.totals is None:
        return
    yield CounterMetricFamily("slurm_budget_sweeps", "Sweeps.", value=seen.totals.sweeps)
    requeues = CounterMetricFamily(
        "slurm_budget_requeues", "Runs that the sweeper requeued.", labels=["account"]
    )
    gpus = CounterMetricFamily(
        "slurm_budget_requeued_gpus", "GPUs that they held.", labels=["account"]
    )
    for account in sorted(seen.totals.requeues):
        requeues.add_metric([account], seen.totals.requeues[account])
        gpus.add_metric([account], seen.totals.gpus[account])
    yield requeues
    yield gpus
    paused = float(bool(seen.paused))
    if "ledger" not in seen.failed and "slurm" not in seen.failed:
        yield GaugeMetricFamily("slurm_budget_paused", "Whether acting is paused.", value=paused)


def _budgets(seen: Overview) -> Iterator[Metric]:
    """Of each account with all below it."""
    for name, text, attribute in (
        ("budget", "GPU-time that an account is owed in the window.", "budget"),
        ("left", "GPU-time that new jobs may still promise.", "left"),
        ("charged", "GPU-time of protected runs in the window.", "charge"),
        ("used", "GPU-time used in the window, preemptible time at its factor.", "use"),
    ):
        family = GaugeMetricFamily(f"slurm_budget_{name}_gpu_seconds", text, labels=["account"])
        for team in seen.teams:
            value = getattr(team, attribute)
            if value is not None:
                family.add_metric([team.account], value / 1000)
        if family.samples:
            yield family
    standing = GaugeMetricFamily(
        "slurm_budget_standing_ratio",
        "Use over budget; the lower, the more is owed.",
        labels=["account"],
    )
    for team in seen.teams:
        if team.standing is not None:
            value = inf if team.standing == inf else float(team.standing)
            standing.add_metric([team.account], value)
    if standing.samples:
        yield standing


def _loads(loads: dict[str, Load]) -> Iterator[Metric]:
    """Of each account without what is below it, so that they add up."""
    for name, text, prefix, what in (
        ("running_jobs", "GPU jobs that run.", "", "jobs"),
        ("running_gpus", "GPUs that they hold.", "", "gpus"),
        ("waiting_jobs", "GPU jobs that wait.", "waiting_", "jobs"),
        ("waiting_gpus", "GPUs that they wait for.", "waiting_", "gpus"),
    ):
        family = GaugeMetricFamily(f"slurm_budget_{name}", text, labels=["account", "class"])
        for account, load in sorted(loads.items()):
            for class_ in _CLASSES:
                family.add_metric([account, class_], getattr(load, f"{prefix}{class_}_{what}"))
        yield family
    owed = GaugeMetricFamily(
        "slurm_budget_owed_gpus", "GPUs that funded jobs are owed.", labels=["account"]
    )
    for account, load in sorted(loads.items()):
        owed.add_metric([account], load.owed_gpus)
    yield owed


class Ready(Collector):
    """Families that are there already, for prometheus_client's own writer."""

    def __init__(self, found: Iterable[Metric]) -> None:
        self.found = list(found)

    def collect(self) -> Iterable[Metric]:
        return self.found


def text(seen: Overview) -> str:
    """The exposition format, for a textfile."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(Ready(families(seen)))
    return generate_latest(registry).decode()
