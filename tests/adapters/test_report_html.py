"""`sbudget report html` on a small ledger: the figures of the other reports, in a real file."""

import json
import stat
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest

from slurm_budget.cli.context import Context
from slurm_budget.errors import BadInput, SbudgetError
from slurm_budget.ledger.store import Ledger

from .conftest import Database
from .small_ledger import fill
from .test_reports import of, said


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ledger]:
    path = tmp_path_factory.mktemp("html") / "ledger.db"
    with Database("sqlite", f"sqlite:///{path}").open() as ledger:
        fill(ledger)
        yield ledger


@pytest.fixture
def context(filled: Ledger) -> Context:
    return of(filled)


class Tables(HTMLParser):
    """The exact figures of every table: by its id a list of rows, by header."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: dict[str, list[dict[str, str]]] = {}
        self.headers: list[str] = []
        self.in_header = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        about = dict(attrs)
        if tag == "table":
            self.rows = self.found[about["id"] or ""] = []
            self.headers = []
        elif tag == "th" and about["scope"] == "col":
            self.in_header = True
        elif tag == "tr":
            self.values: list[str] = []
        elif "data-value" in about:
            self.values.append(about["data-value"] or "")

    def handle_data(self, data: str) -> None:
        if self.in_header:
            self.headers.append(data)
            self.in_header = False

    def handle_endtag(self, tag: str) -> None:
        if tag == "tr" and self.values:
            self.rows.append(dict(zip(self.headers, self.values, strict=True)))


def exact(context: Context, report: str, *words: str) -> list[dict[str, str]]:
    """The rows of a report's JSON, by header, as the page writes them."""
    document = json.loads(said(context, report, "--json", *words))
    headers = {c["name"]: c["header"] for c in _headers(report) if c["name"] in _names(document)}
    return [
        {headers[name]: "" if row[name] is None else str(row[name]) for name in headers}
        for row in document["rows"]
    ]


def _names(document: dict[str, list[dict[str, str]]]) -> set[str]:
    return {column["name"] for column in document["columns"]}


def _headers(report: str) -> list[dict[str, str]]:
    from slurm_budget.render.reports import ALL

    (about,) = [one for one in ALL if one.name == report]
    return [{"name": column.name, "header": column.header} for column in about.columns]


@pytest.mark.parametrize("words", [[], ["start=now-2days"]])
def test_the_page_has_the_figures_of_the_other_reports(context: Context, words: list[str]) -> None:
    found = Tables(said(context, "html", "-o", "-", *words)).found
    for name, table in (("budgets", "tree"), ("delivered", "tree"), ("waits", "waits-table")):
        rows = exact(context, name, *words)
        assert len(rows) == len(found[table]) > 0
        for asked, shown in zip(rows, found[table], strict=True):
            assert asked.items() <= shown.items(), name
    listed = sorted(exact(context, "requeues", *words), key=lambda row: -int(row["Lost"]))
    shown = [{k: v for k, v in row.items() if k != "End"} for row in found["stopped"]]
    assert shown == [{k: v for k, v in row.items() if k != "End"} for row in listed]
    assert sum(int(row["Lost"]) for row in found["causes"]) == sum(int(r["Lost"]) for r in listed)


def test_use_over_time_adds_up_to_the_other_reports(context: Context) -> None:
    words = ["start=now-2days"]
    pieces = Tables(said(context, "html", "-o", "-", *words)).found["pieces"]
    budgets = exact(context, "budgets", *words)
    # what the guests used belongs to no budget
    guests = 3_600_000
    assert sum(int(p["Funded"]) for p in pieces) == int(budgets[0]["Funded"])
    assert sum(int(p["Preempt"]) for p in pieces) == int(budgets[0]["Preempt"]) + guests
    assert sum(int(p["Budget"]) for p in pieces) == int(budgets[0]["Budget"])
    summary = json.loads(said(context, "summary", "--json", "format=name,value", *words))["rows"]
    capacity = next(row["value"] for row in summary if row["name"] == "capacity")
    assert sum(int(p["There was"] or 0) for p in pieces) == capacity
    assert [p["There was"] for p in pieces].count("") == 3, "three hours in which nobody looked"


def test_it_says_as_of_which_sweep_it_is_unless_that_saw_all(context: Context) -> None:
    assert "As of the sweep of 2026-11-07 23:45." in said(context, "html", "-o", "-")
    assert "As of" not in said(context, "html", "-o", "-", "end=2026-11-07")


def test_before_any_sweep_it_shows_what_ran(context: Context) -> None:
    text = said(context, "html", "-o", "-", "start=2026-11-01", "end=2026-11-02")
    assert "no sweep has looked in this period" in text
    assert "tree" in Tables(text).found


def test_the_file_is_replaced_whole_and_everybody_may_read_it(
    context: Context, tmp_path: Path
) -> None:
    file = tmp_path / "pages" / "budgets.html"
    with pytest.raises(BadInput, match="is not there"):
        said(context, "html", "-o", str(file), "start=now-2days")
    file.parent.mkdir()
    for _ in range(2):
        assert said(context, "html", "-o", str(file), "start=now-2days") == ""
        assert stat.S_IMODE(file.stat().st_mode) == 0o644
        assert file.read_text() == said(context, "html", "-o", "-", "start=now-2days")
    assert [one.name for one in file.parent.iterdir()] == ["budgets.html"]


def test_what_is_wrong_is_said_with_the_mend(context: Context, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="of the whole cluster"):
        said(context, "html", "-o", "-", "accounts=vision")
    with pytest.raises(SbudgetError, match="cannot be written"):
        said(context, "html", "-o", str(tmp_path))
