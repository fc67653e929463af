"""`sbudget report across`."""

from typing import Any

import click

from slurm_budget.cli import report_forms, words
from slurm_budget.cli.context import Context
from slurm_budget.render.cells import time_of


@click.command()
@report_forms.options
@click.pass_obj
def across(ctx: Context, /, time: str, as_json: bool, **how: Any) -> None:
    """Budgets of every cluster in the ledger, and of all clusters together.

    Within the window that ends now. Accounts of the same name are one account: where several
    clusters have it, their budgets add up; with ledger.across the budget is one for all.
    """
    from slurm_budget.render import across as render
    from slurm_budget.usecases import across as use
    from slurm_budget.usecases.accounting import window_of

    unit, ledger = time_of(time), ctx.ledger()
    report_forms.one_form(how["parsable"], as_json, how["as_csv"])
    rows = use.report(ledger, ctx.settings, ctx.now)
    if as_json:
        click.echo(render.as_json(rows, ctx.now))
        return
    swept = {name: ledger.newest_sweep(name)[0] for name in ledger.clusters()}
    start = ctx.now - window_of(ctx.settings).budget_seconds
    table = render.table(rows, ", ".join(swept), start, ctx.now)
    last = [f"{name}: {words.as_of_sweep(at, ctx.now)}" for name, at in swept.items()]
    report_forms.show(table, unit, tree=False, last="\n".join(last), **how)
