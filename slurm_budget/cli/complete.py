"""Words that the shell can complete: account names from the snapshot, job ids from the queue.

A completion that fails offers nothing; it must never print an error into a command line.
"""

from collections.abc import Iterable
from contextlib import suppress

import click
from click.shell_completion import CompletionItem

from slurm_budget.cli.context import Context
from slurm_budget.errors import SbudgetError


def _context(ctx: click.Context) -> Context:
    """No callback has run when a shell asks, so the program's own context is made here."""
    return Context(config=ctx.find_root().params.get("config"))


class _Names(click.types.StringParamType):
    def offers(self, ctx: click.Context) -> Iterable[str]:
        raise NotImplementedError

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        with suppress(SbudgetError, OSError):
            return [CompletionItem(n) for n in self.offers(ctx) if n.startswith(incomplete)]
        return []


class AccountName(_Names):
    """An account of the budgets."""

    def offers(self, ctx: click.Context) -> Iterable[str]:
        from slurm_budget.usecases.look import published

        return sorted(published(_context(ctx).settings).accounts)


class JobName(_Names):
    """A job of the user who types."""

    def offers(self, ctx: click.Context) -> Iterable[str]:
        from slurm_budget.slurm.command import checked

        reply = _context(ctx).commands.run("squeue", "--me", "-h", "-o", "%i", timeout=2)
        return checked(reply).split()


ACCOUNT, JOB = AccountName(), JobName()
