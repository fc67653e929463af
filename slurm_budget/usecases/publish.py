"""The last half of a sweep: the snapshot for the hook."""

from dataclasses import replace

from slurm_budget import files
from slurm_budget.core import back, doctor, live, told
from slurm_budget.core.retag import Verdicts
from slurm_budget.core.snapshot import decode
from slurm_budget.core.snapshot_write import encode
from slurm_budget.errors import SbudgetError
from slurm_budget.ledger.store import Ledger
from slurm_budget.settings import Settings
from slurm_budget.state.answers import Outlook
from slurm_budget.state.snapshot import AccountFacts, Policy, Snapshot, UserFacts
from slurm_budget.usecases.accounting import window_of
from slurm_budget.usecases.charged import charged_parts
from slurm_budget.usecases.look import told_path
from slurm_budget.usecases.observe import World

TOLD_DAYS = 7
"""How far back the requeues go that everybody is told of."""


def snapshot(
    world: World, verdicts: Verdicts, returns: dict[str, int], policy: Policy, published_at: int
) -> Snapshot:
    """What the hook may promise until the next sweep. An account that sync has not made yet is left
    out: Slurm would refuse a job in a QOS that is not there."""
    accounts = {}
    made = set(world.preemption.qos)
    for name, node in world.tree.nodes.items():
        if made and live.funded_qos(name) not in made:
            continue
        facts = verdicts.accounts.get(name)
        accounts[name] = AccountFacts(
            name=name,
            parent=node.parent,
            qos=live.funded_qos(name) if facts is not None else "",
            budget=facts.budget if facts else 0,
            balance=facts.balance if facts else 0,
            fast=facts.fast if facts else 0,
            back_at=returns.get(name),
            gres=node.gres,
        )
    users = {
        key: UserFacts(key[0], key[1], facts.budget, facts.balance, facts.fast)
        for key, facts in verdicts.users.items()
        if key[0] in accounts
    }
    aliases = {alias: n.name for n in world.tree.nodes.values() for alias in n.aliases}
    return Snapshot(world.cluster, world.now, published_at, policy, accounts, users, aliases)


def returns(world: World, verdicts: Verdicts, ledger: Ledger, settings: Settings) -> dict[str, int]:
    """When each spent account has balance again, by the charge that leaves its window.

    Only accounts that have nothing left are asked for; where none is, the runs are not read.
    """
    spent = {name: facts for name, facts in verdicts.accounts.items() if facts.balance <= 0}
    window = window_of(settings)
    if not spent:
        return {}
    if window.kind == "decay":
        found = {
            name: back.when_decayed(
                world.accounts[name].charge, 1 - facts.balance, window.half_life, world.now
            )
            for name, facts in spent.items()
        }
        return {name: at for name, at in found.items() if at is not None}
    parts = charged_parts(world.tree, spent, ledger, settings, world.now)
    out = {}
    for name, facts in spent.items():
        at = back.when_back(parts[name], 1 - facts.balance, window.length, world.now)
        if at is not None:
            out[name] = at
    return out


def tell(settings: Settings, ledger: Ledger, world: World, outlook: Outlook) -> None:
    """Write what everybody may know of this sweep, for those who cannot read the ledger. That a run
    is protected is left out: the queue says it."""
    left = {job: why for job, why in outlook.left.items() if not why.startswith("protected for ")}
    since = world.now - TOLD_DAYS * 86400
    intents = ledger.intents_since(world.cluster, since)
    text = told.encode(since, world.now, intents, replace(outlook, left=left))
    files.replace(told_path(settings), text)


def publish(path_settings: Settings, text_of: Snapshot) -> None:
    """Write the snapshot so that a reader sees the old one or the new one, whole.

    Raises SbudgetError where others may write in its folder: slurmctld would believe what they put
    there, and a FIFO would stop it.
    """
    path = path_settings.snapshot.path
    try:
        theirs = files.open_to_others(path.parent)
    except OSError:
        theirs = None  # then it cannot be written either, which says why
    if theirs is not None:
        raise SbudgetError(
            f"the snapshot is not published: others may write in {theirs}",
            where=str(path),
            mend=f"chmod go-w {theirs}, or choose another snapshot.path",
        )
    files.replace(path, encode(text_of))


def finding(settings: Settings, now: int) -> doctor.Finding:
    """Whether the hook has a snapshot that it will use, where nobody else can put one."""
    path = settings.snapshot.path
    try:
        theirs, kind = files.open_to_others(path.parent), files.kind(path)
    except OSError:
        theirs, kind = None, "nothing"
    placed = doctor.snapshot_place(path, kind, theirs)
    if placed is not None:
        return placed
    try:
        text = path.read_text(encoding="utf-8")
        published: int | None = decode(text).published_at
    except (OSError, UnicodeDecodeError, SbudgetError):
        published = None
    return doctor.snapshot_age(published, settings.snapshot.max_age, now)
