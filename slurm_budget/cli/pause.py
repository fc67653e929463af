"""`sbudget pause` and `sbudget resume`: the brake."""

import click

from slurm_budget.cli.context import Context
from slurm_budget.text import moments
from slurm_budget.text.printable import printable


@click.command()
@click.option("-m", "--reason", required=True, help="Why; every sweep says it.")
@click.pass_obj
def pause(ctx: Context, reason: str) -> None:
    """Stop acting: no signal, no requeue, no retag, until `sbudget resume`.

    Sweeps go on to observe, to account and to publish the snapshot, so jobs get their verdicts at
    sbatch. What stands half done (a run that was warned) stays so.
    """
    brake = ctx.ledger().brake(ctx.cluster)
    if brake is not None and brake.paused:
        who, why, at = printable(brake.author), printable(brake.reason), moments.shown(brake.at)
        click.echo(f"already paused by {who} since {at}: {why}; nothing changed")
        return
    ctx.ledger().set_brake(ctx.cluster, paused=True, author=ctx.user, reason=reason, now=ctx.now)
    click.echo(f"paused: {printable(reason)}; `sbudget resume` ends it")


@click.command()
@click.option("-m", "--reason", default="", help="Why.")
@click.pass_obj
def resume(ctx: Context, reason: str) -> None:
    """Act again, from the next sweep on. Runs that were warned before are warned again."""
    brake = ctx.ledger().brake(ctx.cluster)
    if brake is None or not brake.paused:
        click.echo("not paused: nothing to do")
        return
    ctx.ledger().set_brake(ctx.cluster, paused=False, author=ctx.user, reason=reason, now=ctx.now)
    who, why, at = printable(brake.author), printable(brake.reason), moments.shown(brake.at)
    click.echo(f"resumed; {who} had paused it at {at}: {why}")
