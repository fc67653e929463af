"""`sbudget doctor`."""

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from slurm_budget.cli.context import Context
from slurm_budget.errors import Exit

if TYPE_CHECKING:
    from slurm_budget.core.doctor import Finding

_SIGN = {"ok": "ok     ", "warning": "warning", "error": "ERROR  "}


@click.command()
@click.option("--json", "as_json", is_flag=True, help="All findings as JSON.")
@click.pass_context
def doctor(ctx: click.Context, as_json: bool) -> None:
    """Check that Slurm is set as budgets need it; each finding names the line that mends it.

    Exit codes: 0 all is well (warnings too), 1 something must be mended.
    """
    from slurm_budget.usecases.doctor import examine

    obj: Context = ctx.obj
    found = examine(obj.slurm(), obj.ledger, obj.settings, obj.now)
    if as_json:
        click.echo(json.dumps([asdict(finding) for finding in found], indent=2))
    else:
        say(found)
    if any(finding.level == "error" for finding in found):
        ctx.exit(int(Exit.FAILED))


def say(found: "list[Finding]") -> None:
    """Findings for people."""
    for finding in found:
        click.echo(f"{_SIGN[finding.level]}  {finding.check}: {finding.what}")
        if finding.mend:
            click.echo(f"         mend: {finding.mend}")
