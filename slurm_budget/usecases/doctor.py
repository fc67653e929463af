"""Collects what the doctor's rules look at. A source that does not answer is itself a finding."""

from collections.abc import Callable, Iterable

from slurm_budget.core import doctor as rules
from slurm_budget.core.doctor import Finding
from slurm_budget.core.live import funded_qos
from slurm_budget.core.snapshot import decode
from slurm_budget.errors import SbudgetError
from slurm_budget.ledger.store import Ledger
from slurm_budget.settings import Settings
from slurm_budget.slurm.port import CommandSlurm


def examine(
    slurm: CommandSlurm, open_ledger: Callable[[], Ledger], settings: Settings, now: int
) -> list[Finding]:
    """Every check, in the order in which a site sets things up."""
    found: list[Finding] = []
    cluster = settings.slurm.cluster
    try:
        config = slurm.config()
        cluster = cluster or config.get("ClusterName", "")
        found += rules.slurm_conf(config)
        nodes = slurm.nodes()
        found += rules.gpus(nodes)
        with_gpus = {part for node in nodes if node.gpu_total for part in node.partitions}
        found += rules.partitions(slurm.billing_weights(), with_gpus)
    except SbudgetError as bad:
        found.append(Finding("slurmctld", "error", bad.what, bad.mend))
    try:
        if not cluster:
            raise SbudgetError(
                "not looked at: slurmctld does not say which cluster this is",
                mend="set slurm.cluster in slurm-budget.toml",
            )
        accounts = set(slurm.accounts(cluster))
        qos = slurm.qos_names()
        found.append(Finding("slurmdbd", "ok", f"{len(accounts)} accounts"))
        tree = open_ledger().budget_tree(cluster)
        wanted = {funded_qos(name) for name in tree.nodes}
        found.append(_all_there("accounts", set(tree.nodes), accounts))
        found.append(_all_there("qos", wanted | {"preemptible"}, qos))
    except SbudgetError as bad:
        name = "ledger" if bad.code == 7 else "slurmdbd"
        found.append(Finding(name, "error", bad.what, bad.mend))
    found.append(snapshot(settings, now))
    return found


def _all_there(check: str, wanted: Iterable[str], there: set[str]) -> Finding:
    missing = sorted(set(wanted) - there)
    if not missing:
        return Finding(check, "ok", f"all {len(set(wanted))} of the budgets are in Slurm")
    return Finding(check, "error", f"not in Slurm: {', '.join(missing[:5])}", "run `sbudget sync`")


def snapshot(settings: Settings, now: int) -> Finding:
    """Whether the hook has a snapshot that it will use."""
    try:
        text = settings.snapshot.path.read_text(encoding="utf-8")
        published: int | None = decode(text).published_at
    except (OSError, UnicodeDecodeError, SbudgetError):
        published = None
    return rules.snapshot_age(published, settings.snapshot.max_age, now)
