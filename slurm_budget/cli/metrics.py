"""`sbudget metrics`."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from slurm_budget.cli.context import Context

if TYPE_CHECKING:
    from slurm_budget.usecases.overview import Overview


@click.command()
@click.option(
    "-o", "--output", type=click.Path(path_type=Path, dir_okay=False),
    help="Write them to FILE in one step, for node_exporter's textfile collector.",
)  # fmt: skip
@click.option("--listen", metavar="ADDR:PORT", help="Serve them to Prometheus until Ctrl-C.")
@click.pass_obj
def metrics(ctx: Context, output: Path | None, listen: str | None) -> int | None:
    """Figures for Prometheus: budgets, standing, what runs, waits and is owed, sweeps, requeues.

    \b
    cron       sbudget metrics -o /var/lib/node_exporter/slurm-budget.prom
    server     sbudget metrics --listen 127.0.0.1:9810

    A source that cannot be read leaves its figures out and sets slurm_budget_up to 0; the exit code
    says so too (6 Slurm, 7 ledger). etc/grafana-dashboard.json shows them all.
    """
    from slurm_budget import files
    from slurm_budget.render import metrics as render

    if listen is not None:
        _serve(ctx, listen)
        return None
    seen = _look(ctx)
    text = render.text(seen)
    if output is None:
        click.echo(text, nl=False)
    else:
        files.replace(files.need_folder(output), text)
    for source, bad in seen.failed.items():
        click.echo(f"sbudget: {source}: {bad}", err=True)
    return next((int(bad.code) for bad in seen.failed.values()), None)


def _look(ctx: Context) -> "Overview":
    from slurm_budget.usecases.overview import overview_of

    return overview_of(ctx.slurm(), ctx.readable_ledger, ctx.settings, lambda: ctx.cluster, ctx.now)


def _serve(ctx: Context, listen: str) -> None:
    """Each scrape reads everything afresh, one at a time; the ledger is closed again after it."""
    import threading
    from collections.abc import Iterable

    from prometheus_client import CollectorRegistry, start_http_server
    from prometheus_client.core import Metric
    from prometheus_client.registry import Collector

    from slurm_budget.errors import BadInput, SbudgetError
    from slurm_budget.render import metrics as render

    address, colon, port = listen.rpartition(":")
    if not colon or not port.isdigit() or not 0 < int(port) < 65536:
        raise BadInput(f"{listen!r} is no ADDR:PORT", mend="write it like 127.0.0.1:9810")
    busy = threading.Lock()

    class Fresh(Collector):
        def collect(self) -> Iterable[Metric]:
            with busy:
                once = Context(config=ctx.config)
                try:
                    return list(render.families(_look(once)))
                finally:
                    once.close()

    ctx.settings  # noqa: B018  a fault in the settings is told now, not at each scrape
    registry = CollectorRegistry(auto_describe=False)
    registry.register(Fresh())
    try:
        _, thread = start_http_server(int(port), address.strip("[]") or "0.0.0.0", registry)
    except OSError as bad:
        raise SbudgetError(
            f"cannot listen: {bad.strerror}", where=listen, mend="choose another address or port"
        ) from None
    click.echo(f"serving http://{listen}/metrics", err=True)
    thread.join()
