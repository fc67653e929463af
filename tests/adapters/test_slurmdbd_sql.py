"""slurmdbd's tables give exactly the runs that sacct gives, in each of the three schemas.

tests/data/slurmdbd/VERSION.sql is what a real slurmdbd of that version keeps, VERSION.sacct what
its own sacct printed at that moment: requeued, suspended, array, het and cancelled jobs, and rows
as accidents make them (an end before the start, no association, an unknown QOS, ...).
"""

from dataclasses import replace
from pathlib import Path

import pymysql
import pytest

from slurm_budget.errors import BadInput, SlurmUnreachable
from slurm_budget.slurm import sacct, slurmdbd_sql
from slurm_budget.slurm.command import Commands
from slurm_budget.slurm.rows import BadRow
from slurm_budget.state.jobs import Run

from .conftest import ROOT, Server

DATA = ROOT / "tests" / "data" / "slurmdbd"
VERSIONS = sorted(file.stem for file in DATA.glob("*.sql"))
EVER = 4 * 10**9
pytestmark = pytest.mark.mariadb


@pytest.fixture
def load(mariadb: Server):  # type: ignore[no-untyped-def]
    def loaded(version: str) -> slurmdbd_sql.Database:
        made = mariadb.database()
        name = made.url.rpartition("/")[2]
        with mariadb.admin() as link, link.cursor() as cursor:
            cursor.execute(f"USE {name}")
            cursor.execute("SET sql_mode = ''")
            for line in (DATA / f"{version}.sql").read_text().splitlines():
                if not line.startswith("--"):
                    cursor.execute(line.rstrip(";"))
        assert made.password_file is not None
        password = made.password_file.read_text().strip()
        return slurmdbd_sql.Database("127.0.0.1", mariadb.port, "sbudget", password, name)

    return loaded


def by_key(found: list[Run | BadRow]) -> dict[tuple[int, int], Run | BadRow]:
    out: dict[tuple[int, int], Run | BadRow] = {}
    for row in found:
        assert isinstance(row, Run), row
        out[row.job_id, row.start] = row
    assert len(out) == len(found)
    return out


def test_all_three_schemas_are_there() -> None:
    assert VERSIONS == ["22.05", "24.11", "26.05"]


@pytest.mark.parametrize("version", VERSIONS)
def test_the_same_runs_as_sacct(load, version: str) -> None:  # type: ignore[no-untyped-def]
    lines = (DATA / f"{version}.sacct").read_text().splitlines(keepends=True)
    columns = [name for name in sacct.FIELDS if name not in ("Eligible", "TimelimitRaw")]
    told = by_key(list(sacct.Reader(columns, sacct.SEPARATOR).read(sacct.joined(lines))))
    found = by_key(list(slurmdbd_sql.runs(load(version), "ledg", 0, EVER)))
    runs = [run for run in found.values() if isinstance(run, Run)]
    assert all(run.eligible and run.submit <= run.eligible for run in runs)
    assert {run.time_limit for run in runs} >= {604800}
    # those two were not recorded from sacct; the cluster's tests compare them
    bare = [replace(run, eligible=None, time_limit=None) for run in runs]
    assert by_key(list(bare)) == told
    assert len(told) == 35
    states = {row.state for row in told.values() if isinstance(row, Run)}
    assert {"REQUEUED", "PREEMPTED", "RESIZING", "OUT_OF_MEMORY", "RUNNING"} <= states


def test_only_what_was_there_in_the_time_asked_for(load) -> None:  # type: ignore[no-untyped-def]
    database = load("22.05")
    runs = list(slurmdbd_sql.runs(database, "ledg", 0, EVER))
    middle = sorted(run.start for run in runs if isinstance(run, Run))[len(runs) // 2] + 10
    for run in slurmdbd_sql.runs(database, "ledg", middle, EVER):
        assert isinstance(run, Run)
        assert run.end is None or run.end >= middle


def test_what_is_not_there_is_said(load, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    database = load("22.05")
    with pytest.raises(SlurmUnreachable, match="nowhere_job_table is not there"):
        list(slurmdbd_sql.runs(database, "nowhere", 0, EVER))
    with pytest.raises(BadInput, match="not a cluster's name"):
        list(slurmdbd_sql.runs(database, "a`; DROP", 0, EVER))
    link = pymysql.connect(
        host=database.host, port=database.port, user=database.user, password=database.password,
        database=database.name,
    )  # fmt: skip
    with link, link.cursor() as cursor:
        cursor.execute("ALTER TABLE ledg_job_table CHANGE time_end time_done BIGINT UNSIGNED")
    with pytest.raises(SlurmUnreachable, match="has no column time_end"):
        list(slurmdbd_sql.runs(database, "ledg", 0, EVER))


def test_a_database_that_does_not_answer(tmp_path: Path) -> None:
    database = slurmdbd_sql.Database("127.0.0.1", 1, "slurm", "geheim", "slurm_acct_db")
    with pytest.raises(SlurmUnreachable) as caught:
        list(slurmdbd_sql.runs(database, "main", 0, EVER))
    assert "geheim" not in str(caught.value)


def test_where_the_database_is(tmp_path: Path) -> None:
    conf = tmp_path / "slurmdbd.conf"
    with pytest.raises(SlurmUnreachable, match="cannot be found"):
        slurmdbd_sql.Database.from_slurm(Commands(conf=tmp_path / "slurm.conf"))
    conf.write_text("# a note\nStorageHost=db1\nstoragepass = geheim # secret\nStoragePort=3307\n")
    conf.chmod(0o600)
    found = slurmdbd_sql.Database.from_slurm(Commands(conf=tmp_path / "slurm.conf"))
    assert found == slurmdbd_sql.Database("db1", 3307, "slurm", "geheim", "slurm_acct_db")
    assert "geheim" not in str(found)
