"""`sbudget report`: one command for each report, all with the same options."""

from collections.abc import Callable, Sequence
from typing import Any

import click

from slurm_budget.cli import report_forms, report_words, words
from slurm_budget.cli.context import Context
from slurm_budget.cli.report_across import across
from slurm_budget.cli.report_cluster import cluster
from slurm_budget.cli.report_html import html
from slurm_budget.errors import BadInput
from slurm_budget.render import reports as columns
from slurm_budget.render.cells import time_of
from slurm_budget.render.table import Report, Table, chosen
from slurm_budget.usecases import known
from slurm_budget.usecases import report as use
from slurm_budget.usecases import report_delivered as share
from slurm_budget.usecases.accounting import window_of

Rows = Callable[[use.Scope], Sequence[Any]]

_WORDS = """
    \b
    WORDS, as sreport takes them:
      start=WHEN end=WHEN   now-7days, today, 2026-11-01, 11/01, 08:30, ... (default: the
                            window until now)
      accounts=A,B          these with all below them
      users=U,V             where the report has users
      cluster=NAME          default: slurm.cluster, or slurm.conf's
      format=FIELD%WIDTH,.. fields and their widths; docs/reports.md has them all
      tree                  indent accounts
"""
_REPORTS: tuple[tuple[Report[Any], Rows, str, bool], ...] = (
    (columns.BUDGETS, use.budgets, "Budget, use, charge and what is left, by account.", False),
    (columns.USERS, use.users, "The same by user in an account.", True),
    (columns.USAGE, use.usage, "GPU-time by account and user, as sreport counts it.", True),
    (columns.WAITS, use.waits, "How long runs waited, by class and size.", False),
    (columns.REQUEUES, use.requeues, "Runs that were stopped from outside, and the loss.", True),
    (columns.DELIVERED, share.by_account, "What accounts deserved, and what they got.", False),
    (columns.SUMMARY, share.in_short, "The period in a dozen lines.", False),
)


@click.group()
def report() -> None:
    """Reports in the manner of sreport, from the ledger alone."""


def _command(about: Report[Any], rows: Rows, help_: str, has_users: bool) -> click.Command:
    @click.command(about.name, help=help_ + "\n" + _WORDS)
    @click.argument("asked", nargs=-1, metavar="[WORDS]...")
    @report_forms.options
    @click.pass_obj
    def command(
        ctx: Context, /, asked: tuple[str, ...], time: str, as_json: bool, **how: bool
    ) -> None:
        said, unit = report_words.parse(asked), time_of(time)
        report_forms.one_form(how["parsable"], as_json, how["as_csv"])
        if said.users and not has_users:
            raise BadInput(f"report {about.name} has no users", mend="leave out users=")
        query = said.query(
            report_words.cluster(said, ctx), ctx.now, window_of(ctx.settings).budget_seconds
        )
        scope = use.Scope(ctx.ledger(), ctx.settings, query)
        known.check(scope)
        fields = chosen(about, said.format)
        figures = {field.column.kind for field in fields}
        capacity = None
        if unit == "percent" and about.whole is None and figures & {"gpu-time", "measure"}:
            capacity = use.need_capacity(scope, weighted=about is not columns.USAGE)
        table = Table(
            about, rows(scope), fields, query.cluster, query.start, query.end, capacity, scope.swept
        )
        if as_json:
            from slurm_budget.render.report_json import as_json as document

            click.echo(document(table))
            return
        last = words.as_of_sweep(scope.swept, ctx.now, query.end)
        report_forms.show(table, unit, tree=said.tree, last=last, **how)

    return command


for _report in _REPORTS:
    report.add_command(_command(*_report))
report.add_command(cluster)
report.add_command(html)
report.add_command(across)
