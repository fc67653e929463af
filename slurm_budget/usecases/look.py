"""What can be seen now, by whoever looks: researchers see the queue and the snapshot, those who can
read the ledger also what the next sweep would do. What could not be read is None, with its reason.

Nothing here writes.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from slurm_budget.core.snapshot import decode
from slurm_budget.errors import SbudgetError
from slurm_budget.settings import Settings
from slurm_budget.state.jobs import Job, Node
from slurm_budget.state.snapshot import Snapshot

if TYPE_CHECKING:
    from slurm_budget.core.told import Told
    from slurm_budget.ledger.store import Ledger
    from slurm_budget.slurm.port import CommandSlurm
    from slurm_budget.usecases.deciding import Decision
    from slurm_budget.usecases.observe import World

T = TypeVar("T")
OpenLedger = Callable[[], "Ledger"]
"""Opens the ledger; raises LedgerUnreachable where this user cannot read it."""


def published(settings: Settings) -> Snapshot:
    """The snapshot as it lies there, however old. Raises SbudgetError where it cannot be used."""
    path = settings.snapshot.path
    try:
        return decode(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as bad:
        reason = bad.strerror if isinstance(bad, OSError) else "it is not text"
        raise SbudgetError(
            f"the snapshot cannot be read: {reason}",
            where=str(path),
            mend="run `sbudget sweep`, which publishes one; everybody must be able to read it",
        ) from None
    except SbudgetError as bad:
        bad.where = str(path)
        raise


def told_path(settings: Settings) -> Path:
    """What a sweep tells everybody lies beside the snapshot."""
    path = settings.snapshot.path
    return path.with_name(path.name + ".told")


def published_answers(settings: Settings, now: int) -> "Told":
    """What the last sweep told. Raises SbudgetError where it is not there, or too old."""
    from slurm_budget.core import told

    path = told_path(settings)
    try:
        found = told.decode(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as bad:
        raise SbudgetError(f"what it told cannot be read: {bad}", where=str(path)) from None
    if now - found.observed_at > settings.snapshot.max_age:
        raise SbudgetError(f"the last one was {now - found.observed_at} s ago", where=str(path))
    return found


@dataclass(slots=True)
class Sight:
    """`failed` holds what could not be read, by source: slurm, snapshot, ledger, accounting;
    `unread` says it in sentences."""

    now: int
    jobs: list[Job] | None = None
    nodes: list[Node] | None = None
    facts: Snapshot | None = None
    ledger: "Ledger | None" = None
    world: "World | None" = None
    decision: "Decision | None" = None
    paused: str = ""
    failed: dict[str, SbudgetError] = field(default_factory=dict)

    def attempt(self, source: str, read: Callable[[], T]) -> T | None:
        """What `read` gives; None where it fails, which is remembered."""
        try:
            return read()
        except SbudgetError as bad:
            self.failed.setdefault(source, bad)
            return None

    @property
    def unread(self) -> list[str]:
        return [f"{source}: {bad.what}" for source, bad in self.failed.items()]


def look(
    slurm: "CommandSlurm",
    open_ledger: OpenLedger,
    settings: Settings,
    now: int,
    *,
    deeply: bool,
    nodes: bool = True,
) -> Sight:
    """Read what there is. `deeply`: also work out what a sweep would do now, by the ledger."""
    sight = Sight(now)
    sight.facts = sight.attempt("snapshot", lambda: published(settings))
    sight.ledger = sight.attempt("ledger", open_ledger)
    if deeply and sight.ledger is not None:
        _deeply(sight, slurm, sight.ledger, settings)
    if sight.jobs is None:
        # also where the whole view failed: slurmdbd may be down and the queue there
        sight.jobs = sight.attempt("slurm", slurm.jobs)
        if nodes and sight.jobs is not None:
            sight.nodes = sight.attempt("slurm", slurm.nodes)
    return sight


def _deeply(sight: Sight, slurm: "CommandSlurm", ledger: "Ledger", settings: Settings) -> None:
    from slurm_budget.errors import SlurmUnreachable
    from slurm_budget.usecases.deciding import decide
    from slurm_budget.usecases.observe import observe
    from slurm_budget.usecases.policy import sweep_policy

    policy = sweep_policy(settings)
    try:
        world = observe(slurm, ledger, None, settings, policy, sight.now)
        sight.decision = decide(world, ledger, policy)
        brake = ledger.brake(world.cluster)
    except SlurmUnreachable as bad:
        sight.failed["slurm"] = bad
        return
    except SbudgetError as bad:
        sight.failed["ledger"] = bad
        return
    sight.world, sight.jobs, sight.nodes = world, world.jobs, world.nodes
    if brake is not None and brake.paused:
        sight.paused = f"{brake.reason} ({brake.author})"
