"""The program `sbudget`: its groups, and how an error becomes a message and an exit code."""

import importlib
import os
import sys
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from slurm_budget import __version__
from slurm_budget.cli.context import Context
from slurm_budget.errors import Exit, SbudgetError
from slurm_budget.text.printable import printable

_COMMANDS = {
    "balance": ("slurm_budget.cli.balance:balance", "What is left of a budget, and what is back."),
    "budget": ("slurm_budget.cli.budget:budget", "Show and change budgets."),
    "completion": ("slurm_budget.cli.completion:completion", "Print a shell's completion script."),
    "doctor": ("slurm_budget.cli.doctor:doctor", "Check that Slurm is set as budgets need it."),
    "fit": ("slurm_budget.cli.fit:fit", "Would a job be funded now, and where would it start?"),
    "hook": ("slurm_budget.cli.hook:hook", "Install, check and remove the submit hook."),
    "ledger": ("slurm_budget.cli.ledger:ledger", "Create, check, back up and rebuild the ledger."),
    "metrics": ("slurm_budget.cli.metrics:metrics", "Figures for Prometheus."),
    "pause": ("slurm_budget.cli.pause:pause", "Stop acting on jobs; go on observing."),
    "plan": ("slurm_budget.cli.sync:plan", "Show what sync would change in Slurm."),
    "report": ("slurm_budget.cli.report:report", "Reports in the manner of sreport."),
    "resume": ("slurm_budget.cli.pause:resume", "End a pause."),
    "run": ("slurm_budget.cli.run:run", "Sweep at every beat: the daemon."),
    "setup": ("slurm_budget.cli.setup:setup", "Install on this controller, or undo that."),
    "sweep": ("slurm_budget.cli.sweep:sweep", "Observe, account, retag, choose, act, publish."),
    "sync": ("slurm_budget.cli.sync:sync", "Make Slurm's associations and QOS as budgets say."),
    "top": ("slurm_budget.cli.top:top", "Teams, what runs and waits, and the last sweeps, live."),
    "why": ("slurm_budget.cli.why:why", "Why a job waits, runs on, was requeued or ended."),
}


class LazyGroup(click.Group):
    """Loads a command's module when it runs, not to list it."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module, _, name = _COMMANDS[cmd_name][0].partition(":")
        command = getattr(importlib.import_module(module), name)
        assert isinstance(command, click.Command)
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The table's own words: click would load every command to ask for its help."""
        options = click.Command.shell_complete(self, ctx, incomplete)
        names = (name for name in self.list_commands(ctx) if name.startswith(incomplete))
        return [CompletionItem(name, help=_COMMANDS[name][1]) for name in names] + options

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, _COMMANDS[name][1]) for name in self.list_commands(ctx)])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--config",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Configuration file (default: $SBUDGET_CONFIG, /etc/slurm-budget/slurm-budget.toml).",
)
@click.version_option(__version__, "-V", "--version", prog_name="sbudget")
@click.pass_context
def cli(ctx: click.Context, config: Path | None) -> None:
    """GPU-time budgets that Slurm delivers.

    Exit codes: 0 done or nothing to do, 1 failed, 2 usage, 3 partly, 4 refused by a guard,
    5 stale plan, 6 Slurm unreachable, 7 ledger unreachable, 8 changes pending, 130 interrupted.
    """
    ctx.obj = Context(config=config)


def main() -> None:
    """Run the program and exit; the only place where errors become exit codes."""
    # cron and careless shells have 000: what we make is never for others to write
    os.umask(os.umask(0o022) | 0o022)
    try:
        code = cli.main(prog_name="sbudget", standalone_mode=False)
    except click.exceptions.Abort:
        click.echo("sbudget: interrupted", err=True)
        sys.exit(Exit.INTERRUPTED)
    except KeyboardInterrupt:
        click.echo("sbudget: interrupted", err=True)
        sys.exit(Exit.INTERRUPTED)
    except click.exceptions.Exit as done:
        sys.exit(done.exit_code)
    except click.ClickException as bad:
        bad.show()
        sys.exit(bad.exit_code)
    except SbudgetError as bad:
        for line in map(printable, str(bad).splitlines()):
            click.echo(line if line.startswith("  ") else f"sbudget: {line}", err=True)
        sys.exit(int(bad.code))
    except UnicodeEncodeError as bad:
        click.echo(f"sbudget: {bad.object[:60]!r} is not UTF-8 text\n  mend: retype it", err=True)
        sys.exit(Exit.USAGE)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(Exit.DONE)
    sys.exit(code if isinstance(code, int) else Exit.DONE)
