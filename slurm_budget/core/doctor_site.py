"""What the doctor looks at beside slurm.conf: versions, clocks, rights, GPUs and accounts, and what
the ledger says of sweeps. Pure; one small rule for each, a list where it may find several things.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence

from slurm_budget.core.doctor import Finding, rule
from slurm_budget.core.weights import counted_type
from slurm_budget.state.budget import ALL_GPUS, BudgetTree
from slurm_budget.state.jobs import Node
from slurm_budget.state.slurm import Partition
from slurm_budget.text.nearest import listed

SKEW = 5
"""Seconds between two clocks from which a sidecar acts on nothing (usecases/fence)."""
OLDEST, NEWEST = (22, 5), (26, 5)
"""Versions of Slurm that the tests run on."""
NEWS = 180
"""Seconds without a sweep after which nobody sweeps, where the beat is short: cron has minutes."""


def some(names: Iterable[str]) -> str:
    """The first few of many, and how many more there are."""
    return listed(names, 5)


def versions(controller: str, here: str) -> list[Finding]:
    """`controller` as in SLURM_VERSION, `here` as `scontrol --version` says."""
    number, own = _version(controller), _version(here)
    if number is None:
        what = f"slurmctld says {controller or 'nothing'} of its version"
        return [Finding("version", "warning", what, "look at `scontrol show config`")]
    oldest, newest = (".".join(f"{part:02}" for part in pair) for pair in (OLDEST, NEWEST))
    tried = rule(
        "version",
        number >= OLDEST,
        f"slurmctld is {controller}",
        f"upgrade Slurm to {oldest} at least",
    )
    if number > NEWEST:
        mend = "try it on a test cluster first; `sbudget sweep --dry-run` shows what would be done"
        what = f"slurmctld is {controller}, newer than any that was tried ({newest})"
        tried = Finding("version", "warning", what, mend)
    same = rule(
        "commands",
        own == number,
        f"this host's commands are {here.removeprefix('slurm-wlm ').removeprefix('slurm ')}",
        f"install Slurm's commands of slurmctld's version here ({controller})",
        "warning",
    )
    return [tried, same]


def _version(text: str) -> tuple[int, int] | None:
    found = re.search(r"(\d{2})\.(\d{2})", text)
    return (int(found[1]), int(found[2])) if found else None


def clock(controller: int | None, now: int) -> Finding:
    """slurmctld's time as it answered against this host's, both in epoch seconds."""
    if controller is None:
        return Finding("clock", "warning", "slurmctld does not say its time", "compare `date`")
    ahead = controller - now
    what = f"slurmctld's is {abs(ahead)} s {'ahead' if ahead > 0 else 'behind'} this host's"
    mend = "set both by chrony; a sidecar whose clock is wrong acts on nothing"
    return rule("clock", abs(ahead) <= SKEW, what if ahead else "the same as slurmctld's", mend)


def permission(user: str, uid: int, slurm_uid: int, level: str, tells: bool) -> Finding:
    """Whether this user may do what a sweep does.

    `level` is Slurm's AdminLevel. Requeue, signal and QOS need an operator; AdminComment an
    administrator; `scontrol notify`, for `tells` (sweep.session_warning), root or SlurmUser.
    """
    if uid in (0, slurm_uid):
        name = "root" if uid == 0 else "SlurmUser"
        return Finding("permission", "ok", f"{user} is {name}: may do all of it")
    level = level.strip().lower()
    mend = f"sacctmgr modify user {user} set adminlevel=administrator (`sbudget setup` does it)"
    if level == "administrator":
        what = f"{user} is an administrator of Slurm"
        if not tells:
            return Finding("permission", "ok", what)
        what += ", which suffices for all but `scontrol notify`: sessions do not hear of their end"
        other = "[sweep] session_warning = 0, or run the sweeps as SlurmUser (setup --user)"
        return Finding("permission", "warning", what, other)
    if level == "operator":
        what = f"{user} is an operator: may requeue and signal, may not write AdminComment (retags)"
        return Finding("permission", "error", what, mend)
    what = f"{user} is neither root, SlurmUser nor an administrator of Slurm: may change no job"
    return Finding("permission", "error", what, mend)


def min_job_age(config: Mapping[str, str], beat: int) -> Finding:
    """Ended jobs must stay in slurmctld until the next sweep, which looks how its requeues went."""
    found = re.match(r"\d+", config.get("MinJobAge", ""))
    age = int(found[0]) if found else 0
    return rule(
        "MinJobAge",
        age >= 2 * beat,
        f"MinJobAge={age} s",
        f"slurm.conf: MinJobAge=300 (two beats at least, {2 * beat} s: else a job that ends is gone"
        " before a sweep sees it)",
        "warning",
        "slurm.conf",
    )


def gpu_types(
    nodes: Sequence[Node], weights: Collection[str], tree: BudgetTree | None, tres: str
) -> list[Finding]:
    """Types on the nodes against jobs.gpu_weights, the budgets' own, and AccountingStorageTRES."""
    there = {kind for node in nodes for kind in node.gpus if kind}
    named = {kind for n in tree.nodes.values() if (kind := counted_type(n.gres))} if tree else set()
    counted = {word.strip().lower() for word in tres.split(",")}
    out = []
    if weights:
        mend = "slurm-budget.toml: a weight for each under [jobs] gpu_weights (1 until then)"
        lacking = there - set(weights)
        what = f"no weight for {some(lacking)}" if lacking else f"all {len(there)} types have one"
        out.append(rule("gpu weights", not lacking, what, mend, "warning", "jobs.gpu_weights"))
    unknown = (set(weights) | named) - there
    if unknown:
        mend = "correct the name in jobs.gpu_weights or in the budgets, or add the nodes"
        what = f"no node has GPUs of type {some(unknown)}"
        out.append(Finding("gpu types named", "warning", what, mend))
    told_apart = (set(weights) | named) & there
    lost = {kind for kind in told_apart if f"{ALL_GPUS}:{kind}".lower() not in counted}
    if told_apart:
        lines = ",".join([ALL_GPUS, *(f"{ALL_GPUS}:{kind}" for kind in sorted(told_apart))])
        what = f"accounted without their type: {some(lost)}" if lost else "accounted by type"
        mend = f"slurm.conf: AccountingStorageTRES={lines}, then restart slurmctld"
        out.append(rule("gpu types accounted", not lost, what, mend, "error", "slurm.conf"))
    return out


def accounts(tree: BudgetTree, there: Collection[str]) -> list[Finding]:
    """Budgets without an account, and accounts without a budget; both as Slurm spells them."""
    missing = set(tree.nodes) - set(there)
    without = {name for name in there if name != "root" and tree.resolve(name) is None}
    some_there = rule(
        "accounts",
        not missing,
        f"not in Slurm: {some(missing)}" if missing else f"all {len(tree.nodes)} of the budgets",
        "run `sbudget sync`",
    )
    left = rule(
        "accounts without budget",
        not without,
        f"{some(without)}: their jobs are preemptible" if without else "none",
        "give them budgets (`sbudget budget set`), if that is not meant",
        "warning",
    )
    return [some_there, left]


def users(tree: BudgetTree, accounts_of: Mapping[str, Collection[str]]) -> list[Finding]:
    """Users of the budgets who are not in their account, and users of Slurm who are in none."""
    pairs = {(user.name, node.name) for node in tree.nodes.values() for user in node.users}
    missing = {f"{u} in {a}" for u, a in pairs if a not in accounts_of.get(u, ())}
    nowhere = {user for user, found in accounts_of.items() if not found}
    return [
        rule(
            "users",
            not missing,
            f"not in Slurm: {some(missing)}" if missing else f"all {len(pairs)} of the budgets",
            "run `sbudget sync`",
        ),
        rule(
            "users without account",
            not nowhere,
            f"{some(nowhere)}: they cannot submit" if nowhere else "none",
            "add them to an account's users, or sacctmgr delete user",
            "warning",
        ),
    ]


def qos(wanted: Collection[str], there: Collection[str]) -> Finding:
    missing = set(wanted) - set(there)
    what = f"not in Slurm: {some(missing)}" if missing else f"all {len(wanted)} of the budgets"
    return rule("qos", not missing, what, "run `sbudget sync`")


def partition_qos(
    partitions: Mapping[str, Partition], with_gpus: Collection[str], wanted: Collection[str]
) -> list[Finding]:
    """AllowQos and DenyQos of partitions with GPUs against our QOS, the preemptible one too."""
    out = []
    for name in sorted(set(partitions) & set(with_gpus)):
        shut = {qos for qos in wanted if not partitions[name].allows(qos)}
        if shut:
            allow = partitions[name].allow_qos is not None
            says, do = (
                ("AllowQos", "name our QOS in") if allow else ("DenyQos", "take our QOS out of")
            )
            what = f"{says} keeps out {some(shut)}: jobs that get this QOS are refused or wait"
            mend = f"slurm.conf: {do} {says} of PartitionName={name}, if that is not meant"
            out.append(Finding(f"qos of {name}", "warning", what, mend, "slurm.conf"))
    return out


def budgets(tree: BudgetTree) -> Finding:
    what = f"{len(tree.nodes)} accounts" if tree.nodes else f"none for cluster {tree.cluster}"
    mend = "run `sbudget budget load FILE` or `sbudget budget import-slurm`, then `sbudget sync`"
    return rule("budgets", bool(tree.nodes), what, mend)


def sweeps(last: int | None, beat: int, now: int) -> Finding:
    """Whether somebody sweeps; `last` is when a sweep was last recorded, None for never."""
    mend = "start the daemon (systemctl start slurm-budget) or cron; `sbudget sweep` says why not"
    if last is None:
        return Finding("sweeps", "error", "there never was one", mend)
    return rule(
        "sweeps", now - last <= max(3 * beat, NEWS), f"the last was {now - last} s ago", mend
    )


def lease(holder: str, expires_at: int, now: int) -> Finding:
    """Who may act. Only a daemon keeps it; one that died leaves it to run out."""
    if not holder or expires_at <= now:
        said = f"free; {holder} had it until {now - expires_at} s ago" if holder else "never taken"
        return Finding("lease", "ok", said)
    return Finding("lease", "ok", f"{holder} holds it for {expires_at - now} more s")


def brake(paused: bool, author: str, reason: str) -> Finding:
    what = f"paused by {author}: {reason}" if paused else "not paused"
    return rule("pause", not paused, what, "`sbudget resume`, when it is time", "warning")
