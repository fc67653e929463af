"""`sbudget sweep`."""

from contextlib import suppress

import click

from slurm_budget.cli.context import Context
from slurm_budget.errors import Exit, LedgerUnreachable, SlurmUnreachable
from slurm_budget.text.printable import printable

_LEASE = 10
"""Seconds; after a kill -9 the next sweep may act when they are over."""


@click.command()
@click.option("--dry-run", is_flag=True, help="Say what would be done and why; change nothing.")
@click.option("-v", "--verbose", is_flag=True, help="Say why each other job was left alone.")
@click.pass_obj
def sweep(ctx: Context, dry_run: bool, verbose: bool) -> None:
    """Observe, account, retag, choose, act, publish; say one sentence.

    Can be run from cron as often as every few seconds, and be killed anywhere: the next sweep
    finishes. Does nothing where another sidecar holds the lease. Exit codes: 0 swept, 3 partly
    (Slurm stopped answering in the middle, or the snapshot could not be written), 6 Slurm
    unreachable, 7 ledger unreachable; what was done before is said, mostly nothing.
    """
    from slurm_budget.usecases import sweep as use

    try:
        fence = ctx.fence(min(_LEASE, 2 * ctx.settings.sweep.beat))
        if not dry_run:
            fence.take()
        if fence.other is not None:
            click.echo(f"another sidecar, {fence.other}: nothing done.")
            return
        try:
            found = use.sweep(
                ctx.slurm(), ctx.ledger(), ctx.source, ctx.settings, ctx.now,
                fence=fence, dry_run=dry_run,
            )  # fmt: skip
        finally:
            with suppress(LedgerUnreachable):  # it runs out by itself
                fence.release()
    except (SlurmUnreachable, LedgerUnreachable) as bad:
        bad.what = f"{bad.acted}: {bad.what}"
        raise
    if dry_run:
        for retag in found.decision.verdicts.retags:
            click.echo(f"would move job {retag.job.label} to {retag.qos} ({retag.why})")
        for requeue in found.decision.requeues:
            click.echo(f"would requeue job {requeue.job.label}: {requeue.reason}")
    if dry_run or verbose:
        for leave in found.decision.left:
            click.echo(f"job {leave.job_id} is left: {printable(leave.reason)}")
    click.echo(printable(found.sentence()))
    for failure in found.failed:
        click.echo(f"sbudget: {failure}", err=True)
    if found.failed:
        raise click.exceptions.Exit(Exit.PARTLY)
