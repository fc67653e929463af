"""`sbudget hook install|check|show|remove`."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from slurm_budget.cli.context import Context
from slurm_budget.cli.doctor import say
from slurm_budget.errors import Exit

_FOLDER = click.Path(path_type=Path, file_okay=False)


def _places(command: Callable[..., Any]) -> Callable[..., Any]:
    command = click.option(
        "--folder", type=_FOLDER, help="Folder of our own files (default: hook.folder)."
    )(command)
    return click.option(
        "--slurm-dir", type=_FOLDER, help="Folder of slurm.conf (default: $SLURM_CONF's)."
    )(command)


@click.group()
def hook() -> None:
    """Install, check and remove the submit hook. To be run on the controller, as root."""


@hook.command()
@_places
@click.option(
    "--from", "source", type=_FOLDER, help="Folder with other sbudget.lua and job_submit.lua."
)
@click.option("--dry-run", is_flag=True, help="Say each step; change nothing.")
@click.option("--yes", is_flag=True, help="Do not ask before the files are changed.")
@click.pass_context
def install(
    ctx: click.Context,
    slurm_dir: Path | None,
    folder: Path | None,
    source: Path | None,
    dry_run: bool,
    yes: bool,
) -> None:
    """Put the hook in place, alone or behind the site's own job_submit.lua, and see it run.

    The files are tried in Lua first. When slurmctld's log does not say that the new version runs,
    the old files come back (exit 1). Exit codes: 0 it runs, 1 put back, 2 the files do not load,
    3 in place, but not seen to run (the line says what to do).
    """
    from slurm_budget.core import hook_check, hook_files
    from slurm_budget.slurm import ctld
    from slurm_budget.usecases import hook as use
    from slurm_budget.usecases.hook_trial import try_out

    obj: Context = ctx.obj
    site = use.look(obj.slurm(), obj.settings, slurm_dir, folder)
    given = use.sources(source)
    layout = hook_files.installed(given, site.found, site.places, obj.settings.snapshot.path)
    for note in try_out(site, layout, given):
        click.echo(note)
    plugin = hook_check.plugin(ctld.plugin(site.config))
    if plugin.mend:
        click.echo(f"{plugin.what}\n  mend: {plugin.mend}")
    if use.in_place(layout) and use.running(site.log) == use.identity(given.logic):
        click.echo(f"nothing to do: slurmctld runs {use.identity(given.logic)}, {layout.mode}")
        return
    click.echo(f"{use.identity(given.logic)}, {layout.mode}:")
    if not _agreed(use.steps(site, layout), dry_run, yes):
        return
    if not use.install(site, layout, given.logic, click.echo):
        ctx.exit(int(Exit.PARTLY))


@hook.command()
@_places
@click.option("--dry-run", is_flag=True, help="Say each step; change nothing.")
@click.option("--yes", is_flag=True, help="Do not ask before the files are changed.")
@click.pass_obj
def remove(
    obj: Context, slurm_dir: Path | None, folder: Path | None, dry_run: bool, yes: bool
) -> None:
    """Take the hook out again; a site's own job_submit.lua is then as it was without us.

    Jobs that ask for `--qos=funded` are refused by Slurm from then on.
    """
    from slurm_budget.core import hook_files
    from slurm_budget.usecases import hook as use

    site = use.look(obj.slurm(), obj.settings, slurm_dir, folder)
    layout = hook_files.removed(site.found, site.places, needed=site.uses_lua)
    if use.in_place(layout):
        click.echo("nothing to do: the hook is not installed")
        return
    if not _agreed(use.steps(site, layout), dry_run, yes):
        return
    use.remove(site, layout, click.echo)


@hook.command()
@_places
@click.pass_context
def check(ctx: click.Context, slurm_dir: Path | None, folder: Path | None) -> None:
    """Say whether the hook is installed, which version runs, and how old its snapshot is.

    Exit codes: 0 all is well (warnings too), 1 something must be mended.
    """
    from slurm_budget.usecases import hook as use

    obj: Context = ctx.obj
    site = use.look(obj.slurm(), obj.settings, slurm_dir, folder)
    found = use.check(site, obj.settings, obj.now)
    say(found)
    if any(finding.level == "error" for finding in found):
        ctx.exit(int(Exit.FAILED))


@hook.command()
@_places
@click.pass_obj
def show(obj: Context, slurm_dir: Path | None, folder: Path | None) -> None:
    """Print what would be installed and where; the logic by its checksum alone."""
    from slurm_budget.core import hook_files
    from slurm_budget.usecases import hook as use

    site = use.look(obj.slurm(), obj.settings, slurm_dir, folder)
    given = use.sources()
    layout = hook_files.installed(given, site.found, site.places, obj.settings.snapshot.path)
    for path, blob in layout.files.items():
        if path == site.places.logic:
            click.echo(f"-- {path}: {use.identity(given.logic)}, {len(given.logic)} bytes\n")
        elif blob is not None:
            click.echo(f"-- {path}:\n")
            click.echo(blob)


def _agreed(steps: list[str], dry_run: bool, yes: bool) -> bool:
    """Say each step, and ask; False where nothing is to be done."""
    for step in steps:
        click.echo(f"  {step}")
    if not dry_run and not yes:
        click.confirm("Go on?", abort=True)
    return not dry_run
