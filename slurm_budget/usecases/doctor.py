"""Collects what the doctor's rules look at. A source that does not answer is itself a finding."""

import os
import pwd
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from sqlalchemy import make_url

from slurm_budget.core import doctor as rules
from slurm_budget.core import doctor_site as site
from slurm_budget.core.doctor import Finding
from slurm_budget.core.live import funded_qos
from slurm_budget.errors import BadInput, Exit, SbudgetError
from slurm_budget.ledger.connect import file_of
from slurm_budget.ledger.schema import SCHEMA
from slurm_budget.ledger.store import Ledger
from slurm_budget.settings import Settings
from slurm_budget.slurm import ctld, people
from slurm_budget.slurm.command import checked
from slurm_budget.slurm.port import CommandSlurm
from slurm_budget.state.budget import ALL_GPUS, BudgetTree
from slurm_budget.state.jobs import Node
from slurm_budget.state.slurm import Partition
from slurm_budget.usecases import hook, publish


@dataclass(slots=True)
class _Round:
    """One round: what was seen so far goes from one part to the next."""

    slurm: CommandSlurm
    open_ledger: Callable[[], Ledger]
    settings: Settings
    now: int
    cluster: str
    config: Mapping[str, str] = field(default_factory=dict)
    nodes: list[Node] = field(default_factory=list)
    partitions: Mapping[str, Partition] = field(default_factory=dict)
    tree: BudgetTree | None = None

    @property
    def gpu_partitions(self) -> set[str]:
        return {name for node in self.nodes if node.gpu_total for name in node.partitions}


def examine(
    slurm: CommandSlurm, open_ledger: Callable[[], Ledger], settings: Settings, now: int
) -> tuple[str, list[Finding]]:
    """The cluster's name, and every check, in the order in which a site sets things up."""
    seen = _Round(slurm, open_ledger, settings, now, settings.slurm.cluster)
    found: list[Finding] = []
    for name, part in (
        ("slurmctld", _slurmctld),
        ("slurmctld", _nodes),
        ("ledger", _ledger),
        ("slurmdbd", _slurmdbd),
        ("permission", _permission),
        ("hook", _hook),
    ):
        try:
            for finding in part(seen):  # what a part found before its source failed counts too
                found.append(finding)
        except SbudgetError as bad:
            found.append(Finding(_source(name, bad), "error", bad.what, bad.mend, bad.where))
    return seen.cluster, found


def _source(name: str, bad: SbudgetError) -> str:
    return "ledger" if bad.code == Exit.LEDGER_UNREACHABLE else name


def _slurmctld(seen: _Round) -> Iterator[Finding]:
    seen.config, at = seen.slurm.config_at()
    seen.cluster = seen.cluster or seen.config.get("ClusterName", "")
    here = checked(seen.slurm.commands.run("scontrol", "--version"))
    yield from site.versions(seen.config.get("SLURM_VERSION", ""), here.strip())
    yield site.clock(at, seen.now)
    yield from rules.slurm_conf(seen.config)
    yield site.min_job_age(seen.config, seen.settings.sweep.beat)


def _nodes(seen: _Round) -> Iterator[Finding]:
    seen.nodes = seen.slurm.nodes()
    yield from rules.gpus(seen.nodes)
    seen.partitions = seen.slurm.partitions()
    weights = {name: one.weights for name, one in seen.partitions.items()}
    yield from rules.partitions(weights, seen.gpu_partitions)


def _ledger(seen: _Round) -> Iterator[Finding]:
    ledger = seen.open_ledger()
    yield Finding("ledger", "ok", f"schema {SCHEMA}", where=seen.settings.ledger.url)
    path = file_of(make_url(seen.settings.ledger.url))
    theirs = rules.ledger_file(path, path.stat().st_mode) if path is not None else None
    if theirs is not None:
        yield theirs
    cluster = _named(seen)
    seen.tree = ledger.budget_tree(cluster)
    yield site.budgets(seen.tree)
    last = ledger.last_sweeps(1, cluster)
    yield site.sweeps(last[0].at if last else None, seen.settings.sweep.beat, seen.now)
    lease = ledger.lease(cluster)
    yield site.lease(lease.holder if lease else "", lease.expires_at if lease else 0, seen.now)
    brake = ledger.brake(cluster)
    if brake is not None:
        yield site.brake(brake.paused, brake.author, brake.reason)


def _slurmdbd(seen: _Round) -> Iterator[Finding]:
    cluster = _named(seen)
    accounts = set(seen.slurm.accounts(cluster))
    yield Finding("slurmdbd", "ok", f"{len(accounts)} accounts")
    if seen.tree is not None and seen.tree.nodes:
        yield from site.accounts(seen.tree, accounts)
        yield from site.users(seen.tree, people.accounts_of(seen.slurm.commands, cluster))
        wanted = {funded_qos(name) for name in seen.tree.nodes} | {"preemptible"}
        yield site.qos(wanted, seen.slurm.qos_names())
        yield from site.partition_qos(seen.partitions, seen.gpu_partitions, wanted)
    if seen.nodes:
        tres = seen.config.get("AccountingStorageTRES", "")
        yield from site.gpu_types(seen.nodes, seen.settings.jobs.gpu_weights, seen.tree, tres)


def _permission(seen: _Round) -> Iterator[Finding]:
    """Of the user who sweeps: the snapshot's owner, or its folder's, else who runs this."""
    path = seen.settings.snapshot.path
    there = next((place for place in (path, path.parent) if place.exists()), None)
    uid = there.stat().st_uid if there else os.geteuid()
    try:
        user = pwd.getpwuid(uid).pw_name
    except KeyError:
        mend = "chown it to the user that sweeps"
        yield Finding("permission", "error", f"uid {uid} is nobody here", mend, str(there))
        return
    slurm_uid = ctld.user(seen.config)
    level = ""
    if uid not in (0, slurm_uid):
        level = people.admin_level(seen.slurm.commands, user)
    tells = seen.settings.sweep.session_warning > 0
    yield site.permission(user, uid, slurm_uid, level, tells)


def _hook(seen: _Round) -> Iterator[Finding]:
    try:
        yield from hook.check(
            hook.look(seen.slurm, seen.settings, None, None), seen.settings, seen.now
        )
    except BadInput as bad:  # not the controller
        yield Finding("hook", "warning", f"not looked at: {bad.what}", bad.mend, bad.where)
        yield publish.finding(seen.settings, seen.now)


def _named(seen: _Round) -> str:
    if not seen.cluster:
        raise SbudgetError(
            "not looked at: slurmctld does not say which cluster this is",
            mend="set slurm.cluster in slurm-budget.toml",
        )
    return seen.cluster


def not_accounted(slurm: CommandSlurm, tree: BudgetTree) -> Finding | None:
    """GPU types that budgets name and Slurm does not account. Slurm is asked only where one is
    named; raises SlurmUnreachable."""
    typed = {node.gres for node in tree.nodes.values()} - {ALL_GPUS}
    if not typed:
        return None
    return rules.not_accounted(typed, slurm.config().get("AccountingStorageTRES", ""))
