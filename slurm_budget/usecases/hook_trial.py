"""Trying the hook's files in a Lua of this machine, before any of them is put in place."""

import tempfile
from pathlib import Path

from slurm_budget import files, lua
from slurm_budget.core import hook_files, hook_log
from slurm_budget.core.hook_files import Layout, Places, Sources
from slurm_budget.errors import BadInput
from slurm_budget.lua import Lua
from slurm_budget.slurm import ctld
from slurm_budget.usecases.hook import Site, identity


def try_out(site: Site, layout: Layout, sources: Sources) -> list[str]:
    """Load the new files beside the old ones, and let them admit a job. Notes for people: in what
    it was tried, and what could not be.

    Raises BadInput that says what Lua said; nothing has changed then.
    """
    plugin = ctld.plugin(site.config)
    found = lua.find(lua.linked(plugin) if plugin else "")
    if found is None:
        return [
            "NOT tried: this machine has neither lua nor luac nor Python's lupa; only slurmctld's"
            " own log will tell whether the files load"
        ]
    with tempfile.TemporaryDirectory(prefix="sbudget-hook-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        notes = _try_loader(found, folder, site, layout, sources)
        if layout.mode == "chained":
            notes += _try_chain(found, folder, site, sources)
    return notes


def _try_loader(
    found: Lua, folder: Path, site: Site, layout: Layout, sources: Sources
) -> list[str]:
    """Our two files by themselves, with the settings that the site will have."""
    staged = Places(folder / "slurm" / hook_files.LOADER, folder)
    real = site.places.slurm if layout.mode == "alone" else site.places.loader
    loader = layout.files[real]
    assert loader is not None
    files.put(staged.logic, sources.logic)
    files.put(staged.loader, hook_files.with_settings(loader, {"logic": f'"{staged.logic}"'}))
    if not found.runs:
        for path in (staged.logic, staged.loader):
            _demand(found.load(path).fault, path.name)
        return [f"only the syntax was checked, by {found.name}"]
    trial = found.load(staged.loader, call=True, uid=ctld.user(site.config))
    _demand(trial.fault, "the hook")
    if hook_log.running(trial.log) != identity(sources.logic) or "passes as it is" in trial.log:
        _demand(trial.log.splitlines()[-1] if trial.log else "it logged nothing", "the hook")
    return [f"tried in {found.name}: it loads, and admits and changes a job"]


def _try_chain(found: Lua, folder: Path, site: Site, sources: Sources) -> list[str]:
    """The site's script with our line, next to the same without it."""
    assert site.found.slurm is not None
    staged = Places(folder / "slurm" / hook_files.LOADER, folder)
    own = hook_files.unchain(hook_files.text_of(site.found.slurm), site.places.loader)
    uid = ctld.user(site.config)
    files.put(staged.slurm, hook_files.bytes_of(own))
    without = found.load(staged.slurm, uid=uid).fault
    if without:
        return [f"the site's own job_submit.lua cannot be tried outside slurmctld: {without}"]
    files.put(staged.slurm, hook_files.bytes_of(hook_files.chain(own, staged.loader)))
    trial = found.load(staged.slurm, uid=uid)
    _demand(trial.fault, "the site's job_submit.lua with our line")
    if found.runs and hook_log.running(trial.log) != identity(sources.logic):
        raise BadInput(
            "our line before its end is never reached",
            where=str(site.places.slurm),
            mend=f'add dofile("{site.places.loader}") where it is, as the last line but one',
        )
    return ["tried behind the site's own job_submit.lua: both load"]


def _demand(fault: str, where: str) -> None:
    if fault:
        raise BadInput(
            f"does not load, nothing was changed: {fault}",
            where=where,
            mend="correct that file, or install slurm-budget again",
        )
