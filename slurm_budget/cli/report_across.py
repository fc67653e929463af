"""`sbudget report across`."""

import click

from slurm_budget.cli.context import Context


@click.command()
@click.option("-P", "--parsable", is_flag=True, help="Fields separated by |.")
@click.option("-n", "--noheader", is_flag=True, help="No header.")
@click.option("--json", "as_json", is_flag=True, help="JSON, with GPU-milliseconds as integers.")
@click.pass_obj
def across(ctx: Context, parsable: bool, noheader: bool, as_json: bool) -> None:
    """Budgets of every cluster in the ledger, and of all clusters together.

    In GPU-hours within the window that ends now. Accounts of the same name are one account: where
    several clusters have it, their budgets add up; with ledger.across the budget is one for all.
    """
    from slurm_budget.render import across as render
    from slurm_budget.usecases.across import report

    rows = report(ctx.ledger(), ctx.settings, ctx.now)
    if as_json:
        click.echo(render.as_json(rows, ctx.now))
        return
    make = render.parsable if parsable else render.text
    for line in make(rows, header=not noheader):
        click.echo(line)
