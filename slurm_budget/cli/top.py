"""`sbudget top`."""

import sys
import time
from typing import TYPE_CHECKING

import click

from slurm_budget.cli.context import Context

if TYPE_CHECKING:
    from slurm_budget.usecases.overview import Overview


@click.command()
@click.option("--once", is_flag=True, help="Print it once, as plain text.")
@click.option(
    "-i", "--interval", type=click.FloatRange(1, 3600), default=5, help="Seconds between looks."
)
@click.pass_obj
def top(ctx: Context, once: bool, interval: float) -> int | None:
    """Teams, their standing, what runs, waits and is owed, and what the last sweeps said.

    q or Ctrl-C leaves. Into a pipe it prints once, and the exit code tells which source failed (6
    Slurm, 7 ledger). Standings and sweeps need the ledger; the rest is there for everybody.
    """
    from slurm_budget.cli import words
    from slurm_budget.render import top as render

    seen = _look(ctx)
    if once or not sys.stdout.isatty():
        click.echo(render.plain(seen, words.clock))
        return next((int(bad.code) for bad in seen.failed.values()), None)
    from rich.live import Live

    from slurm_budget.cli.keys import keys

    try:
        with keys() as pressed, Live(render.live(seen, words.clock), screen=True) as view:
            while pressed(interval) not in ("q", "Q"):
                ctx.now = int(time.time())
                view.update(render.live(_look(ctx), words.clock), refresh=True)
    except KeyboardInterrupt:
        return None
    return None


def _look(ctx: Context) -> "Overview":
    from slurm_budget.usecases.overview import overview_of

    return overview_of(ctx.slurm(), ctx.readable_ledger, ctx.settings, lambda: ctx.cluster, ctx.now)
