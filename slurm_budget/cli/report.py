"""`sbudget report`."""

import sys

import click

from slurm_budget.cli.context import Context
from slurm_budget.cli.report_cluster import cluster


@click.group()
def report() -> None:
    """Reports in the manner of sreport."""


report.add_command(cluster)


@report.command()
@click.option("-P", "--parsable", is_flag=True, help="Fields separated by |.")
@click.option("-n", "--noheader", is_flag=True, help="No header.")
@click.option("--json", "as_json", is_flag=True, help="JSON, with GPU-milliseconds as integers.")
@click.pass_obj
def budgets(ctx: Context, parsable: bool, noheader: bool, as_json: bool) -> None:
    """Budget, funded and preemptible use, charge and what is left, by account.

    All in GPU-hours within the window that ends now. Funded: what ran in a funded QOS. Charged: the
    protected part of it, which the budget pays. Standing: use as per cent of the budget.
    """
    from slurm_budget.render import report as render
    from slurm_budget.usecases import report as use

    rows = use.budgets(ctx.ledger(), ctx.cluster, ctx.settings, ctx.now)
    if as_json:
        click.echo(render.as_json(rows, ctx.cluster, ctx.now))
    elif parsable:
        click.echo(render.parsable(rows, header=not noheader))
    elif noheader or not sys.stdout.isatty():
        click.echo(render.plain(rows, header=not noheader))
    else:
        from rich.console import Console

        Console().print(render.table(rows, ctx.cluster))
