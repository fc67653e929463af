"""`sbudget setup`: looks, does and undoes the steps of core/setup, and says how each went."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

from slurm_budget import machine, shipped
from slurm_budget.core import setup as core
from slurm_budget.core.setup import Part, Step, Target
from slurm_budget.errors import SbudgetError
from slurm_budget.settings import Settings
from slurm_budget.usecases.setup_record import Record

Outcome = Literal["done", "there", "skipped", "to do", "FAILED"]
Chosen = Sequence[tuple[Step, str]]


class LeftForGood(str):
    """What undoing leaves because it is not ours to take away; the record forgets it."""


class Deed(Protocol):
    """What can be done about one part. `key` names it in the record."""

    @property
    def key(self) -> str: ...

    def missing(self) -> str:
        """What is to be done, for people; empty where it is there already."""

    def do(self, before: Any) -> tuple[Any, str]:
        """Make it; what undoing it must know, as JSON (None: nothing), and what to tell. `before`
        is what an earlier setup wrote down of it, None where it did not make it."""

    def undo(self, made: Any, *, purge: bool) -> str:
        """Take away what `do` made; what was left and why, for people, empty for nothing. What is
        left stays in the record, unless it is LeftForGood."""


Deeds = Callable[[Part], Deed]


@dataclass(frozen=True, slots=True)
class Told:
    """How one step went: `what` has a line for each thing to say, `mend` is for FAILED."""

    step: str
    outcome: Outcome
    what: str
    mend: str = ""


def target(
    program: Path,
    config: Path,
    settings: Settings,
    user: str,
    by: str,
    root: Path,
    slurm_conf: Path | None,
) -> Target:
    """The machine as it is; `by` is systemd, cron, or empty for what there is. `slurm_conf` is what
    SLURM_CONF names here, which neither systemd nor cron would know."""
    etc = shipped.folder("etc", core.NEEDED[0])
    whole = root == Path("/")
    folders = {settings.snapshot.path.parent: True}
    if settings.ledger.url.startswith("sqlite:////"):
        folders[Path(settings.ledger.url.removeprefix("sqlite:///")).parent] = True
    return Target(
        user=user,
        program=program,
        config=config.absolute(),
        folders=tuple(folders),
        snapshot=settings.snapshot.path.name,
        texts={name: (etc / name).read_text(encoding="utf-8") for name in core.NEEDED},
        systemd=by == "systemd" or (not by and (not whole or machine.has_systemd())),
        cron=by == "cron" or Path("/etc/cron.d").is_dir(),
        logrotate=not whole or Path("/etc/logrotate.d").is_dir(),
        root=root,
        slurm_conf=slurm_conf if whole and settings.slurm.conf is None else None,
    )


def look(steps: Chosen, deeds: Deeds) -> Iterator[Told]:
    """What `do` would do."""
    for step, why_not in steps:
        if why_not:
            yield Told(step.name, "skipped", why_not)
            continue
        try:
            missing = [what for part in step.parts if (what := deeds(part).missing())]
        except SbudgetError as bad:
            yield _failed(step, bad)
            continue
        if missing:
            yield Told(step.name, "to do", f"{'; '.join(missing)} ({step.why})")
        else:
            yield Told(step.name, "there", step.why)


def do(steps: Chosen, deeds: Deeds, record: Record) -> Iterator[Told]:
    """Do what is missing, a step at a time. A step that fails does not keep the others from being
    tried: they say themselves what they miss."""
    for step, why_not in steps:
        if why_not:
            yield Told(step.name, "skipped", why_not)
            continue
        said: list[str] = []
        try:
            for part in step.parts:
                deed = deeds(part)
                if not deed.missing():
                    continue
                made, told = deed.do(record.made.get(deed.key))
                if made is not None:
                    record.keep(deed.key, made)
                said.append(told)
        except SbudgetError as bad:
            yield _failed(step, bad)
            continue
        yield Told(step.name, "done" if said else "there", "; ".join(said) or step.why)


def undo(
    steps: Chosen, deeds: Deeds, record: Record, *, purge: bool, dry_run: bool
) -> Iterator[Told]:
    """Take away what the record says setup made, in the opposite order. What is left stays in the
    record, so that a later `--undo --purge` finds it."""
    for step, why_not in reversed(steps):
        mine = [deed for deed in map(deeds, reversed(step.parts)) if deed.key in record.made]
        if why_not in ("--skip", "not in --only") and mine:
            yield Told(step.name, "skipped", why_not)
        elif not mine:
            continue
        elif dry_run:
            yield Told(step.name, "to do", f"take away: {'; '.join(deed.key for deed in mine)}")
        else:
            yield _undone(step, mine, record, purge)


def _undone(step: Step, mine: Sequence[Deed], record: Record, purge: bool) -> Told:
    said = []
    try:
        for deed in mine:
            left = deed.undo(record.made[deed.key], purge=purge)
            if not left or isinstance(left, LeftForGood):
                record.drop(deed.key)
            said.append(left or f"took away: {deed.key}")
    except SbudgetError as bad:
        return _failed(step, bad)
    return Told(step.name, "done", "; ".join(said))


def _failed(step: Step, bad: SbudgetError) -> Told:
    what, _, _ = str(bad).partition("\n")
    return Told(step.name, "FAILED", what, bad.mend)
