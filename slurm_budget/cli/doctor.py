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
FORMAT = 1
"""Of the JSON; a field that goes or changes its meaning makes it 2."""


@click.command()
@click.option("--json", "as_json", is_flag=True, help="All findings as JSON.")
@click.option("--strict", is_flag=True, help="Exit 1 for warnings too.")
@click.pass_context
def doctor(ctx: click.Context, as_json: bool, strict: bool) -> None:
    """Check Slurm, the ledger, the hook and the sweeps; each finding names what mends it.

    \b
    --json prints one object:
      format    1; changes when a field goes or changes its meaning
      at        epoch seconds
      cluster   its name
      findings  list of {check, level: ok|warning|error, what, where, mend}

    Exit codes: 0 all is well (warnings too, unless --strict), 1 something must be mended.
    """
    from slurm_budget.usecases.doctor import examine

    obj: Context = ctx.obj
    cluster, found = examine(obj.slurm(), obj.ledger, obj.settings, obj.now)
    if as_json:
        findings = [asdict(finding) for finding in found]
        whole = {"format": FORMAT, "at": obj.now, "cluster": cluster, "findings": findings}
        click.echo(json.dumps(whole, indent=2))
    else:
        say(found)
    if any(finding.level == "error" or (strict and finding.level != "ok") for finding in found):
        ctx.exit(int(Exit.FAILED))


def say(found: "list[Finding]") -> None:
    """Findings for people."""
    for finding in found:
        where = f" ({finding.where})" if finding.where and finding.level != "ok" else ""
        click.echo(f"{_SIGN[finding.level]}  {finding.check}: {finding.what}{where}")
        if finding.mend:
            click.echo(f"         mend: {finding.mend}")
