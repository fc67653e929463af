"""`sbudget report html`: the page for managers."""

from pathlib import Path

import click

from slurm_budget import files
from slurm_budget.cli import report_words
from slurm_budget.cli.context import Context
from slurm_budget.errors import BadInput
from slurm_budget.usecases.accounting import window_of
from slurm_budget.usecases.report import Scope


@click.command("html")
@click.argument("words", nargs=-1, metavar="[WORDS]...")
@click.option("-o", "--output", required=True, help="The file to write; `-` is the terminal.")
@click.pass_obj
def html(ctx: Context, words: tuple[str, ...], output: str) -> None:
    """All of it for managers, as one HTML file that needs no network.

    \b
    WORDS, as sreport takes them:
      start=WHEN end=WHEN   now-30days, 2026-11-01, ... (default: the window until now)
      cluster=NAME          default: slurm.cluster, or slurm.conf's
    """
    said = report_words.parse(words)
    if said.accounts or said.users or said.format or said.tree:
        raise BadInput("report html is of the whole cluster", mend="give start=, end=, cluster=")
    window = window_of(ctx.settings).budget_seconds
    query = said.query(report_words.cluster(said, ctx), ctx.now, window)
    from slurm_budget.render.page import page
    from slurm_budget.usecases.report_page import page as found

    text = page(found(Scope(ctx.ledger(), ctx.settings, query)), ctx.now)
    if output == "-":
        click.echo(text, nl=False)
    else:
        files.replace(files.need_folder(Path(output)), text)
