"""`sbudget report cluster`."""

import click

from slurm_budget.cli import report_forms
from slurm_budget.cli.context import Context
from slurm_budget.render.cells import time_of
from slurm_budget.text.moments import shown


@click.command()
@report_forms.options
@click.pass_obj
def cluster(
    ctx: Context, parsable: bool, noheader: bool, time: str, as_json: bool, as_csv: bool
) -> None:
    """Nodes and GPUs now, and hosts under repair.

    For each draining node: since when, by whom and why; which runs still hold it, until when each
    is protected, whose protection that is, and what the next sweep will do. Asks Slurm, unlike the
    other reports: exit code 6 when it does not answer. It counts GPUs and no GPU-time, so -t
    changes nothing.
    """
    from slurm_budget.render import cluster as render
    from slurm_budget.usecases.cluster import cluster_now

    time_of(time)
    report_forms.one_form(parsable, as_json, as_csv)
    found = cluster_now(ctx.slurm(), ctx.ledger(), ctx.settings, ctx.now)
    if as_json:
        click.echo(render.as_json(found.cluster, found.totals, found.repairs, found.now))
    elif parsable or as_csv:
        cells = render.for_scripts(found.totals, found.repairs, shown, header=not noheader)
        click.echo(render.parsable(cells) if parsable else render.as_csv(cells))
    else:
        click.echo(
            render.text(
                found.cluster, found.totals, found.repairs, shown, found.now, header=not noheader
            )
        )
