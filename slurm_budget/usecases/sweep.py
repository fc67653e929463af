"""One sweep: observe, account, retag, choose, act, publish, say one sentence.

It reads everything afresh, keeps nothing in memory that matters, and can be killed anywhere. The
sentence is for people and for tests.
"""

import time
from collections.abc import Callable
from contextlib import suppress

from slurm_budget.core import demand, live
from slurm_budget.errors import LeaseLost, LedgerUnreachable, SbudgetError, SlurmUnreachable
from slurm_budget.ledger.store import Ledger
from slurm_budget.ports import JobPort
from slurm_budget.settings import Settings
from slurm_budget.state.snapshot import Policy, Snapshot
from slurm_budget.state.sweep import SweepPolicy
from slurm_budget.usecases.accounting import Source
from slurm_budget.usecases.act import Actor
from slurm_budget.usecases.deciding import decide
from slurm_budget.usecases.fence import Fence
from slurm_budget.usecases.moving import move_classes
from slurm_budget.usecases.observe import World, observe
from slurm_budget.usecases.policy import hook_policy, sweep_policy
from slurm_budget.usecases.publish import publish, returns, snapshot, tell
from slurm_budget.usecases.sessions import warn
from slurm_budget.usecases.swept import Swept


def sweep(
    slurm: JobPort,
    ledger: Ledger,
    source: Callable[[str], Source],
    settings: Settings,
    now: int,
    *,
    fence: Fence,
    dry_run: bool = False,
    between: Callable[[str], None] = lambda step: None,
) -> Swept:
    """Sweep once; without the lease, or while paused, everything but the deeds.

    Raises SlurmUnreachable before anything was done, and LedgerUnreachable, which knows (`acted`)
    what was done before.
    """
    started = time.monotonic()
    policy = sweep_policy(settings)
    cluster = fence.cluster
    world = observe(slurm, ledger, source(cluster), settings, policy, now)
    decision = decide(world, ledger, policy)
    brake = ledger.brake(cluster)
    resumed = 0 if brake is None else brake.at
    actor = Actor(
        slurm,
        ledger,
        policy,
        now,
        fence,
        world.nodes,
        world.preemption,
        resumed=resumed,
        between=between,
    )
    out = Swept(world, decision, actor.acted, dry_run=dry_run, idle=fence.why)
    paused = f"{brake.reason} ({brake.author})" if brake is not None and brake.paused else ""
    if paused and not out.idle:
        out.idle = f"paused: {paused}"
    if dry_run:
        return out
    try:
        if not out.idle:
            _act(slurm, out, actor, policy, settings)
        if not fence.why and not out.failed:
            # harmless, so a pause does not stop it; the holder alone does it, or it is said twice
            out.told = warn(slurm, ledger, cluster, world.jobs, policy, now)
        _publish(out, ledger, settings, paused)
        if not fence.why:
            ledger.record_levels(cluster, now, demand.levels(world.jobs, world.nodes, world.tree))
        if fence.other is None:
            ledger.record_sweep(cluster, now, out.sentence(), time.monotonic() - started)
    except LeaseLost as lost:
        # who has it now publishes what is newer than this
        out.idle = f"lost the lease, acted no further: {lost.what}"
    except LedgerUnreachable as bad:
        if out.did_something:
            bad.acted = f"{out.sentence()[:-1]}; then failed"
        raise
    return out


def _hook_policy(world: World, settings: Settings) -> Policy:
    partitions = world.preemption.partitions
    return hook_policy(settings, world.nodes, world.config, world.operators, partitions)


def _introduce(out: Swept, settings: Settings) -> None:
    """The first snapshot comes before the deeds: by it alone does the hook know an operator, and
    would refuse what a sweep does that is neither root nor SlurmUser. No account is in it, so
    nothing is promised that the deeds are about to use."""
    world, hook = out.world, _hook_policy(out.world, settings)
    with suppress(SbudgetError):  # the one behind the deeds says why
        publish(settings, Snapshot(world.cluster, world.now, world.now, hook, {}, {}))


def _publish(out: Swept, ledger: Ledger, settings: Settings, paused: str) -> None:
    """The deeds are done by now: that the file could not be written must not hide them."""
    world, found = out.world, out.decision.verdicts
    hook = _hook_policy(world, settings)
    back = returns(world, found, ledger, settings)
    try:
        publish(settings, snapshot(world, found, back, hook, world.now))
        tell(settings, ledger, world, out.decision.outlook(paused))
    except LedgerUnreachable:
        raise
    except SbudgetError as bad:
        out.failed.append(bad)
        out.idle = "; ".join(filter(None, [out.idle, f"the snapshot stays as it was: {bad.what}"]))


def _act(slurm: JobPort, out: Swept, actor: Actor, policy: SweepPolicy, settings: Settings) -> None:
    """Raises LeaseLost. Where Slurm does not answer any more nothing further is asked of it."""
    try:
        actor.fence.hold()
        if not settings.snapshot.path.exists():
            _introduce(out, settings)
        _deeds(slurm, out, actor, policy)
    except SlurmUnreachable as bad:
        out.failed.append(bad)
        out.idle = f"acted no further: {bad.what}"


def _deeds(slurm: JobPort, out: Swept, actor: Actor, policy: SweepPolicy) -> None:
    fence, cluster = actor.fence, out.world.cluster
    move_classes(slurm, out, policy, check=fence.check, between=actor.between)
    actor.open(cluster, out.decision.requeues)
    # what was seen longer ago than a lease lasts is looked at again
    seen, at = out.world.jobs, fence.clock()
    if at - out.world.now > fence.ttl:
        seen = [live.with_suspension(job, at) for job in slurm.jobs(shares=False)]
    actor.advance(cluster, seen)
    # that the requeued ones wait is seen, and recorded, by the next sweep
    fence.check()
