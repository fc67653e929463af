"""`sbudget fit`."""

import click

from slurm_budget.cli.complete import ACCOUNT
from slurm_budget.cli.context import Context


@click.command()
@click.argument("job", metavar="SIZE")
@click.option("-A", "--account", type=ACCOUNT, help="Default: your default account.")
@click.option("-p", "--partition", help="Default: Slurm's default partition.")
@click.option("--type", "gpu_type", default="", metavar="GPU", help="A GPU type, such as h100.")
@click.option("--time", "limit", metavar="TIME", help="Its time limit (default: what it asks).")
@click.option("--preemptible", is_flag=True, help="Ask as a preemptible job.")
@click.option("--user", help="Ask for another user.")
@click.option("--json", "as_json", is_flag=True, help="JSON.")
@click.pass_obj
def fit(
    ctx: Context,
    job: str,
    account: str | None,
    partition: str | None,
    gpu_type: str,
    limit: str | None,
    preemptible: bool,
    user: str | None,
    as_json: bool,
) -> None:
    """Would a job of SIZE be funded now, where would it start, and what binds? None is submitted.

    \b
    sbudget fit 8x4h           8 GPUs, protected for 4 hours
    sbudget fit 2x8x90min      2 nodes with 8 GPUs each
    sbudget fit 1x1h -A vision --type h100 --time 8h

    The verdict is the submit hook's, by the last snapshot; jobs submitted since then are not in it.
    Memory, CPUs and limits of Slurm's own are not looked at. Exit code 2: an account, a user, a
    partition or a GPU type is not there, or the cluster has no such number of GPUs.
    """
    from slurm_budget.cli import words
    from slurm_budget.core.fit import parse
    from slurm_budget.core.request import duration
    from slurm_budget.errors import BadInput
    from slurm_budget.usecases.fit import would_fit

    shape = parse(job)
    seconds = duration(limit.lower()) if limit is not None else None
    if limit is not None and seconds is None:
        raise BadInput(f"--time {limit!r} is no time", mend="write it like 8h or 8:00:00")
    found, unread = would_fit(
        ctx.slurm(), ctx.readable_ledger, ctx.settings, shape, ctx.now,
        user=user or ctx.user, named=user is not None, account=account, partition=partition,
        gpu_type=gpu_type, limit=seconds, preemptible=preemptible,
    )  # fmt: skip
    if as_json:
        from slurm_budget.render.answers import fit_json

        click.echo(fit_json(found, ctx.now, unread))
        return
    words.say(found.sentences)
    words.say([f"The budgets are as of {words.as_of(found.as_of, ctx.now)}."])
    words.say_unread(unread)
