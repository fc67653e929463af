"""The columns of every report."""

from typing import Any

from slurm_budget.core.report import BudgetRow, UsageRow
from slurm_budget.core.report_delivered import DeliveredRow
from slurm_budget.core.report_requeues import RequeueRow
from slurm_budget.core.report_summary import Measure
from slurm_budget.core.report_waits import WaitRow
from slurm_budget.render.table import Column, Report

_FIGURES: tuple[Column[BudgetRow], ...] = (
    Column("budget", "Budget", "gpu-time", lambda r: r.budget, "what it is owed in the period"),
    Column("funded", "Funded", "gpu-time", lambda r: r.funded, "what ran in a funded QOS, whole"),
    Column(
        "preemptible", "Preempt", "gpu-time", lambda r: r.preemptible, "what ran in any other QOS"
    ),
    Column(
        "charge", "Charged", "gpu-time", lambda r: r.charge,
        "the protected part of the funded runs, which the budget pays",
    ),
    Column("left", "Left", "gpu-time", lambda r: r.left, "budget less charge"),
    Column(
        "standing", "Standing", "ratio", lambda r: r.standing,
        "use (funded, and a tenth of preemptible) of the budget: the lower, the more it is owed",
    ),
)  # fmt: skip

BUDGETS: Report[BudgetRow] = Report(
    "budgets",
    "Budgets",
    (
        Column("account", "Account", "account", lambda r: r.account, "with all accounts below it"),
        *_FIGURES,
    ),
    whole=lambda r: r.budget,
    depth=lambda r: r.depth,
)

USERS: Report[BudgetRow] = Report(
    "users",
    "Users",
    (
        Column("account", "Account", "account", lambda r: r.account, "the account that was used"),
        Column("user", "User", "text", lambda r: r.user, "who used it"),
        *_FIGURES,
    ),
    whole=lambda r: r.budget,
    depth=lambda r: r.depth,
)

USAGE: Report[UsageRow] = Report(
    "usage",
    "Usage",
    (
        Column("cluster", "Cluster", "text", lambda r: r.cluster, "ClusterName"),
        Column(
            "account", "Account", "account", lambda r: r.account,
            "with all accounts below it, where Login is empty",
        ),
        Column("login", "Login", "text", lambda r: r.user, "the user, for their own part"),
        Column("used", "Used", "gpu-time", lambda r: r.used, "GPUs x time, each GPU as one"),
        Column("funded", "Funded", "gpu-time", lambda r: r.funded, "of it in a funded QOS"),
        Column("preemptible", "Preempt", "gpu-time", lambda r: r.preemptible, "of it in any other"),
    ),
    depth=lambda r: r.depth,
)  # fmt: skip

WAITS: Report[WaitRow] = Report(
    "waits",
    "Queue waits",
    (
        Column(
            "class", "Class", "text", lambda r: r.class_,
            "debug (funded, and small enough for the fast lane), funded or preemptible",
        ),
        Column("size", "GPUs", "text", lambda r: r.size, "GPUs of the run; `all` sizes together"),
        Column("runs", "Runs", "count", lambda r: r.runs, "runs that started in the period"),
        Column("p50", "P50", "seconds", lambda r: r.p50, "half of them waited no longer"),
        Column("p90", "P90", "seconds", lambda r: r.p90, "nine of ten waited no longer"),
        Column("longest", "Longest", "seconds", lambda r: r.longest, "the longest wait"),
    ),
)  # fmt: skip

REQUEUES: Report[RequeueRow] = Report(
    "requeues",
    "Requeues",
    (
        Column("end", "End", "moment", lambda r: r.at, "when the run was stopped"),
        Column("job", "Job", "count", lambda r: r.job, "the raw job id"),
        Column("account", "Account", "text", lambda r: r.account, "whose run it was"),
        Column("user", "User", "text", lambda r: r.user, "and which user's", shown=False),
        Column("class", "Class", "text", lambda r: r.class_, "funded or preemptible", shown=False),
        Column("gpus", "GPUs", "count", lambda r: r.gpus, "what it held"),
        Column("ran", "Ran", "seconds", lambda r: r.ran, "how long the run lasted"),
        Column(
            "lost", "Lost", "gpu-time", lambda r: r.lost,
            "the whole run: the most that was lost, as if there was no checkpoint",
        ),
        Column(
            "cause", "Cause", "text", lambda r: r.cause,
            "owed or repair (the sweeper), preempted (Slurm), node-failed, by-hand",
        ),
        Column("for", "For", "text", lambda r: r.for_account, "the account that was owed"),
        Column("forjob", "ForJob", "count", lambda r: r.for_job, "its job", shown=False),
        Column("why", "Why", "text", lambda r: r.why, "the sweeper's reason", shown=False),
    ),
)  # fmt: skip

DELIVERED: Report[DeliveredRow] = Report(
    "delivered",
    "Delivered",
    (
        Column("account", "Account", "account", lambda r: r.account, "with all accounts below it"),
        Column("budget", "Budget", "gpu-time", lambda r: r.budget, "what it is owed in the period"),
        Column(
            "deserved", "Deserved", "gpu-time", lambda r: r.deserved,
            "its share of the GPUs, moment by moment, of what it had running or ready to run",
        ),
        Column("got", "Got", "gpu-time", lambda r: r.got, "what its funded runs held meanwhile"),
        Column("delivered", "Delivered", "ratio", lambda r: r.delivered, "got of deserved"),
    ),
    depth=lambda r: r.depth,
)  # fmt: skip

SUMMARY: Report[Measure] = Report(
    "summary",
    "Summary",
    (
        Column("name", "Name", "text", lambda r: r.name, "the measure, for scripts", shown=False),
        Column("measure", "Measure", "text", lambda r: r.label, "the measure, for people"),
        Column("value", "Value", "measure", lambda r: r, "the figure"),
        Column("unit", "Unit", "text", lambda r: r.unit, "what kind of figure", shown=False),
    ),
)

ALL: tuple[Report[Any], ...] = (BUDGETS, USERS, USAGE, WAITS, REQUEUES, DELIVERED, SUMMARY)
