"""The options that all reports share, and a table in the form that was asked for."""

import sys
from collections.abc import Callable
from typing import Any, TypeVar

import click

from slurm_budget.errors import BadInput
from slurm_budget.render.cells import Time
from slurm_budget.render.table import Table

F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS = (
    click.option("-P", "--parsable", is_flag=True, help="Fields separated by |."),
    click.option("-n", "--noheader", is_flag=True, help="No header."),
    click.option("-t", "time", default="hours", help="hours, minutes, seconds or percent."),
    click.option("--json", "as_json", is_flag=True, help="Exact figures; docs/report-schema.json."),
    click.option("--csv", "as_csv", is_flag=True, help="CSV."),
)


def options(command: F) -> F:
    """-P, -n, -t, --json and --csv, as `parsable`, `noheader`, `time`, `as_json`, `as_csv`."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def one_form(parsable: bool, as_json: bool, as_csv: bool) -> None:
    """Raises BadInput where more than one form was asked for."""
    if parsable + as_json + as_csv > 1:
        raise BadInput("-P, --json and --csv are three forms", mend="choose one")


def show(
    table: Table[Any],
    time: Time,
    *,
    tree: bool,
    parsable: bool,
    noheader: bool,
    as_csv: bool,
    last: str,
) -> None:
    """Print it; `last` stands below a table that has a header (empty: nothing does)."""
    from slurm_budget.render import report_text as text

    if parsable or as_csv or not sys.stdout.isatty():
        form = text.parsable if parsable else text.as_csv if as_csv else text.plain
        lines = form(table, time, tree=tree, header=not noheader)
        if lines:
            click.echo(lines)
    else:
        from rich.console import Console

        console = Console(highlight=False)
        if not noheader:
            click.echo(text.title(table, time))
        made, width = text.rich(table, time, tree=tree, header=not noheader, width=console.width)
        console.print(made, width=width, crop=False)
    if last and not (parsable or as_csv or noheader):
        click.echo(last)
