"""Setup's parts that need Slurm or the ledger: right, ledger, first import, hook, doctor."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from slurm_budget import machine
from slurm_budget.core import hook_files
from slurm_budget.core import setup as core
from slurm_budget.core.setup import Part
from slurm_budget.errors import SbudgetError
from slurm_budget.ledger import connect, migrate
from slurm_budget.ledger.schema import SCHEMA
from slurm_budget.ledger.store import Ledger, engine_of
from slurm_budget.settings import Settings
from slurm_budget.slurm import ctld, people
from slurm_budget.slurm.port import CommandSlurm
from slurm_budget.usecases import doctor, hook
from slurm_budget.usecases.hook_trial import try_out
from slurm_budget.usecases.setup import Deed, LeftForGood
from slurm_budget.usecases.setup_files import FileDeed, FolderDeed, ServiceDeed, UserDeed


@dataclass(slots=True)
class Site:
    """What these deeds work on. `open_ledger` opens the ledger of `settings`."""

    target: core.Target
    slurm: CommandSlurm
    settings: Settings
    now: int
    open_ledger: Callable[[], Ledger]

    def sbudget(self, *argv: str, fine: tuple[int, ...] = (0,)) -> str:
        """Our own program as the user who sweeps: what it makes is theirs, and what they may not
        read or ask, we hear of now."""
        user = machine.account(self.target.user)
        if user is None:
            raise SbudgetError(
                f"there is no user {self.target.user}",
                mend="do the step `user` too, or name one who is there with --user",
            )
        config = ("--config", str(self.target.config))
        # as in what systemd or cron will start
        conf = self.target.slurm_conf
        env = {"SLURM_CONF": str(conf)} if conf else {}
        program = str(self.target.program)
        return machine.run(program, *config, *argv, user=user, env=env, fine=fine)

    def deed(self, part: Part) -> Deed:
        match part:
            case core.LinuxUser():
                return UserDeed(part)
            case core.Folder():
                return FolderDeed(part)
            case core.File():
                return FileDeed(part)
            case core.Service():
                return ServiceDeed(part)
            case core.Administrator():
                return _Administrator(part.user, self)
            case core.LedgerPart():
                return _Ledger(self)
            case core.HookPart():
                return _Hook(self)
            case core.Accounting():
                return _Accounting(self)
            case core.Doctor():
                return _Doctor(self)


@dataclass(frozen=True, slots=True)
class _Administrator:
    user: str
    site: Site

    @property
    def key(self) -> str:
        return f"administrator {self.user}"

    def missing(self) -> str:
        account = machine.account(self.user)
        config = self.site.slurm.config()
        if account is not None and account.pw_uid in (0, ctld.user(config)):
            return ""
        level = people.admin_level(self.site.slurm.commands, self.user)
        if level.lower() == "administrator":
            return ""
        return f"sacctmgr: {self.user} becomes an administrator of Slurm"

    def do(self, before: Any) -> tuple[Any, str]:
        cluster = self.site.slurm.cluster()
        level = people.make_administrator(self.site.slurm.commands, self.user, cluster)
        made = level if before is None else before
        return made, f"{self.user} is an administrator of Slurm"

    def undo(self, made: Any, *, purge: bool) -> str:
        people.take_back(self.site.slurm.commands, self.user, made)
        return ""


@dataclass(frozen=True, slots=True)
class _Ledger:
    site: Site

    @property
    def key(self) -> str:
        return f"ledger {self.site.settings.ledger.url}"

    def missing(self) -> str:
        section = self.site.settings.ledger
        if connect.missing_file(connect.connect(section.url).url) is not None:
            return f"make the ledger {section.url}"
        engine = engine_of(section.url, section.password_file)
        with connect.reading(engine) as connection:
            found = migrate.version(connection)
        if found is not None and found >= SCHEMA:
            migrate.demand(engine)
            engine.dispose()
            return ""
        engine.dispose()
        verb = "make the tables of" if found is None else f"bring from schema {found} to {SCHEMA}:"
        return f"{verb} the ledger {section.url}"

    def do(self, before: Any) -> tuple[Any, str]:
        made = before
        if self.missing().startswith("bring"):
            told = self.site.sbudget("ledger", "upgrade")
        else:
            told = self.site.sbudget("ledger", "init")
            made = True
        return made, told.splitlines()[-1]

    def undo(self, made: Any, *, purge: bool) -> str:
        url = connect.connect(self.site.settings.ledger.url).url
        file = connect.file_of(url)
        stays = f"the ledger {connect.shown(url)} stays"
        if file is None:
            # whoever made the database may have more in it; our user may not drop anything there
            secret = self.site.settings.ledger.password_file
            also = f" and {secret}" if secret else ""
            return LeftForGood(f"{stays}: that database, its user{also} are yours to remove")
        if not purge:
            return f"{stays} (--purge takes it too)"
        for name in (file.name, f"{file.name}-wal", f"{file.name}-shm"):
            file.with_name(name).unlink(missing_ok=True)
        return ""


@dataclass(frozen=True, slots=True)
class _Accounting:
    site: Site
    key: str = "accounting"

    def missing(self) -> str:
        what = "read the accounting of one window into the ledger"
        if _Ledger(self.site).missing():
            return what
        cluster = self.site.settings.slurm.cluster or self.site.slurm.cluster()
        return "" if self.site.open_ledger().cursor(cluster) is not None else what

    def do(self, before: Any) -> tuple[Any, str]:
        return None, self.site.sbudget("ledger", "import", fine=(0, 3)).splitlines()[-1]

    def undo(self, made: Any, *, purge: bool) -> str:
        return ""


@dataclass(frozen=True, slots=True)
class _Hook:
    site: Site
    key: str = "hook"
    told: list[str] = field(default_factory=list)

    def _look(self) -> hook.Site:
        return hook.look(self.site.slurm, self.site.settings, None, None)

    def missing(self) -> str:
        seen, given = self._look(), hook.sources()
        snapshot = self.site.settings.snapshot.path
        layout = hook_files.installed(given, seen.found, seen.places, snapshot)
        runs = not seen.uses_lua or hook.running(seen.log) == hook.identity(given.logic)
        if hook.in_place(layout) and runs:
            return ""
        return "; ".join(hook.steps(seen, layout))

    def do(self, before: Any) -> tuple[Any, str]:
        seen, given = self._look(), hook.sources()
        kept = _copies(seen)
        snapshot = self.site.settings.snapshot.path
        layout = hook_files.installed(given, seen.found, seen.places, snapshot)
        try_out(seen, layout, given)
        runs = hook.install(seen, layout, given.logic, self.told.append)
        copies = sorted({str(copy) for copy in _copies(seen) - kept} | set(before or ()))
        return copies, self.told[-1] if runs else self.told[-1].replace("\n  mend", "; to mend")

    def undo(self, made: Any, *, purge: bool) -> str:
        seen = self._look()
        kept = _copies(seen)
        layout = hook_files.removed(seen.found, seen.places, needed=seen.uses_lua)
        if not hook.in_place(layout):
            hook.remove(seen, layout, self.told.append)
        for copy in {Path(name) for name in made} | (_copies(seen) - kept):
            copy.unlink(missing_ok=True)
        left = hook_files.removed(seen.found, seen.places, needed=False)
        return "" if hook.in_place(left) else self.told[-1].replace("\n  mend", "; to mend")


def _copies(seen: hook.Site) -> set[Path]:
    """The copies that the hook's installer keeps beside what it changes."""
    places = (seen.places.slurm, seen.places.loader, seen.places.logic)
    return {copy for place in places for copy in place.parent.glob(f"{place.name}.????????.bak")}


@dataclass(frozen=True, slots=True)
class _Doctor:
    site: Site
    key: str = "doctor"

    def missing(self) -> str:
        return "look at everything"

    def do(self, before: Any) -> tuple[Any, str]:
        site = self.site
        _, found = doctor.examine(site.slurm, site.open_ledger, site.settings, site.now)
        bad = [finding for finding in found if finding.level == "error"]
        if not bad:
            return None, "nothing to mend"
        lines = [f"\n    {f.check}: {f.what}\n      mend: {f.mend}" for f in bad]
        return None, f"{len(bad)} to mend, and then `sbudget doctor` again:" + "".join(lines)

    def undo(self, made: Any, *, purge: bool) -> str:
        return ""
