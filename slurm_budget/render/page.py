"""The page for managers: one HTML file that needs nothing else, no network and no script."""

from base64 import b64encode
from hashlib import sha256
from importlib.resources import files
from typing import Any

from slurm_budget import __version__
from slurm_budget.render import page_says as say
from slurm_budget.render import page_tables as tables
from slurm_budget.render import plots
from slurm_budget.render.cells import cell
from slurm_budget.render.html_table import html_table, words
from slurm_budget.render.markup import Child, Markup, el, join, raw
from slurm_budget.render.reports import REQUEUES, WAITS
from slurm_budget.render.table import Report, Table, chosen
from slurm_budget.text.spoken import spoken
from slurm_budget.usecases.report_page import Page

LARGEST = 20
"""Requeues that are listed one by one."""


def page(found: Page, now: int) -> str:
    """The whole document."""
    cluster = cell("text", found.cluster, "hours", None)
    period = f"{say.moment(found.start)} to {say.moment(found.end)}"
    style, script = (
        files("slurm_budget.render").joinpath(f"page.{kind}").read_text(encoding="utf-8")
        for kind in ("css", "js")
    )
    policy = f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}"
    head = el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", http_equiv="Content-Security-Policy", content=policy),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", name="color-scheme", content="light dark"),
        el("meta", name="generator", content=f"slurm-budget {__version__}"),
        el("title", f"GPU budgets of {cluster}, {period}"),
        raw("style", style),
    )
    body = el(
        "body",
        el("a", "To the figures", href="#main", class_="skip"),
        el(
            "header",
            el("h1", "GPU budgets of ", el("bdi", cluster)),
            el("p", f"{period}. GPU-time in GPU-hours.{say.as_of(found.as_of, found.end)}"),
        ),
        el("main", _summary(found), _use(found), _accounts(found), _waits(found),
           _requeues(found), id="main"),
        el(
            "footer",
            el("p", f"Made {say.moment(now)} by slurm-budget {__version__} from its ledger. ",
               "The figures are those of ", el("code", "sbudget report"),
               "; docs/reports.md says what each is, and what it does not know."),
        ),
        raw("script", script),
    )  # fmt: skip
    return f"<!DOCTYPE html>\n{el('html', head, body, lang='en')}\n"


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def _section(name: str, title: str, *content: Child) -> Markup:
    heading = el("h2", title, id=f"{name}-title")
    return el("section", heading, *content, id=name, aria_labelledby=f"{name}-title")


def _table(found: Page, report: Report[Any], rows: Any) -> Table[Any]:
    return Table(report, rows, chosen(report, None), found.cluster, found.start, found.end)


def _summary(found: Page) -> Markup:
    if found.unknown:
        return el("p", f"Only what ran is shown: {found.unknown}.", class_="unknown")
    tiles = [
        el("div", el("dt", tile.title), el("dd", el("bdi", tile.figure), el("small", tile.words)))
        for tile in say.tiles(found.measures)
    ]
    return _section("summary", "In short", el("dl", tiles, class_="tiles"))


def _use(found: Page) -> Markup:
    pieces = found.pieces
    table = _table(found, tables.PIECES, pieces)
    seen = any(piece.seen for piece in pieces)
    each = spoken(pieces[0].end - pieces[0].start)
    return _section(
        "use",
        "Use over time",
        plots.use(pieces, say.use(pieces)),
        plots.occupancy(pieces, say.occupancy(pieces)) if seen else None,
        el(
            "details",
            el("summary", "The figures of both plots" if seen else "The figures of the plot"),
            html_table(table, f"Use in pieces of {each}, GPU-hours", id_="pieces"),
            words(table),
        ),
    )


def _accounts(found: Page) -> Markup:
    report = tables.TREE_UNSEEN if found.unknown else tables.TREE
    table = _table(found, report, tables.accounts(found.budgets, found.delivered))
    return _section(
        "accounts",
        "Accounts",
        html_table(table, f"{report.title}, GPU-hours", id_="tree"),
        words(table),
    )


def _waits(found: Page) -> Markup:
    title = "Queue waits"
    if not found.waits:
        return _section("waits", title, el("p", "No run with GPUs started."))
    table = _table(found, WAITS, found.waits)
    return _section(
        "waits",
        title,
        plots.waits(found.waits, say.waits(found.waits)),
        html_table(table, "Waits of runs that started, [days-]hours:minutes:seconds",
                   id_="waits-table"),
        words(table),
    )  # fmt: skip


def _requeues(found: Page) -> Markup:
    title = "Runs stopped from outside"
    if not found.requeues:
        return _section("requeues", title, el("p", "None."))
    largest = sorted(found.requeues, key=lambda row: (-row.lost, row.at, row.job))[:LARGEST]
    causes = html_table(
        _table(found, tables.CAUSES, tables.causes(found.requeues)),
        "By cause, GPU-hours lost at most",
        id_="causes",
        note="Lost is the whole run, as if there was no checkpoint.",
    )
    count = len(found.requeues)
    caption, note = f"All {count}", None
    if count > LARGEST:
        caption = f"The {LARGEST} largest of {count}"
        note = join(el("code", "sbudget report requeues"), " lists all.")
    table = _table(found, REQUEUES, largest)
    return _section(
        "requeues", title, causes,
        html_table(table, f"{caption}, GPU-hours", id_="stopped", note=note), words(table),
    )  # fmt: skip
