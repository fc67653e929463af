"""What `sbudget hook check` says of the submit hook, as rules over what was seen. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from slurm_budget.core.doctor import Finding
from slurm_budget.core.hook_files import Mode, Places
from slurm_budget.core.hook_log import Running

INSTALL = "run `sbudget hook install`"
PLUGIN_LINE = "slurm.conf: JobSubmitPlugins=lua (beside what stands there), then restart slurmctld"


@dataclass(frozen=True, slots=True)
class Seen:
    """`file` is the logic that the loader names, `shipped` this program's, `running` what the log
    last said (None: nothing); `snapshot` is the path that the loader names."""

    uses_lua: bool
    plugin: Path | None
    mode: Mode
    places: Places
    file: Running | None
    shipped: Running
    running: Running | None
    log: Path | None
    snapshot: str
    wanted_snapshot: str


def findings(seen: Seen) -> list[Finding]:
    """In the order in which a site would mend them."""
    out = [plugin(seen.plugin), enabled(seen.uses_lua)]
    if seen.mode in ("none", "site"):
        what = "there is none" if seen.mode == "none" else "it is the site's own, without our line"
        return [*out, Finding("hook", "error", f"{seen.places.slurm}: {what}", INSTALL)]
    where = f"{seen.places.slurm}, {seen.mode}"
    if seen.mode == "chained":
        where += f" behind the site's own; {seen.places.loader}"
    return [*out, Finding("hook", "ok", where), _file(seen), _running(seen), _snapshot(seen)]


def open_files(theirs: Mapping[Path, Path]) -> list[Finding]:
    """Files that slurmctld runs as its own user, with what of their path others may write."""
    return [
        Finding(
            "rights",
            "error",
            f"others may write {place}, and so what slurmctld runs as {path.name}",
            f"chmod go-w {place}",
        )
        for path, place in theirs.items()
    ]


def plugin(path: Path | None) -> Finding:
    if path is not None:
        return Finding("plugin", "ok", str(path))
    mend = "install it on the controller (Debian: slurm-wlm-basic-plugins; or build Slurm with Lua)"
    return Finding("plugin", "warning", "Slurm's job_submit_lua.so is not on this machine", mend)


def enabled(uses_lua: bool) -> Finding:
    if uses_lua:
        return Finding("slurm.conf", "ok", "JobSubmitPlugins has lua")
    return Finding("slurm.conf", "error", "JobSubmitPlugins has no lua", PLUGIN_LINE)


def _file(seen: Seen) -> Finding:
    if seen.file is None:
        return Finding("file", "error", "the loader's sbudget.lua is not there", INSTALL)
    if seen.file != seen.shipped:
        what = f"sbudget.lua is {seen.file}, this program has {seen.shipped}"
        return Finding("file", "warning", what, INSTALL)
    return Finding("file", "ok", f"sbudget.lua is {seen.file}, as this program has it")


def _running(seen: Seen) -> Finding:
    if seen.log is None:
        what = "slurmctld has no log on this machine that would say what runs"
        mend = "run this on the controller; slurm.conf: SlurmctldLogFile, SlurmctldDebug=info"
        return Finding("running", "warning", what, mend)
    if seen.running is None:
        what = f"{seen.log} does not say that the hook was loaded"
        return Finding("running", "error", what, INSTALL + ", which loads it and looks again")
    if seen.file is not None and seen.running != seen.file:
        what = f"slurmctld runs {seen.running}, the file is {seen.file}"
        return Finding("running", "error", what, INSTALL)
    return Finding("running", "ok", f"slurmctld runs {seen.running}")


def _snapshot(seen: Seen) -> Finding:
    if seen.snapshot == seen.wanted_snapshot:
        return Finding("snapshot path", "ok", seen.snapshot)
    what = f"the hook reads {seen.snapshot or 'none'}, sweeps write {seen.wanted_snapshot}"
    return Finding("snapshot path", "error", what, INSTALL)
