"""Every report on a small ledger: the golden texts, and the same figures in every form.

`pytest tests/adapters/test_reports.py --regenerate` writes tests/data/reports anew.
"""

import csv
import io
import json
import time
from collections.abc import Iterator

import click
import jsonschema
import pytest
from click.testing import CliRunner, Result

from slurm_budget.cli.context import Context
from slurm_budget.cli.report import report
from slurm_budget.core.demand import changed
from slurm_budget.errors import BadInput
from slurm_budget.ledger.store import Ledger
from slurm_budget.render.reports import ALL
from slurm_budget.settings import Settings
from slurm_budget.text.moments import shown

from .conftest import ROOT, Database
from .small_ledger import CLUSTER, HOUR, NOW, START, fill

GOLDEN = ROOT / "tests" / "data" / "reports"
SETTINGS = {
    "slurm": {"cluster": CLUSTER},
    "jobs": {"gpu_weights": {"a100": 0.5}},
    "snapshot": {"max_age": 900},
}
CASES = {
    "budgets": ["budgets", "tree"],
    "budgets-parsable": ["budgets", "-P"],
    "budgets-two-days": ["budgets", "start=now-2days", "-t", "percent", "tree"],
    "users": ["users"],
    "usage": ["usage", "start=2026-11-06", "end=2026-11-07", "tree"],
    "usage-seconds": ["usage", "start=2026-11-06", "-t", "seconds", "-P", "-n"],
    "usage-csv": ["usage", "start=2026-11-06", "--csv"],
    "waits": ["waits"],
    "requeues": ["requeues"],
    "requeues-why": ["requeues", "format=job,cause%-7,why%12"],
    "delivered": ["delivered", "start=now-2days", "tree"],
    "delivered-json": ["delivered", "start=now-2days", "--json", "accounts=vision,robotics"],
    "summary": ["summary", "start=now-2days"],
}


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Dates are shown in this machine's zone."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ledger]:
    path = tmp_path_factory.mktemp("reports") / "ledger.db"
    with Database("sqlite", f"sqlite:///{path}").open() as ledger:
        fill(ledger)
        yield ledger


@pytest.fixture
def context(filled: Ledger) -> Context:
    return of(filled)


def of(ledger: Ledger) -> Context:
    made = Context(now=NOW)
    made.__dict__["settings"] = Settings.model_validate(SETTINGS)
    made._ledger = ledger
    return made


def said(context: Context, *argv: str) -> str:
    done: Result = CliRunner().invoke(report, argv, obj=context, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def test_every_report_is_as_it_was(ledger: Ledger, request: pytest.FixtureRequest) -> None:
    fill(ledger)
    context = of(ledger)
    for name, argv in CASES.items():
        text, file = said(context, *argv), GOLDEN / name
        if request.config.getoption("--regenerate"):
            file.write_text(text)
        assert text == file.read_text(), name
    assert {file.name for file in GOLDEN.iterdir()} == CASES.keys()
    assert {argv[0] for argv in CASES.values()} == {about.name for about in ALL}


@pytest.mark.parametrize("name", [about.name for about in ALL])
def test_text_csv_and_json_say_the_same(context: Context, name: str) -> None:
    from slurm_budget.core.report_summary import Measure
    from slurm_budget.render import cells

    document = json.loads(said(context, name, "start=now-2days", "--json"))
    jsonschema.validate(document, json.loads((ROOT / "docs" / "report-schema.json").read_text()))
    names = [column["name"] for column in document["columns"]]
    rows = list(csv.reader(io.StringIO(said(context, name, "start=now-2days", "--csv"))))
    parsed = [line.split("|") for line in said(context, name, "start=now-2days", "-P").splitlines()]
    *plain, as_of = said(context, name, "start=now-2days").splitlines()
    assert as_of == "As of the sweep at 23:45:00, 15 min ago."
    assert document["as_of"] == NOW - 900
    assert rows[0] == names
    assert rows[1:] == parsed[1:]
    assert len(document["rows"]) == len(rows) - 1 == len(plain) - 3 > 0
    for exact, text, line in zip(document["rows"], rows[1:], plain[3:], strict=True):
        assert [word for cell in text for word in cell.split()] == line.split()
        for column, cell in zip(document["columns"], text, strict=True):
            value = exact[column["name"]]
            if column["unit"] == "measure":
                continue  # its unit is a column of its own, see below
            assert cells.cell(column["unit"], value, "hours", None) == cell, column
    if name == "summary":
        wide = json.loads(
            said(context, name, "start=now-2days", "--json", "format=name,unit,value,measure")
        )
        for row, text in zip(wide["rows"], rows[1:], strict=True):
            measure = Measure(row["name"], row["measure"], row["unit"], row["value"])
            assert text == [row["measure"], cells.cell("measure", measure, "hours", None)]


def test_what_was_delivered_is_what_a_person_works_out(context: Context) -> None:
    """language alone: 12 h waited or ran... every figure from the story in small_ledger."""
    rows = {
        row["account"]: row
        for row in json.loads(said(context, "delivered", "start=now-2days", "--json"))["rows"]
    }
    # an a100 counts half, so job 3 counts 10 GPUs; of 28 there are 16 : 12 : 4 for three
    language = 10 * (0.5 + 5.5 + 2.5 + 6) + 4 * 2
    assert rows["language"]["deserved"] == language * HOUR * 1000
    assert rows["language"]["got"] == (10 * (5.5 + 6) + 4 * 2) * HOUR * 1000
    assert rows["robotics"]["delivered"] is None
    # jobs 1 and 7 run for 10 h and 18 h, job 4 for 9 min; 7 waited for 3 h 20 min as a sweep saw
    waited = 12 - 8 - 40 / 60
    vision = 8 * 10 + 8 * 18 + 0.15 + 8 * waited
    assert rows["vision"]["deserved"] == pytest.approx(vision * HOUR * 1000, rel=0.02)
    whole = rows["institute"]
    assert whole["got"] == rows["vision"]["got"] + rows["language"]["got"]


def test_time_in_which_no_sweep_looked_is_left_out(context: Context) -> None:
    rows = json.loads(said(context, "summary", "start=now-2days", "--json", "format=name,value"))[
        "rows"
    ]
    value = {row["name"]: row["value"] for row in rows}
    assert value["observed"] == 1 - 3 / 48
    assert value["requeues"] == 2
    assert (value["requeues_owed"], value["requeues_preempted"]) == (1, 1)
    assert value["wait_debug_1_p90"] == 7


def test_hours_add_up_to_the_day_as_slurmdbds_rollups_do(context: Context) -> None:
    def used(start: int, end: int) -> dict[tuple[str, str], int]:
        text = said(context, "usage", "--json", f"start={shown(start)}", f"end={shown(end)}")
        return {(r["account"], r["login"]): r["used"] for r in json.loads(text)["rows"]}

    day, total = used(START, START + 24 * HOUR), dict[tuple[str, str], int]()
    for start in range(START, START + 24 * HOUR, HOUR):
        for key, amount in used(start, start + HOUR).items():
            total[key] = total.get(key, 0) + amount
    assert total == day
    assert day["vision", "ana"] == (8 * 10 + 0.15) * HOUR * 1000


def test_accounts_and_users_that_are_asked_for(context: Context) -> None:
    assert said(context, "usage", "-Pn", "accounts=seeing", "format=account,login") == (
        "vision|\nvision|ana\nvision|ben\n"
    )
    assert said(context, "usage", "-Pn", "users=eve", "format=account,login") == (
        "guests|\nguests|eve\n"
    )
    assert said(context, "budgets", "-Pn", "accounts=institute", "format=acc") == (
        "institute\nvision\nlanguage\nrobotics\n"
    )


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["budgets", "users=ana"], "report budgets has no users"),
        (["budgets", "format=colour"], "its fields: account, budget"),
        (["budgets", "format=account%x"], "is no width"),
        (["budgets", "-t", "parsecs"], "one of hours, minutes, seconds, percent"),
        (["budgets", "colour=red"], "the words are accounts="),
        (["budgets", "tree=1"], "the words are"),
        (["budgets", "-P", "--json"], "choose one"),
        (["usage", "start=now", "end=now-1h"], "ends before it starts"),
        (["usage", "start=soon"], "is not a moment"),
        (["usage", "clusters=a,b"], "one cluster at a time"),
        (["usage", "start=2026-01-01", "end=2026-01-02", "-t", "percent"], "No sweep has looked"),
        (["delivered", "start=2026-01-01", "end=2026-01-02"], "no sweep has looked"),
        (["summary", "accounts=vision"], "of the whole cluster"),
        (["budgets", "accounts=visoin"], "never had a budget or run of account 'visoin'"),
        (["waits", "accounts=institute,visoin"], "did you mean vision?"),
        (["users", "users=amna"], "did you mean ana?"),
        (["requeues", "users=nosuchuser"], "see `sbudget report users`"),
        (["usage", "cluster=smal"], "did you mean small?"),
        (["html", "-o", "-", "cluster=elsewhere"], "it has: small"),
    ],
)
def test_what_is_wrong_is_said_with_the_mend(context: Context, argv: list[str], words: str) -> None:
    with pytest.raises(BadInput) as caught:
        said(context, *argv)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    "words",
    [
        ["accounts=guests"],  # ran without a budget
        ["accounts=Seeing", "cluster=SMALL"],  # a former name
        ["users=eve"],
        ["users=root"],  # of this machine, and never ran anything
    ],
)
def test_a_name_without_rows_in_the_period_is_known(context: Context, words: list[str]) -> None:
    before_all = ["start=2026-01-01", "end=2026-01-02", "format=login,used"]
    table = said(context, "usage", "-Pn", *before_all, *words)
    assert all(line in ("|0", "") for line in table.splitlines())


def test_the_ledger_knows_every_name_that_it_has_seen(ledger: Ledger) -> None:
    fill(ledger)
    assert ledger.known_clusters() == {"small"}
    assert {"institute", "seeing", "guests"} <= ledger.known_accounts("small")
    assert {"ana", "ben", "eve"} <= ledger.known_users("small")
    assert ledger.known_accounts("other") == ledger.known_users("other") == set()


def test_levels_are_read_as_they_were_written(ledger: Ledger) -> None:
    """Only changes are written, all of it once an hour, and any moment can be asked for."""
    seen = [
        {(None, "h100"): 8, ("vision", "h100"): 4 if 5 <= step < 20 else 0} for step in range(40)
    ]
    for step, levels in enumerate(seen):
        ledger.record_levels("main", START + step * 200, levels)
    for step, levels in enumerate(seen):
        held: dict[tuple[str | None, str], int] = {}
        for level in ledger.levels("main", START + step * 200, START + step * 200 + 1):
            held[level.account, level.kind] = level.gpus
        assert {key: gpus for key, gpus in held.items() if gpus} == {
            key: gpus for key, gpus in levels.items() if gpus
        }
    assert len(ledger.levels("main", START, NOW)) < 12
    assert changed(seen[0], seen[0]) == {}


def test_help_says_the_words(context: Context) -> None:
    for name in report.commands:
        if name in ("across", "cluster"):  # of now
            continue
        text = said(context, name, "--help")
        assert "start=WHEN" in text
        assert isinstance(report.commands[name], click.Command)
