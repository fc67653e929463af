"""Rows of reports and their forms: what a manager, a script and a spreadsheet see."""

import io
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from slurm_budget.cli.report_words import parse
from slurm_budget.core.report import BudgetRow, budget_rows, sums_of, usage_rows
from slurm_budget.core.report_delivered import cut, looked
from slurm_budget.core.report_waits import percentile, wait_rows
from slurm_budget.errors import BadInput
from slurm_budget.render import cells, report_text
from slurm_budget.render.across import ACROSS
from slurm_budget.render.reports import ALL, BUDGETS, REQUEUES
from slurm_budget.render.table import Column, Report, Table, chosen
from slurm_budget.state.budget import Amount, BudgetNode, BudgetTree
from slurm_budget.state.report import Start, Used

HOUR = 3_600_000
TREE = BudgetTree(
    "main",
    {
        "top": BudgetNode("top", None, Amount("gpus", 4)),
        "a": BudgetNode("a", "top", Amount("gpus", 3)),
        "new": BudgetNode("new", "top"),
    },
)
BUDGET = {"top": 400 * HOUR, "a": 300 * HOUR, "new": None}


def used(account: str = "a", **how: object) -> Used:
    base = Used(account, "ana", {"h100": 1}, True, 1, 50 * 3600, 20 * 3600)
    return replace(base, **how)  # type: ignore[arg-type]


def rows() -> list[BudgetRow]:
    runs = [used(), used(funded=False, seconds=100 * 3600, charged=0)]
    return budget_rows(TREE, BUDGET, sums_of(runs, {}, 100, whole_run=False))


def table(found: list[BudgetRow], format_: str | None = None) -> Table[BudgetRow]:
    return Table(BUDGETS, found, chosen(BUDGETS, format_), "main", 0, 7 * 86400)


def test_the_budgets_of_every_account() -> None:
    assert report_text.parsable(table(rows()), "hours", tree=False, header=True).splitlines() == [
        "Account|Budget|Funded|Preempt|Charged|Left|Standing",
        "top|400|50|100|20|380|15.0%",
        "a|300|50|100|20|280|20.0%",
        "new||0|0|0||",
    ]
    percent = report_text.parsable(table(rows()), "percent", tree=True, header=False)
    assert percent.splitlines()[1] == " a|100.00%|16.67%|33.33%|6.67%|93.33%|20.0%"
    assert "180000" in report_text.parsable(table(rows()), "seconds", tree=False, header=False)


def test_widths_and_names_as_sacct_takes_them() -> None:
    lines = report_text.plain(
        table(rows(), "ACC%-5,bud%8,left%2"), "hours", tree=False, header=True
    ).splitlines()
    assert lines[1:] == [
        "Acco+    Budget  L+",
        "-----  --------  --",
        "top         400  3+",
        "a           300  2+",
        "new",
    ]


def test_a_terminal_of_80_columns_breaks_no_line_and_cuts_no_figure() -> None:
    name = "a-team-with-a-name-that-nobody-would-give-to-a-child-of-theirs"
    million = 10**6 * HOUR
    found = [
        BudgetRow(name, 3, million, million, million, million, -million, 12.5),
        BudgetRow("[bold]x[/bold]", 0, None, 0, 0, 0, None, None),
    ]
    out = Console(width=80, force_terminal=True, color_system=None, file=io.StringIO())
    made, width = report_text.rich(table(found), "hours", tree=True, header=True, width=80)
    assert width == 80
    out.print(made)
    assert isinstance(out.file, io.StringIO)
    lines = out.file.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    (first,) = [line for line in lines if "1000000" in line]
    assert first.split()[1:] == [*["1000000"] * 4, "-1000000", "1250.0%"]
    assert any("[bold]" in line for line in lines), "a name is no markup"


texts = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=12)


@given(name=texts, first=st.sampled_from(["=", "+", "-", "@", "\t", "\r", "", " ="]))
def test_no_name_becomes_a_formula_in_a_spreadsheet(name: str, first: str) -> None:
    import csv

    given_ = first + name
    report: Report[str] = Report("r", "R", (Column("n", "N", "text", lambda r: r, ""),))
    made = Table(report, [given_], chosen(report, None), "main", 0, 1)
    text = report_text.as_csv(made, "hours", tree=False, header=False)
    (row,) = csv.reader(io.StringIO(text + "\n"))
    shown = row[0] if row else ""
    assert not shown.startswith(("+", "=", "@", "\t", "\r"))
    assert not shown.startswith("-") or shown[1:2] in "0123456789"
    assert "\n" not in report_text.parsable(made, "hours", tree=False, header=False)
    assert "\x1b" not in text, "no name writes to the terminal"


def test_figures_below_zero_stay_figures_in_csv() -> None:
    row = BudgetRow("=cmd()", 0, HOUR, 0, 0, 9 * HOUR, -8 * HOUR, 0)
    line = report_text.as_csv(table([row]), "hours", tree=False, header=False)
    assert line == "'=cmd(),1,0,0,9,-8,0.0%"


@pytest.mark.parametrize(
    ("time", "shown"),
    [("hours", "1.5"), ("minutes", "90"), ("seconds", "5400"), ("percent", "50.00%")],
)
def test_units_of_gpu_time(time: cells.Time, shown: str) -> None:
    assert cells.gpu_time(5_400_000, time, 10_800_000) == shown
    assert cells.time_of(time[:3].upper()) == time


def test_every_column_of_the_requeues_can_be_asked_for() -> None:
    names = [column.name for column in REQUEUES.columns]
    assert [field.column.name for field in chosen(REQUEUES, ",".join(names))] == names
    with pytest.raises(BadInput, match="is not one field"):
        chosen(REQUEUES, "f")  # for, forjob


@given(st.lists(st.integers(0, 1000), min_size=1), st.integers(1, 100))
def test_a_percentile_is_a_wait_that_so_many_did_not_exceed(waits: list[int], rank: int) -> None:
    waits.sort()
    found = percentile(waits, rank)
    assert found in waits
    assert sum(w <= found for w in waits) * 100 >= rank * len(waits)
    assert sum(w < found for w in waits) * 100 < rank * len(waits)


def test_debug_jobs_are_those_that_the_fast_lane_takes() -> None:
    starts = [
        Start("a", {"": 1}, True, 5, 7200),
        Start("a", {"": 1}, True, 50, 7260),
        Start("a", {"": 1}, True, 60, None),
        Start("a", {"": 1}, False, 7, 60),
    ]
    found = wait_rows(starts, {}, 7200)
    assert [(row.class_, row.size, row.runs, row.longest) for row in found] == [
        ("debug", "1", 1, 5), ("funded", "1", 2, 60), ("preemptible", "1", 1, 7),
    ]  # fmt: skip


def test_usage_counts_gpus_and_no_weights_and_adds_up_the_tree() -> None:
    found = usage_rows("main", TREE, [used(gpus={"h100": 2}), used("a", user="ben"), used("gone")])
    assert [(row.account, row.user, row.used // HOUR) for row in found] == [
        ("top", "", 150), ("a", "", 150), ("a", "ana", 100), ("a", "ben", 50),
        ("gone", "", 50), ("gone", "ana", 50),
    ]  # fmt: skip


def test_what_nobody_looked_at_is_not_believed() -> None:
    assert looked([90, 100, 130, 300, 310], 95, 400, 50) == [(95, 180), (300, 360)]
    assert looked([], 0, 100, 50) == []
    assert looked([0], 60, 100, 50) == []
    assert cut([(0, 10), (20, 30)], [5, 25, 25, 20, 40]) == [(0, 5), (5, 10), (20, 25), (25, 30)]


def test_the_words_of_sreport() -> None:
    words = parse(("Start=now-7days", "END=now", "acc=a,b", "tree", "format=account%20"))
    assert (words.start, words.end, words.accounts, words.tree) == ("now-7days", "now", "a,b", True)
    query = words.query("main", 10_000_000, 600)
    assert (query.end - query.start, query.accounts, query.windowed) == (604800, ("a", "b"), False)
    plain = parse(()).query("main", 1000, 600)
    assert (plain.start, plain.end, plain.windowed) == (400, 1000, True)


def test_the_docs_name_every_column_with_its_header_and_meaning() -> None:
    text = (Path(__file__).resolve().parents[2] / "docs" / "reports.md").read_text()
    sections = {part.split("\n", 1)[0]: part for part in text.split("\n## ")[1:]}
    for about in (*ALL, ACROSS):
        lines = [line for line in sections[about.name].splitlines() if line.startswith("| ")]
        for column in about.columns:
            more = "" if column.shown else " (by `format=`)"
            assert f"| {column.name} | {column.header} | {column.doc}{more} |" in lines
