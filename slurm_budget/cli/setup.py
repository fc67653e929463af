"""`sbudget setup`: a site's installation, step by step, and its undoing."""

import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from slurm_budget.cli.context import Context
from slurm_budget.errors import BadInput, Exit

if TYPE_CHECKING:
    from slurm_budget.usecases.setup import Told
    from slurm_budget.usecases.setup_record import Record
    from slurm_budget.usecases.setup_slurm import Site


@click.command()
@click.option("--undo", is_flag=True, help="Take away again what setup made here.")
@click.option("--purge", is_flag=True, help="With --undo: the ledger and changed files too.")
@click.option("--dry-run", is_flag=True, help="Say each step; change nothing.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--skip", multiple=True, metavar="STEP", help="Leave this step out. Repeatable.")
@click.option("--only", multiple=True, metavar="STEP", help="Nothing but this step. Repeatable.")
@click.option("--user", help="Who sweeps (default: slurm-budget, which is added).")
@click.option("--by", type=click.Choice(["systemd", "cron"]), help="Default: what there is.")
@click.option(
    "--root",
    type=click.Path(path_type=Path, file_okay=False),
    help="Only files, below this folder: for a package or an image.",
)
@click.pass_context
def setup(
    ctx: click.Context,
    undo: bool,
    purge: bool,
    dry_run: bool,
    yes: bool,
    skip: tuple[str, ...],
    only: tuple[str, ...],
    user: str | None,
    by: str | None,
    root: Path | None,
) -> None:
    """Install on this controller: user, folders, settings, ledger, right, hook, daemon.

    Shows what is to be done, asks, and does it; what is there already is left alone, so it can be
    run as often as you like, after an upgrade too. What it made stands in
    /etc/slurm-budget/setup.json; --undo takes that away and nothing else. To be run as root.

    Steps: user, folders, config, ledger, slurm, import, hook, sysusers, systemd, cron, logrotate,
    doctor.

    Exit codes: 0 done or nothing to do, 2 usage, 3 a step failed, its line says how to mend it.
    """
    from slurm_budget.core import setup as core
    from slurm_budget.usecases import setup as use

    if purge and not undo:
        raise BadInput("--purge is for --undo", mend="leave it out")
    if os.geteuid() != 0 and root is None and not dry_run:
        raise BadInput("setup changes this machine", mend="run it as root, or with --root DIR")
    obj: Context = ctx.obj
    site, record = _site(obj, user, by or "", (root or Path("/")).absolute())
    steps = core.chosen(core.plan(site.target), skip, only)
    if undo:
        planned = use.undo(steps, site.deed, record, purge=purge, dry_run=True)
    else:
        planned = use.look(steps, site.deed)
    todo = _say(planned)
    if not any(told.outcome in ("to do", "FAILED") for told in todo if told.step != "doctor"):
        click.echo("nothing to do; `sbudget doctor` says what is left to mend")
        return
    if dry_run:
        return
    if not yes:
        click.confirm("Go on?", abort=True)
    click.echo()
    if undo:
        went = use.undo(steps, site.deed, record, purge=purge, dry_run=False)
    else:
        went = use.do(steps, site.deed, record)
    if any(told.outcome == "FAILED" for told in _say(went)):
        ctx.exit(int(Exit.PARTLY))


def _site(obj: Context, user: str | None, by: str, root: Path) -> "tuple[Site, Record]":
    """The machine as the settings, the options and an earlier setup have it."""
    from slurm_budget import settings
    from slurm_budget.core.setup import CONFIG, USER
    from slurm_budget.usecases import setup as use
    from slurm_budget.usecases.setup_record import Record
    from slurm_budget.usecases.setup_slurm import Site

    config = settings.path_in_force(obj.config) or settings.DEFAULT_PATH
    if not config.exists():  # setup writes it, with every setting as it is by default
        obj.settings = settings.Settings()
    config = config.absolute()
    record = Record.read(root / CONFIG.removeprefix("/"))
    name = user or record.options.get("user") or USER
    by = by or record.options.get("by", "")
    record.options |= {"user": name, "by": by}
    program = Path(sys.executable).with_name("sbudget")
    slurm_conf = Path(os.environ["SLURM_CONF"]) if os.environ.get("SLURM_CONF") else None
    target = use.target(program, config, obj.settings, name, by, root, slurm_conf)
    return Site(target, obj.slurm(), obj.settings, obj.now, obj.ledger), record


def _say(each: "Iterable[Told]") -> "list[Told]":
    """A line for each step, as it comes."""
    out = []
    for told in each:
        click.echo(f"{told.step:<9}  {told.outcome:<7}  {told.what}")
        if told.mend:
            click.echo(f"{'':9}  {'':7}  mend: {told.mend}")
        out.append(told)
    return out
