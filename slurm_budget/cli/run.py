"""`sbudget run`: the daemon's ways to the world."""

import os
import select
import signal
import socket
import time
from contextlib import closing, suppress

import click

from slurm_budget.cli.context import Context
from slurm_budget.errors import LedgerClosed, LedgerUnreachable
from slurm_budget.settings import Settings
from slurm_budget.text.printable import printable
from slurm_budget.text.spoken import spoken
from slurm_budget.usecases.daemon import Daemon, Heard, Level, Stop

_STOP = frozenset({signal.SIGTERM, signal.SIGINT})
_HEARD = _STOP | {signal.SIGHUP}
_LEVELS: dict[Level, str] = {"info": "<6>", "warning": "<4>", "error": "<3>"}


class Ears:
    """Signals are blocked, for us and for the commands that we start, but while we wait.

    Not `signal.sigtimedwait`: of Python 3.11 it returns rubbish when SIGCONT comes after its time.
    """

    def __init__(self) -> None:
        self._heard, mouth = socket.socketpair()
        self._heard.setblocking(False)
        mouth.setblocking(False)
        self._mouth = mouth
        for number in _HEARD:
            signal.signal(number, lambda *_: None)
        signal.set_wakeup_fd(mouth.fileno())
        signal.pthread_sigmask(signal.SIG_BLOCK, _HEARD)

    def wait(self, seconds: float) -> Heard | None:
        """Sleep so long, or until a signal."""
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _HEARD)
        select.select([self._heard], [], [], seconds)
        signal.pthread_sigmask(signal.SIG_BLOCK, _HEARD)
        try:
            numbers = set(self._heard.recv(4096))
        except BlockingIOError:
            return None
        return "stop" if numbers & _STOP else "reload"


def stop_here(step: str) -> None:
    """Between two written steps: end when somebody asked for it."""
    if signal.sigpending() & _STOP:
        raise Stop


def say(level: Level, text: str) -> None:
    """A line to the log; systemd's journal takes the level from its start."""
    mark = _LEVELS[level] if "JOURNAL_STREAM" in os.environ else ""
    for part in text.splitlines():
        click.echo(f"{mark}{printable(part)}", err=level != "info")


class Sweeper:
    """Sweeps with everything opened afresh; only the lease's token lives from beat to beat."""

    def __init__(self, ctx: Context) -> None:
        self.ctx = ctx
        self.token: int | None = None

    def begin(self, settings: Settings) -> None:
        """Raises LedgerClosed where no sweep will ever open the ledger; what may pass is left to
        the first sweep to say."""
        ctx = Context(config=self.ctx.config)
        ctx.settings = settings
        try:
            with closing(ctx.ledger()) as ledger:
                ledger.demand_writable()
        except LedgerClosed:
            raise
        except LedgerUnreachable:
            return

    def sweep(self, settings: Settings) -> str:
        from slurm_budget.usecases.sweep import sweep

        ctx = Context(config=self.ctx.config)
        ctx.settings = settings
        with closing(ctx.ledger()) as ledger:
            fence = ctx.fence(2 * settings.sweep.beat, self.token)
            try:
                fence.take()
                found = sweep(
                    ctx.slurm(), ledger, ctx.source, settings, ctx.now,
                    fence=fence, between=stop_here,
                )  # fmt: skip
            except BaseException:
                # another sidecar may see what we cannot
                with suppress(LedgerUnreachable):
                    fence.release()
                raise
            finally:
                self.token = fence.token
        return found.sentence()

    def release(self, settings: Settings) -> None:
        """Give the lease back at the end."""
        if self.token is None:
            return
        ctx = Context(config=self.ctx.config)
        ctx.settings = settings
        with suppress(LedgerUnreachable), closing(ctx.ledger()):
            ctx.fence(0, self.token).release()


@click.command()
@click.pass_obj
def run(ctx: Context) -> None:
    """Sweep at every beat (sweep.beat), until stopped: the daemon.

    A sweep that fails acts on nothing, says so, and is tried again at the next beat. Several may
    run: one holds the lease and acts, the others observe and take over. SIGHUP reads the settings
    again; SIGTERM ends after the step in hand. Exit codes: 0 stopped, 2 the settings are wrong, 7
    this user may not open or write the ledger, or it is not there, at the start.
    """
    from slurm_budget import settings
    from slurm_budget.cli.notify import notify

    first, sweeper = ctx.settings, Sweeper(ctx)
    say("info", f"starts; sweeps every {spoken(first.sweep.beat)}")
    sweeper.begin(first)
    ears = Ears()
    daemon = Daemon(
        first,
        sweeper.sweep,
        lambda: settings.load(ctx.config),
        ears.wait,
        time.monotonic,
        say,
        notify,
    )
    daemon.run()
    sweeper.release(daemon.settings)
    say("info", "stopped")
