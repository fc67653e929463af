"""`sbudget balance`."""

import click

from slurm_budget.cli.complete import ACCOUNT
from slurm_budget.cli.context import Context


@click.command()
@click.argument("account", type=ACCOUNT, required=False)
@click.option("--json", "as_json", is_flag=True, help="JSON, with GPU-milliseconds as integers.")
@click.pass_obj
def balance(ctx: Context, account: str | None, as_json: bool) -> None:
    """What is left of ACCOUNT's budget, what runs on it until when, and what comes back.

    Without ACCOUNT: of each of your own. Figures are as of the last sweep, by which the submit hook
    decides; whoever can read the ledger also sees what was charged then, and when how much comes
    back. What runs and waits is the queue now.
    """
    from slurm_budget.cli import words
    from slurm_budget.core import balance as rules
    from slurm_budget.usecases.balance import balances

    found, unread = balances(
        ctx.slurm(), ctx.readable_ledger, ctx.settings, account, ctx.user, ctx.now
    )
    if as_json:
        from slurm_budget.render.answers import balances_json

        click.echo(balances_json(found, ctx.now, unread))
        return
    for number, one in enumerate(found):
        if number:
            click.echo()
        words.say(rules.sentences(one, ctx.now, lambda at: words.near(at, ctx.now)))
    words.say_unread(unread)
