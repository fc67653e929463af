"""The page for managers as a browser, a screen reader and a hostile user find it."""

import re
from base64 import b64encode
from dataclasses import dataclass, field, replace
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_budget.core.delivered import Period, delivered
from slurm_budget.core.division import CLUSTER, Change
from slurm_budget.core.report import BudgetRow
from slurm_budget.core.report_delivered import DeliveredRow
from slurm_budget.core.report_requeues import RequeueRow
from slurm_budget.core.report_summary import Measure
from slurm_budget.core.report_waits import WaitRow
from slurm_budget.core.series import MOST, Piece, marks, promised, series
from slurm_budget.render.axes import nice
from slurm_budget.render.markup import el, join
from slurm_budget.render.page import LARGEST, page
from slurm_budget.render.page_tables import PIECES
from slurm_budget.state.budget import BudgetNode, BudgetTree
from slurm_budget.usecases.report_page import Page

HOUR, DAY = 3_600_000, 86400
END = 1_793_491_200
START = END - 31 * DAY
HOSTILE = (
    "<script>alert(1)</script>",
    '"quo\'ted" & </td></table>',
    "فريق الرؤية",
    "x\u202egnp.exe",
    "</style><img src=x onerror=alert(1)>",
    "javascript:alert(1)",
    "\ud800 lone",
)


def sample(names: tuple[str, ...] = ("institute", "vision"), requeues: int = 3) -> Page:
    """A month with an account for each name, the first above the others."""
    budgets, shares = [], []
    for place, name in enumerate(names):
        depth = 1 if place else 0
        budgets.append(
            BudgetRow(name, depth, 744 * HOUR, 600 * HOUR, 90 * HOUR, 300 * HOUR, 444 * HOUR, 0.82)
        )
        shares.append(DeliveredRow(name, depth, 744 * HOUR, 620 * HOUR, 600 * HOUR))
    pieces = [
        Piece(at, at + DAY, 24 * HOUR, 20 * HOUR, 3 * HOUR, DAY, 25 * HOUR, 23 * HOUR)
        for at in range(START, END, DAY)
    ]
    pieces[4] = Piece(pieces[4].start, pieces[4].end, None, 20 * HOUR)
    stopped = [
        RequeueRow(START + n, n, names[-1], names[-1], "funded", 8, 60, n, "owed", names[0], 7, "")
        for n in range(requeues)
    ]
    measures = [
        Measure("delivered", "Delivered", "ratio", 0.967),
        Measure("worst_team", "Worst team, name", "text", names[-1]),
    ]
    waits = [WaitRow("debug", "1", 9, 0, 61, 80), WaitRow("preemptible", "65+", 1, 9, 10**6, 10**7)]
    return Page(names[-1], START, END, budgets, shares, measures, pieces, waits, stopped)


@dataclass
class Reader(HTMLParser):
    """What is in a page: elements with their attributes and all their text, and faults."""

    elements: list[tuple[str, dict[str, str | None], list[str]]] = field(default_factory=list)
    open: list[tuple[str, dict[str, str | None], list[str]]] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        made = (tag, dict(attrs), list[str]())
        self.elements.append(made)
        if len(attrs) != len(dict(attrs)):
            self.faults.append(f"{tag} has an attribute twice")
        if tag not in ("meta", "br"):
            self.open.append(made)

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop()[0] != tag:
            self.faults.append(f"</{tag}> closes nothing")

    def handle_data(self, data: str) -> None:
        for one in self.open:
            one[2].append(data)

    def all(self, tag: str) -> list[tuple[dict[str, str | None], str]]:
        return [(attrs, "".join(text)) for name, attrs, text in self.elements if name == tag]

    def values(self, *names: str) -> list[str]:
        return [attrs[n] or "" for _, attrs, _ in self.elements for n in names if n in attrs]


def read(text: str) -> Reader:
    reader = Reader()
    reader.feed(text)
    reader.close()
    assert not reader.faults
    assert not reader.open
    return reader


PAGES = {
    "a month": sample(),
    "hostile names": sample(HOSTILE),
    "no sweep looked": replace(sample(), delivered=[], measures=[], unknown="no sweep has looked"),
    "nothing ran": replace(sample(), waits=[], requeues=[], pieces=[Piece(START, END)]),
    "no budgets": replace(sample(), budgets=[], delivered=[]),
}


@pytest.mark.parametrize("name", PAGES)
def test_the_page_is_whole_and_can_be_read_aloud(name: str) -> None:
    text = page(PAGES[name], END)
    found = read(text)
    ids = found.values("id")
    assert len(ids) == len(set(ids)) > 10
    for words in found.values("aria-labelledby", "aria-describedby"):
        assert set(words.split()) <= set(ids)
    assert [attrs["lang"] for attrs, _ in found.all("html")] == ["en"]
    for landmark in ("header", "main", "footer", "h1", "head"):
        assert len(found.all(landmark)) == 1
    tables = found.all("table")
    assert len(found.all("caption")) == len(tables) >= 2
    assert all(words.strip() for _, words in found.all("caption"))
    assert {attrs.get("scope") for attrs, _ in found.all("th")} <= {"col", "row"}
    assert len(found.all("th")) == sum(s in ("col", "row") for s in found.values("scope"))
    plots = [attrs for attrs, _ in found.all("svg") if attrs.get("role") == "img"]
    assert len(found.all("desc")) == len(plots) >= 2
    assert all(words.strip() and attrs["id"] for attrs, words in found.all("desc"))
    assert all(attrs.get("role") or attrs.get("aria-hidden") for attrs, _ in found.all("svg"))


@pytest.mark.parametrize("name", PAGES)
def test_the_page_needs_nothing_else_and_runs_only_its_own_script(name: str) -> None:
    text = page(PAGES[name], END)
    found = read(text)
    assert not re.search(r"https?:|//[a-z]|url\(|@import", text)
    assert found.values("href") == ["#main"]
    assert not found.values("src", "style", "onclick", "onload", "onerror", "srcset", "action")
    assert len(found.all("style")) == len(found.all("script")) == 1
    ((_, style),), ((_, script),) = found.all("style"), found.all("script")
    hashes = [b64encode(sha256(one.encode()).digest()).decode() for one in (style, script)]
    policy = next(a["content"] for a, _ in found.all("meta") if "http-equiv" in a)
    expected = "default-src 'none'; style-src 'sha256-{}'; script-src 'sha256-{}'"
    assert policy == expected.format(*hashes)


def test_hostile_names_are_shown_and_do_nothing() -> None:
    text = page(sample(HOSTILE), END)
    found = read(text)
    names = [words for attrs, words in found.all("th") if attrs.get("scope") == "row"]
    for name in HOSTILE:
        assert "".join(c if c.isprintable() else "?" for c in name) in names
    assert not found.all("img")
    assert "\u202e" not in text
    assert text.encode()
    isolated = [words for _, words in found.all("bdi")]
    assert "فريق الرؤية" in isolated


def test_a_large_site_has_a_small_page() -> None:
    names = tuple(f"account-with-a-long-name-{n}" for n in range(200))
    found = sample(names, requeues=5000)
    pieces = [Piece(at, at + 10, *[10**12] * 6) for at in marks(0, MOST * 10)[:-1]]
    text = page(replace(found, pieces=pieces), END)
    assert len(pieces) == MOST
    assert len(text.encode()) < 1_000_000
    assert f"The {LARGEST} largest of 5000" in text


def test_without_sweeps_it_says_so_and_claims_no_share() -> None:
    found = read(page(PAGES["no sweep looked"], END))
    assert any("no sweep has looked" in words for _, words in found.all("p"))
    headers = [words for attrs, words in found.all("th") if attrs.get("scope") == "col"]
    assert "Budget" in headers
    assert "Delivered" not in headers


def test_elements_escape_text_and_attributes_and_leave_out_what_is_not_there() -> None:
    assert el("p", 'a<b & "c"', title='"&<', hidden=None, open=True, x=1.0) == (
        '<p title="&quot;&amp;&lt;" open x="1">a&lt;b &amp; &quot;c&quot;</p>'
    )
    assert join(el("b", "x"), "<", None, [el("br")]) == "<b>x</b>&lt;<br>"


@given(st.text())
def test_whatever_a_text_is_it_comes_back_as_text(text: str) -> None:
    reader = read(el("p", text, title=text).replace("\r", ""))
    if "\0" not in text and "\r" not in text:
        assert [words for _, words in reader.all("p")] == [text]
        assert reader.values("title") == [text]


@given(st.integers(0, 10**9), st.integers(1, 10**9))
def test_pieces_cover_the_period_once(start: int, length: int) -> None:
    found = marks(start, start + length)
    assert found[0] == start
    assert found[-1] == start + length
    assert found == sorted(set(found))
    assert len(found) <= MOST + 1


def test_a_month_is_in_days_and_a_week_in_hours() -> None:
    assert len(marks(START, END)) == 32
    assert marks(END - 7 * DAY, END)[:2] == [END - 7 * DAY, END - 7 * DAY + 6 * 3600]


_CHANGES = st.lists(
    st.builds(
        Change,
        st.integers(0, 1000),
        st.sampled_from([CLUSTER, None, "a", "b"]),
        st.integers(0, 9000),
        st.integers(0, 9000),
    ).map(lambda c: c._replace(running=0) if c.account == CLUSTER else c._replace(waiting=0))
)


@given(_CHANGES, st.lists(st.integers(0, 1100), max_size=6, unique=True), st.integers(1, 400))
def test_pieces_add_up_to_what_the_summary_says(
    changes: list[Change], edges: list[int], step: int
) -> None:
    """The same moments, summed by core.delivered and here."""
    cuts = sorted(edges)[: len(edges) // 2 * 2]
    looked = list(zip(cuts[::2], cuts[1::2], strict=True))
    pieces = series([*range(0, 1100, step), 1100], looked, changes)
    whole = delivered([Period(*one, {}) for one in looked], changes)
    assert sum(p.seen for p in pieces) == whole.seconds
    assert sum(p.capacity for p in pieces) == whole.capacity
    assert sum(p.busy for p in pieces) == whole.busy
    for name, kind in ((None, "preemptible"), ("a", "funded")):
        mine = [c for c in changes if (c.account is None) == (name is None) and c.account != ""]
        ran = sum(c.running * (1100 - c.at) for c in mine)
        assert sum(getattr(p, kind) for p in pieces) == ran


def test_what_was_promised_is_that_of_the_top_and_none_is_not_zero() -> None:
    nodes = [BudgetNode("a", None), BudgetNode("b", None), BudgetNode("c", "a")]
    tree = BudgetTree("main", {node.name: node for node in nodes})
    assert promised(tree, {"a": 5, "b": None, "c": 4}) == 5
    assert promised(tree, {"a": None, "b": None, "c": 4}) is None
    assert promised(tree, {"a": 0, "b": None, "c": None}) == 0


@given(st.floats(1e-6, 1e12))
def test_ticks_are_few_and_reach_the_top(most: float) -> None:
    found = nice(most)
    assert found[0] == 0
    assert found[-1] >= most * 0.99
    assert 2 <= len(found) <= 8


def test_the_docs_name_every_column_of_the_pieces() -> None:
    text = (Path(__file__).resolve().parents[2] / "docs" / "reports.md").read_text()
    for column in PIECES.columns:
        assert f"| {column.name} | {column.header} | {column.doc} |" in text
