"""`sbudget plan` and `sbudget sync`."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from slurm_budget.cli.context import Context
from slurm_budget.errors import BadInput, Exit

if TYPE_CHECKING:
    from slurm_budget.core.guard import Overrides
    from slurm_budget.core.plan import Plan
    from slurm_budget.slurm.sacctmgr_port import Sacctmgr
    from slurm_budget.usecases.sync import Outcome, Prepared

_FORMATS = (
    click.option("--json", "as_json", is_flag=True, help="Print JSON."),
    click.option("--markdown", is_flag=True, help="Print Markdown, for a merge request."),
)
_GUARD = (
    click.option(
        "--max-change",
        type=click.FloatRange(0, 100),
        metavar="PERCENT",
        help="Allow that so many per cent of what exists change (default: sync.max_change).",
    ),
    click.option("--allow-empty", is_flag=True, help="Allow budgets or a Slurm that are empty."),
    click.option("--below-running", is_flag=True, help="Allow limits below what runs now."),
)


def _all(options: tuple[Callable[[Any], Any], ...]) -> Callable[[Any], Any]:
    def decorate(function: Any) -> Any:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


def _port(ctx: Context) -> "Sacctmgr":
    from slurm_budget.slurm.sacctmgr_port import Sacctmgr

    return Sacctmgr(ctx.commands)


def _prepare(ctx: Context, slurm: "Sacctmgr") -> "Prepared":
    from slurm_budget.usecases import sync as use

    tree = ctx.ledger().budget_tree(ctx.cluster)
    return use.prepare(slurm, tree, ctx.settings, ctx.now)


def _overrides(max_change: float | None, allow_empty: bool, below_running: bool) -> "Overrides":
    from slurm_budget.core.guard import Overrides

    share = None if max_change is None else max_change / 100
    return Overrides(allow_empty=allow_empty, max_change=share, below_running=below_running)


def show(plan: "Plan", as_json: bool, markdown: bool, err: bool = False) -> None:
    """Print a plan the way that was asked for; colour only on a terminal."""
    from slurm_budget.core import plan as plans
    from slurm_budget.render import plan as render

    if as_json:
        click.echo(plans.to_json(plan), nl=False, err=err)
    elif markdown:
        click.echo(render.markdown(plan), err=err)
    elif (sys.stderr if err else sys.stdout).isatty():
        from rich.console import Console

        Console(stderr=err, highlight=False, soft_wrap=True).print(render.rich_text(plan))
    else:
        click.echo(render.plain(plan), err=err)


@click.command()
@click.option(
    "-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="Write it to a file."
)
@click.option("--exit-code", is_flag=True, help="Exit 8 when there are changes to make.")
@_all(_FORMATS)
@click.pass_obj
def plan(
    ctx: Context, output: Path | None, exit_code: bool, as_json: bool, markdown: bool
) -> int | None:
    """Show what `sync` would change in Slurm, and why; change nothing.

    With -o FILE, `sbudget sync --plan FILE` later does what was reviewed, or nothing.
    """
    from slurm_budget.core import plan as plans
    from slurm_budget.usecases import sync as use

    slurm = _port(ctx)
    prepared = use.with_drift(
        slurm,
        _prepare(ctx, slurm),
        ctx.settings,
        ctx.now,
        lambda at: ctx.ledger().budget_tree(ctx.cluster, at),
    )
    made = prepared.plan
    show(made, as_json, markdown)
    if output is not None:
        try:
            output.write_text(plans.to_json(made), encoding="utf-8")
        except OSError as bad:
            raise BadInput(
                f"cannot be written: {bad.strerror}", where=str(output), mend="name another file"
            ) from bad
    return int(Exit.CHANGES_PENDING) if exit_code and made else None


@click.command()
@click.option("--dry-run", is_flag=True, help="Show the plan and what the guard says; no change.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.option(
    "--plan",
    "plan_file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Do what this plan says; exit 5 if Slurm or the budgets have changed since.",
)
@_all(_FORMATS)
@_all(_GUARD)
@click.pass_obj
def sync(
    ctx: Context,
    dry_run: bool,
    yes: bool,
    plan_file: Path | None,
    as_json: bool,
    markdown: bool,
    max_change: float | None,
    allow_empty: bool,
    below_running: bool,
) -> int | None:
    """Make Slurm's associations and QOS as the budgets say.

    Ctrl-C stops between two calls and says what was done; sync again to finish.
    """
    from slurm_budget.usecases import sync as use

    over = _overrides(max_change, allow_empty, below_running)
    reviewed = _read(plan_file) if plan_file is not None else None
    slurm = _port(ctx)
    prepared = _prepare(ctx, slurm)
    if reviewed is not None:
        use.check_reviewed(slurm, prepared, reviewed)
    # With --json standard output is the outcome alone, and that is printed at the end.
    show(prepared.plan, False, markdown, err=as_json and not dry_run)
    use.check(slurm, prepared, ctx.settings, over)
    if dry_run or not prepared.plan:
        if as_json and not dry_run:
            _say(use.Outcome(), as_json)
        return None
    if not yes and reviewed is None:
        _ask(f"Apply {len(prepared.plan.changes)} changes?")
    return _apply(ctx, slurm, prepared, over, as_json)


def _ask(question: str) -> None:
    """Go on only at a yes; where nobody can answer, the error says how to do without."""
    try:
        click.confirm(question, abort=True, err=True)
    except click.Abort:
        if sys.stdin.isatty():
            raise
        raise BadInput("there is nobody to ask", mend="say --yes, as cron must") from None


def _read(path: Path) -> "Plan":
    from slurm_budget.core import plan as plans

    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as bad:
        raise BadInput(f"cannot be read: {bad}", where=str(path), mend="name a plan file") from bad
    return plans.from_json(text, str(path))


def _apply(
    ctx: Context, slurm: "Sacctmgr", prepared: "Prepared", over: "Overrides", as_json: bool
) -> int | None:
    from rich.console import Console
    from rich.progress import Progress

    from slurm_budget.cli.interrupt import held_back
    from slurm_budget.usecases import sync as use

    console = Console(stderr=True)
    # Held back first: the thread that draws the bar must not take the signal either.
    with (
        held_back() as interrupted,
        Progress(console=console, transient=True, disable=not console.is_terminal) as bar,
    ):
        task = bar.add_task("applying", total=len(prepared.plan.changes))
        outcome = use.apply_plan(
            slurm,
            prepared,
            ctx.settings,
            ctx.now,
            overrides=over,
            progress=lambda rows: bar.advance(task, rows),
            stop=interrupted,
        )
    _say(outcome, as_json)
    if outcome.stopped == "interrupted":
        return int(Exit.INTERRUPTED)
    if outcome.failed or outcome.stopped or outcome.late:
        return int(Exit.PARTLY if outcome.applied else Exit.FAILED)
    return None


def _say(outcome: "Outcome", as_json: bool) -> None:
    from slurm_budget.render import plan as render

    if as_json:
        click.echo(render.outcome_json(outcome))
        return
    for style, text in render.outcome_lines(outcome):
        color = style if style in ("red", "green") else None
        click.secho(text, fg=color, err=color == "red")
