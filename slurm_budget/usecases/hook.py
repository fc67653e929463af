"""The submit hook's installation: look, try, put in place, have slurmctld load it, or put it back.

A broken job_submit.lua stops a slurmctld that starts; one that runs keeps the old script and logs
why. So the new files are tried before anything changes, and slurmctld's log has the last word:
where it does not say that the new version runs, the old files come back.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from slurm_budget import files, shipped
from slurm_budget.core import hook_check, hook_files, hook_log
from slurm_budget.core.doctor import Finding
from slurm_budget.core.hook_files import LOADER, LOGIC, Found, Layout, Places, Sources
from slurm_budget.core.hook_log import Running
from slurm_budget.errors import BadInput, SbudgetError, SlurmUnreachable
from slurm_budget.settings import Settings
from slurm_budget.slurm import ctld
from slurm_budget.slurm.command import Commands
from slurm_budget.slurm.port import CommandSlurm
from slurm_budget.usecases import publish

PATIENCE = 10.0
"""Seconds that slurmctld has to log what it loaded."""
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Site:
    """What there is: slurmctld's configuration, the places, what stands in them, its log."""

    commands: Commands
    config: Mapping[str, str]
    places: Places
    found: Found
    log: Path | None

    @property
    def uses_lua(self) -> bool:
        return ctld.uses_lua(self.config)


def look(slurm: CommandSlurm, settings: Settings, conf: Path | None, folder: Path | None) -> Site:
    """See what there is; `conf` and `folder` stand in for slurm.conf's folder and hook.folder.

    Raises SlurmUnreachable where slurmctld does not answer, BadInput where no slurm.conf is.
    """
    config = slurm.config()
    etc = conf or slurm.commands.conf_in_force().parent
    if not (etc / "slurm.conf").exists():
        raise BadInput(
            "there is no slurm.conf",
            where=str(etc),
            mend="run this on the controller, or name its folder with --slurm-dir",
        )
    # resolved, so that a link to a file in a site's repository stays one
    places = Places((etc.absolute() / LOADER).resolve(), folder or settings.hook.folder)
    found = Found(files.read(places.slurm), files.read(places.loader), files.read(places.logic))
    return Site(slurm.commands, config, places, found, ctld.log_of(config))


def sources(folder: Path | None = None) -> Sources:
    """Our two files, from a folder or as they were shipped. Raises SbudgetError."""
    place = folder or shipped.folder("etc", LOGIC)
    logic, loader = files.read(place / LOGIC), files.read(place / LOADER)
    if logic is None or loader is None:
        raise BadInput(f"{LOGIC} and {LOADER} are not both there", where=str(place))
    return Sources(logic, loader)


def identity(logic: bytes) -> Running:
    return Running(hook_files.version(logic), hook_files.checksum(logic))


def in_place(layout: Layout) -> bool:
    """Whether every file stands as it should."""
    return all(files.read(path) == blob for path, blob in layout.files.items())


def steps(site: Site, layout: Layout) -> list[str]:
    """What `install` or `remove` will do, for people."""
    out = []
    for path, blob in layout.files.items():
        now = files.read(path)
        if blob is None:
            out += [f"remove {path}"] if now is not None else []
        elif now is None:
            out.append(f"write {path}")
        else:
            out.append(f"replace {path}, keeping a copy" if now != blob else f"touch {path}")
    if site.uses_lua:
        out.append("sbatch --test-only, so that slurmctld loads it")
        out.append(
            f"look into {site.log}" if site.log else "slurmctld's log is not on this machine"
        )
    return out


def running(log: Path | None) -> Running | None:
    """What slurmctld last said that it loaded."""
    if log is None:
        return None
    return hook_log.running(ctld.last(log, hook_log.LOADED, hook_log.NOT_LOADED))


def install(site: Site, layout: Layout, logic: bytes, say: Say) -> bool:
    """Put the files in place and have slurmctld load them. False where it could not be seen that
    they run, which `say` has then told. Raises SbudgetError after everything was put back."""
    wanted = identity(logic)

    def fault(text: str) -> str:
        seen = hook_log.running(text)
        if seen == wanted:
            return ""
        return f"slurmctld does not run {wanted}, it loaded {seen or 'nothing'}"

    _replace(site, layout, fault, say)
    if not site.uses_lua:
        finding = hook_check.enabled(False)
        say(f"it does not run yet: {finding.what}\n  mend: {finding.mend}")
        return False
    if site.log is None:
        say(
            "whether slurmctld runs it could not be seen: it has no log on this machine\n"
            "  mend: look for `sbudget: hook` and `job_submit/lua` where slurmctld logs to"
        )
        return False
    say(f"slurmctld runs {wanted}")
    return True


def remove(site: Site, layout: Layout, say: Say) -> None:
    """Take the hook out: a site's own file is again as it was. As `install` otherwise."""
    _replace(site, layout, lambda text: "", say)
    if layout.files[site.places.slurm] == hook_files.PASS.encode():
        say(
            f"{site.places.slurm} lets every job pass: slurmctld would not start without it\n"
            "  mend: take lua out of JobSubmitPlugins, restart slurmctld, and remove once more"
        )


def _replace(site: Site, layout: Layout, fault: Callable[[str], str], say: Say) -> None:
    before = {path: files.read(path) for path in layout.files}
    for path, blob in layout.files.items():
        if before[path] not in (None, blob):
            say(f"kept a copy: {files.back_up(path)}")
    at = ctld.size(site.log) if site.log else 0
    changed: dict[Path, bytes | None] = {}
    try:
        for path, blob in layout.files.items():
            files.change(path, blob)
            changed[path] = before[path]
            say(f"wrote {path}" if blob is not None else f"removed {path}")
        if site.uses_lua:
            ctld.reload(site.commands)
        wrong = _wrong(site, at, fault) if site.uses_lua else ""
    except (SbudgetError, KeyboardInterrupt) as bad:
        wrong = str(bad) or "interrupted"
    if wrong:
        _put_back(site, changed, wrong)


def _wrong(site: Site, at: int, fault: Callable[[str], str]) -> str:
    """What slurmctld's log says against the files that it was told to load; empty: nothing."""
    if site.log is None:
        return ""
    text = ctld.wait(
        site.log, at, lambda seen: not fault(seen) or bool(hook_log.trouble(seen)), PATIENCE
    )
    return "; ".join(hook_log.trouble(text)) or fault(text)


def _put_back(site: Site, before: Mapping[Path, bytes | None], wrong: str) -> None:
    state = "the files are as before"
    at = ctld.size(site.log) if site.log else 0
    for path, blob in before.items():
        files.change(path, blob)
    try:
        if site.uses_lua:
            ctld.reload(site.commands)
            said = hook_log.trouble(ctld.since(site.log, at)) if site.log else []
            state += ", and slurmctld was told; " + ("; ".join(said) or "it has no complaint")
    except SlurmUnreachable as bad:
        state += f"; slurmctld could not be told: {bad.what}"
    raise SbudgetError(
        f"the hook was not changed: {wrong}",
        where=str(site.log or site.places.slurm),
        mend=f"correct that and run it again ({state})",
    )


def check(site: Site, settings: Settings, now: int) -> list[Finding]:
    """Whether the hook is installed, which version runs, and whether it has facts to decide by."""
    kind = hook_files.mode(site.found.slurm, site.places)
    alone = kind == "alone"
    where = site.places.slurm if alone else site.places.loader
    values = hook_files.kept_settings(site.found.slurm if alone else site.found.loader, where)
    named = values.get("logic", "").strip('"')
    logic = files.read(Path(named)) if named else None
    seen = hook_check.Seen(
        uses_lua=site.uses_lua,
        plugin=ctld.plugin(site.config),
        mode=kind,
        places=site.places,
        file=identity(logic) if logic is not None else None,
        shipped=identity(sources().logic),
        running=running(site.log),
        log=site.log,
        snapshot=values.get("snapshot", "").strip('"'),
        wanted_snapshot=str(settings.snapshot.path),
    )
    lying = [path for path in (site.places.slurm, Path(named) if named else None) if path]
    theirs = {path: found for path in lying if (found := _theirs(path)) is not None}
    return [
        *hook_check.findings(seen),
        *hook_check.open_files(theirs),
        publish.finding(settings, now),
    ]


def _theirs(path: Path) -> Path | None:
    """The file, or a folder on its way, that others than its owner may write."""
    try:
        if path.stat().st_mode & files.NOT_THEIRS:
            return path
        return files.open_to_others(path.parent)
    except OSError:
        return None  # not there, which another finding says
