"""`sbudget report cluster`."""

import click

from slurm_budget.cli.context import Context
from slurm_budget.text.moments import shown


@click.command()
@click.option("-P", "--parsable", is_flag=True, help="Fields separated by |.")
@click.option("-n", "--noheader", is_flag=True, help="No headers (with -P).")
@click.option("--json", "as_json", is_flag=True, help="JSON, with epoch seconds.")
@click.pass_obj
def cluster(ctx: Context, parsable: bool, noheader: bool, as_json: bool) -> None:
    """Nodes and GPUs now, and hosts under repair.

    For each draining node: since when, by whom and why; which runs still hold it, until when each
    is protected, whose protection that is, and what the next sweep will do. Asks Slurm, unlike the
    other reports: exit code 6 when it does not answer.
    """
    from slurm_budget.render import cluster as render
    from slurm_budget.usecases.cluster import cluster_now

    found = cluster_now(ctx.slurm(), ctx.ledger(), ctx.settings, ctx.now)
    if as_json:
        click.echo(render.as_json(found.cluster, found.totals, found.repairs, found.now))
    elif parsable:
        click.echo(render.parsable(found.totals, found.repairs, shown, header=not noheader))
    else:
        click.echo(render.text(found.cluster, found.totals, found.repairs, shown, found.now))
