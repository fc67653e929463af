"""`sbudget why`."""

import click

from slurm_budget.cli.complete import JOB
from slurm_budget.cli.context import Context
from slurm_budget.errors import Exit


@click.command()
@click.argument("job", type=JOB, metavar="JOBID")
@click.option("--json", "as_json", is_flag=True, help="The facts and the sentences as JSON.")
@click.pass_obj
def why(ctx: Context, job: str, as_json: bool) -> int | None:
    """Why a job waits, runs on, was requeued or ended, in plain sentences.

    JOBID as squeue shows it: 123, an array task 123_4, a part of a het job 123+1. Reads the queue,
    the accounting, and the ledger; for those who cannot read that, what the last sweep published.
    Exit code 1: the job is unknown.
    """
    from slurm_budget.cli import words
    from slurm_budget.usecases.why import explain

    answer, unread = explain(
        ctx.slurm(), ctx.readable_ledger, ctx.settings, job, ctx.now,
        lambda at: words.near(at, ctx.now),
    )  # fmt: skip
    if as_json:
        from slurm_budget.render.answers import why_json

        click.echo(why_json(answer, ctx.now, unread))
    else:
        words.say(answer.sentences)
        words.say_unread(unread)
    return int(Exit.FAILED) if answer.state == "UNKNOWN" else None
