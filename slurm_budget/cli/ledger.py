"""`sbudget ledger`: create, upgrade, check, back up, rebuild, import."""

from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO, Any

import click

from slurm_budget.cli.context import Context
from slurm_budget.errors import BadInput, Exit, SbudgetError
from slurm_budget.usecases.accounting import Taken, catch_up, rebuild, take, window_of

MARIADB = """\b
For MariaDB, as an administrator of the database:
  CREATE DATABASE sbudget CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  CREATE USER 'sbudget'@'localhost' IDENTIFIED BY '...';
  GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, ALTER, INDEX, REFERENCES
    ON sbudget.* TO 'sbudget'@'localhost';
Put the password into a file of mode 0600 and name it in ledger.password_file.
"""


@click.group()
def ledger() -> None:
    """Create, check, back up and rebuild the ledger."""


def _url(context: Context) -> tuple[str, Path | None]:
    section = context.settings.ledger
    return section.url, section.password_file


@ledger.command(help="Create the ledger that slurm-budget.toml names.\n\n" + MARIADB)
@click.pass_obj
def init(context: Context) -> None:
    from slurm_budget.ledger import connect, migrate
    from slurm_budget.ledger.store import Ledger

    url, password_file = _url(context)
    engine = connect.connect(url, password_file)
    connect.prepare_folder(engine.url)
    made = migrate.initialise(engine)
    engine.dispose()
    with Ledger.open(url, password_file=password_file) as opened:
        where = connect.shown(opened.engine.url)
    click.echo(f"{'created' if made else 'there already, untouched'}: {where}")


@ledger.command()
@click.pass_obj
def upgrade(context: Context) -> None:
    """Bring the ledger to the schema of this program. Make a backup first."""
    from slurm_budget.ledger import migrate
    from slurm_budget.ledger.store import engine_of

    before, after = migrate.upgrade(engine_of(*_url(context)))
    if before == after:
        click.echo(f"nothing to do: the ledger has schema {after} already")
    else:
        click.echo(f"upgraded: schema {before or 'none'} -> {after}")


@ledger.command()
@click.pass_obj
def check(context: Context) -> None:
    """Look for faults in what the ledger holds; exits 1 when there are any."""
    faults = context.ledger().faults(window_of(context.settings), context.now)
    for fault in faults:
        click.echo(fault)
    if faults:
        raise SbudgetError(
            f"{len(faults)} faults",
            where="ledger",
            mend="restore a backup, or see docs/operations.md",
        )
    click.echo("the ledger is sound")


@ledger.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.pass_obj
def backup(context: Context, file: Path) -> None:
    """Copy the ledger into a new FILE, whole, while it is in use.

    The copy is an SQLite ledger, whatever the original is. To restore it, name it in ledger.url.
    """
    rows = context.ledger().backup(file)
    shown = ", ".join(f"{count} {table}" for table, count in rows.items() if count)
    click.echo(f"backed up to {file}: {shown or 'no rows'}")


@ledger.command("rebuild")
@click.option("--since", metavar="DATE", help="Read the accounting from here on.")
@click.pass_obj
def rebuild_(context: Context, since: str | None) -> None:
    """Read the accounting anew, count afresh, and show which figures changed.

    Reads from the start of the window unless --since says otherwise. Runs that the accounting has
    forgotten stay. Exits 3 when a figure is not what it was.
    """
    from slurm_budget.text.moments import moment

    start = (
        context.now - window_of(context.settings).reach
        if since is None
        else moment(since, context.now)
    )
    name, cluster = context.settings.slurm.source, context.cluster
    done = rebuild(
        context.ledger(), cluster, context.source(cluster), name, context.settings, context.now,
        since=start,
    )  # fmt: skip
    for line in done.changed:
        click.echo(line)
    _tell(done.taken, name)
    click.echo(f"{len(done.changed)} figures changed" if done.changed else "no figure changed")
    if done.changed or done.taken.bad:
        raise click.exceptions.Exit(Exit.PARTLY)


@ledger.command("import")
@click.argument(
    "file", required=False, type=click.Path(path_type=Path, allow_dash=True, dir_okay=False)
)
@click.option("--cluster", default="", help="For dumps without a Cluster column.")
@click.pass_obj
def import_(context: Context, file: Path | None, cluster: str) -> None:
    """Read runs from Slurm's accounting, or from a dump of sacct in FILE (`-`: standard input).

    Without FILE: what a sweep would read, from the start of the window the first time.

    \b
    Make a dump with
      TZ=UTC sacct -a -D -X -P -S 2025-01-01 -E now -o JobIDRaw,Cluster,User,Account,QOS,\\
        Partition,Submit,Start,End,ElapsedRaw,Suspended,State,AllocTRES,NNodes,AdminComment
    Times are read as UTC. Good rows go in, bad ones are listed and make the exit code 3; the same
    dump again changes nothing.
    """
    from slurm_budget.slurm.sacct import dump

    if file is None:
        _import_new(context)
        return
    where = "standard input" if str(file) == "-" else str(file)
    with _opened(file) as lines:
        found = dump(lines, where, cluster)
        taken = take(context.ledger(), found, f"import of {where}"[:255], context.now)
    _tell(taken, where)
    if taken.bad:
        raise click.exceptions.Exit(Exit.PARTLY)


def _import_new(context: Context) -> None:
    settings, name = context.settings, context.cluster
    source = settings.slurm.source
    first = context.now - window_of(settings).reach
    taken = catch_up(
        context.ledger(), name, context.source(name), source, context.now,
        first=first, overlap=settings.sweep.overlap,
    )  # fmt: skip
    _tell(taken, source)
    if taken.bad:
        raise click.exceptions.Exit(Exit.PARTLY)


def _opened(file: Path) -> AbstractContextManager[IO[Any]]:
    try:
        return click.open_file(str(file), encoding="utf-8", errors="replace")
    except OSError as bad:
        raise BadInput(
            f"cannot be read: {bad.strerror}", where=str(file), mend="check the name and its mode"
        ) from None


def _tell(taken: Taken, where: str) -> None:
    for row in taken.bad:
        click.echo(f"{where}: {row}", err=True)
    bad = f"; {len(taken.bad)} bad rows left out" if taken.bad else ""
    click.echo(f"{where}: {taken.recorded}{bad}")
