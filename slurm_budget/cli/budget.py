"""`sbudget budget`: show and change budgets."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from slurm_budget import budgetfile
from slurm_budget.cli import budget_edit, words
from slurm_budget.cli import budget_names as names
from slurm_budget.cli.adopt import import_slurm
from slurm_budget.cli.context import Context
from slurm_budget.core.budget import account_budgets, user_budgets
from slurm_budget.core.changeset import Change, diff
from slurm_budget.core.standing import standings, user_standings
from slurm_budget.errors import BadInput, Refused, SbudgetError
from slurm_budget.render import budgets as text
from slurm_budget.state.budget import BudgetTree
from slurm_budget.text import moments
from slurm_budget.text.printable import printable
from slurm_budget.usecases.accounting import sums_now, window_of
from slurm_budget.usecases.across import charged
from slurm_budget.usecases.doctor import not_accounted

F = TypeVar("F", bound=Callable[..., Any])


@click.group()
def budget() -> None:
    """Show and change budgets. Every change needs a reason and can be undone."""


def _change_options(command: F) -> F:
    for option in (
        click.option("-m", "--reason", required=True, help="Why; it stays in the log."),
        click.option("--as", "acting_as", metavar="USER", help="Act for USER (root and admins)."),
        click.option("-n", "--dry-run", is_flag=True, help="Show the changes and make none."),
    ):
        command = option(command)
    return command


_cluster = click.option("--cluster", help="Default: slurm.cluster, or what slurmctld says.")
_at = click.option("--at", metavar="MOMENT", help="As of 2026-03-01, 7d (ago), or a changeset.")


def _tree(context: Context, /, cluster: str | None, at: str | None = None) -> BudgetTree:
    name = names.cluster(context, cluster)
    return context.ledger().budget_tree(name, changeset=names.changeset(context, name, at))


def _apply(
    context: Context,
    /,
    old: BudgetTree,
    new: BudgetTree,
    base: int,
    *,
    reason: str,
    acting_as: str | None,
    dry_run: bool,
    undoes: int | None = None,
) -> None:
    changes = diff(old, new)
    if not changes:
        click.echo("nothing to change")
        return
    done = context.ledger().apply_changeset(
        new.cluster,
        new,
        context.user,
        acting_as or context.user,
        reason,
        base,
        context.now,
        admins=_admins(context),
        window=window_of(context.settings).budget_seconds,
        undoes=undoes,
        dry_run=dry_run,
    )
    _lines(text.change_lines(changes))
    if dry_run:
        click.echo(f"{_many(changes)}, none made (--dry-run)")
    else:
        click.echo(f"changeset {done}: {_many(changes)}; `sbudget sync` brings them to Slurm")


def _many(changes: list[Change]) -> str:
    return "1 change" if len(changes) == 1 else f"{len(changes)} changes"


def _admins(context: Context) -> tuple[str, ...]:
    """Those who may change everything: the named ones, and whoever runs this as root."""
    named = context.settings.ledger.admins
    return (*named, context.user) if os.geteuid() == 0 else named


@budget.command()
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--base", type=int, help="The changeset that FILE was exported from.")
@click.option("--cluster", help="The cluster that FILE is of, where it is not this one.")
@_change_options
@click.pass_obj
def load(
    context: Context, /, file: Path, base: int | None, cluster: str | None, **how: Any
) -> None:
    """Make the budgets what FILE (YAML) says; what it does not name is removed.

    With --base, a change that somebody made since is not overwritten: it is shown, and nothing
    is changed.
    """
    window = window_of(context.settings).budget_seconds
    content = file.read_text(encoding="utf-8", errors="replace")
    new = budgetfile.load(content, str(file), window=window, now=context.now)
    mine = cluster or context.cluster_named
    if mine and new.cluster != mine:
        raise Refused(
            f"its budgets are of cluster {new.cluster}, not of {mine}; nothing was changed",
            where=str(file),
            mend=f"correct its `cluster:`, or load it with --cluster {new.cluster}",
        )
    old, seen = context.ledger().budgets(new.cluster, changeset=base)
    _apply(context, old, new, seen, **how)
    _hint_of_types(context, new)


def _hint_of_types(context: Context, tree: BudgetTree) -> None:
    """Say now what `plan` would say later; only of this cluster, and where Slurm answers."""
    if tree.cluster != context.cluster_named:
        return
    slurm = context.slurm()
    slurm.commands.timeout = min(names.SOON, slurm.commands.timeout)
    try:
        found = not_accounted(slurm, tree)
    except SbudgetError:
        return
    if found is not None:
        click.echo(f"warning: {found.what}\n  mend: {found.mend}", err=True)


@budget.command("set")
@click.argument("account")
@budget_edit.options
@_cluster
@click.option("--base", type=int, help="The changeset that you looked at (default: the last).")
@_change_options
@click.pass_obj
def set_(
    context: Context,
    /,
    account: str,
    cluster: str | None,
    base: int | None,
    reason: str,
    acting_as: str | None,
    dry_run: bool,
    **edit: Any,
) -> None:
    """Change one ACCOUNT, or with --user one user in it.

    \b
    sbudget budget set vision --gpus 96 -m "Q1 plan"
    sbudget budget set vision --user ana --share 25 -m "her thesis"
    sbudget budget set robots --parent lab --gpu-hours 500 --manager mara -m "new team"
    """
    name = names.cluster(context, cluster)
    old, seen = context.ledger().budgets(name, changeset=base)
    new = budget_edit.edited(old, account, budget_edit.Edit(**edit), context.now)
    _apply(
        context, old, new, seen,
        reason=reason, acting_as=acting_as, dry_run=dry_run,
    )  # fmt: skip
    given = () if edit["remove"] else (*filter(None, [edit["user"]]), *edit["manager"])
    for stranger in names.strangers(context, given):
        click.echo(
            f"warning: neither Slurm nor this machine knows a user {stranger!r}\n  mend: if that is"
            " a slip, `sbudget budget undo` takes the change back",
            err=True,
        )


@budget.command()
@click.argument("account", required=False)
@_cluster
@click.option("--json", "as_json", is_flag=True, help="GPU-milliseconds, for programs.")
@click.pass_obj
def show(context: Context, /, account: str | None, cluster: str | None, as_json: bool) -> None:
    """Budgets with what was charged and used of them; of one ACCOUNT, everything."""
    tree = _tree(context, cluster)
    window = window_of(context.settings).budget_seconds
    figures = account_budgets(tree, window, context.now)
    sums = sums_now(context.ledger(), tree.cluster, context.settings, context.now)
    own = standings(tree, figures, sums, {})
    accounts = charged(own, tree, context.ledger(), context.settings, context.now)
    name = None if account is None else budget_edit.existing(tree, account)
    if as_json:
        shown = accounts.values() if name is None else [accounts[name]]
        click.echo(
            json.dumps(
                [
                    {"account": s.name, "budget": s.budget, "charge": s.charge, "use": s.use}
                    | {"balance": s.balance}
                    for s in shown
                ],
                indent=2,
            )
        )
    elif name is None:
        _lines(text.standing_lines(tree, accounts, tree.nodes))
    else:
        users = user_standings(tree, user_budgets(tree, figures, window, context.now), sums, {})
        node = tree.nodes[name]
        _lines(text.account_lines(tree, node, accounts, users, moments.shown))
    if not as_json:
        swept = context.ledger().newest_sweep(tree.cluster)[0]
        click.echo(words.as_of_sweep(swept, context.now))


@budget.command("tree")
@_cluster
@_at
@click.option("--users", is_flag=True, help="Show the users too.")
@click.pass_obj
def tree_(context: Context, /, cluster: str | None, at: str | None, users: bool) -> None:
    """What was given to whom, now or at a moment."""
    tree = _tree(context, cluster, at)
    window = window_of(context.settings).budget_seconds
    figures = account_budgets(tree, window, context.now)
    _lines(text.tree_lines(tree, figures, users=users))


@budget.command()
@click.argument("account", required=False)
@click.option("-n", "count", type=click.IntRange(min=1), help="Only the last so many.")
@_cluster
@click.pass_obj
def log(context: Context, /, account: str | None, count: int | None, cluster: str | None) -> None:
    """Who changed what, when and why; newest first."""
    cluster_ = names.cluster(context, cluster)
    found = context.ledger().log(cluster_)
    if account is not None:
        name = names.once(context.ledger().budget_tree(cluster_), found, account)
        found = [one for one in found if any(c.account == name for c in one.changes)]
    newest = found[::-1]
    _lines(text.log_lines(newest if count is None else newest[:count], moments.shown))


@budget.command("diff")
@click.argument("before")
@click.argument("after", required=False)
@_cluster
@click.pass_obj
def diff_(context: Context, /, before: str, after: str | None, cluster: str | None) -> None:
    """What changed between two moments or changesets (0: before the first; default: till now)."""
    name = names.cluster(context, cluster)
    one = names.changeset(context, name, before)
    two = names.changeset(context, name, after)
    last = context.ledger().budgets(name)[1]
    changes: list[Change] = context.ledger().diff(name, one or 0, last if two is None else two)
    _lines(text.change_lines(changes) or ["no difference"])


@budget.command()
@click.argument("changeset", type=int)
@_cluster
@_change_options
@click.pass_obj
def undo(
    context: Context,
    /,
    changeset: int,
    cluster: str | None,
    reason: str,
    acting_as: str | None,
    dry_run: bool,
) -> None:
    """Take a CHANGESET back by its inverse; later changes of other things stay."""
    name = names.cluster(context, cluster)
    old, new, base = context.ledger().undone(name, changeset)
    _apply(
        context, old, new, base,
        reason=reason, acting_as=acting_as, dry_run=dry_run, undoes=changeset,
    )  # fmt: skip


@budget.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False), required=False)
@_cluster
@_at
@click.pass_obj
def export(context: Context, /, file: Path | None, cluster: str | None, at: str | None) -> None:
    """Write the budgets as YAML, which `budget load` reads, to FILE or standard output."""
    name = names.cluster(context, cluster)
    upto = names.changeset(context, name, at)
    tree, number = context.ledger().budgets(name, changeset=upto)
    content = f"# changeset {number} of the ledger\n{budgetfile.dump(tree)}"
    if file is None:
        click.echo(content, nl=False)
        return
    try:
        file.write_text(content, encoding="utf-8")
    except OSError as bad:
        raise BadInput(
            f"cannot be written: {bad.strerror}", where=str(file), mend="choose another place"
        ) from None
    click.echo(f"{file}: {len(tree.nodes)} accounts of {name} as of changeset {number}")


def _lines(lines: list[str]) -> None:
    for line in lines:
        click.echo(printable(line))


budget.add_command(import_slurm)
