"""`sbudget budget import-slurm`: a budget file from a cluster that exists."""

from pathlib import Path

import click

from slurm_budget.cli.context import Context
from slurm_budget.errors import BadInput


@click.command("import-slurm")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="Write it to a file."
)
@click.option("--suggest", is_flag=True, help="List what the fairshare of today is in GPUs.")
@click.pass_obj
def import_slurm(ctx: Context, output: Path | None, suggest: bool) -> None:
    """Make a budget file from Slurm's accounts and users, without amounts.

    Its plan changes nothing that people have set: fairshare, limits, lists and defaults stay until
    an account gets an amount. What is owned and what is left is listed on standard error.
    """
    from slurm_budget import budgetfile
    from slurm_budget.core.adopt import adopt
    from slurm_budget.slurm.sacctmgr_port import Sacctmgr

    slurm = Sacctmgr(ctx.commands)
    state = slurm.observe(ctx.cluster)
    gpus = sum(node.gpu_total for node in ctx.slurm().nodes())
    adoption = adopt(state, slurm.account_info(), gpus)
    text = budgetfile.dump(adoption.tree)
    if output is None:
        click.echo(text, nl=False)
    else:
        try:
            with output.open("x", encoding="utf-8") as file:
                file.write(text)
        except OSError as bad:
            raise BadInput(
                f"cannot be written: {bad.strerror}", where=str(output), mend="name a new file"
            ) from bad
    users = sum(len(node.users) for node in adoption.tree.nodes.values())
    click.echo(f"{len(adoption.tree.nodes)} accounts and {users} users taken over", err=True)
    for title, lines in (
        ("sync will own", adoption.owns),
        ("it leaves as it is, until an account gets an amount", adoption.leaves),
        ("not taken over", adoption.skipped),
        ("fairshare of today", adoption.suggestions if suggest else ()),
    ):
        if lines:
            click.echo(f"{title}:", err=True)
            for line in lines:
                click.echo(f"  {line}", err=True)
