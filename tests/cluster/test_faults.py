"""A sweep beside things that fail: it acts on nothing or says where it stopped, the next one goes
on, nothing is lost and nothing is done twice.

Untested: slurmctld that answers wrongly; two hosts.
"""

import itertools
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from disturb import FUNDED, changed, disturbed, frozen, requeued, state_of, vision_runs
from playground import ROOT, Playground
from story import ANA, BEN, CLEO
from told import by_ledger, by_slurm, sweep_until_known

from slurm_budget.ledger.store import Ledger

QUICK = "3s"
LONG_LEASE = "30s"
"""A beat with which a sweep's lease outlasts what happens in its middle here."""


def swept_until_it_runs(site: Playground, owed: int) -> None:
    def runs() -> bool:
        site.sbudget("sweep")
        return site.state(owed) in ("RUNNING", "COMPLETED")

    site.wait("the owed job runs", runs)


def test_a_fault_before_acting_stops_all_acting(site: Playground) -> None:
    """A run could make way at each of these sweeps, as the last one shows."""
    quick = changed(site, timeout=QUICK)
    victims = vision_runs(site)
    owed, _ = site.sbatch(BEN, "-Jgang", *FUNDED, "5")
    site.wait("a run could make way", lambda: "would requeue" in dry(site))
    before = site.snapshot.read_bytes()

    with frozen(site, "slurmctld"):
        done = site.sbudget("sweep", code=6, env=quick)
    assert f"acted on nothing: scontrol did not answer within {QUICK[0]} s" in done.err

    with closing(sqlite3.connect(site.ledger, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        done = disturbed(site, "patience", "1")
    assert done.code == 7
    assert "acted on nothing: the ledger is locked by another program" in done.err
    assert site.snapshot.read_bytes() == before

    done = disturbed(site, "clock", "-3600")
    assert done.code == 0
    assert "acted on nothing: the clock is 3" in done.out
    assert requeued(site, victims) == []
    assert {site.state(job) for job in victims} == {"RUNNING"}

    # the clock that was behind is noted, and holds nobody up whose clock is right
    swept_until_it_runs(site, owed)
    assert len(requeued(site, victims)) == 1


def dry(site: Playground) -> str:
    return site.sbudget("sweep", "--dry-run").out


def test_slurmctld_stopped_in_the_middle_of_acting(site: Playground) -> None:
    quick = changed(site, timeout=QUICK, beat=LONG_LEASE)
    victims = vision_runs(site)
    owed, _ = site.sbatch(BEN, "-Jgang", "--nodes=2", *FUNDED, "5")

    said: list[str] = []

    def cut_short(step: str, command: str) -> None:
        def reached() -> bool:
            done = disturbed(site, step, command, env=quick)
            said.append(str(done))
            assert done.code in (0, 3), "\n".join(said)
            if done.code:
                assert "acted no further: " in done.out
                assert "mend: " in done.err
            return done.code == 3

        site.wait(f"a sweep cut short {step}", reached)

    stop = f"{ROOT}/scripts/cluster stop slurmctld --name {site.name}"
    cut_short("after-signal", stop)
    site.cluster("start", "slurmctld")
    pid = state_of(site)["procs"]["slurmctld"]["pid"]  # type: ignore[index]
    try:
        # what it is asked now lies there until it goes on, and is done then
        cut_short("requeued", f"kill -STOP {pid}")
    finally:
        subprocess.run(["kill", "-CONT", str(pid)], check=True)
    swept_until_it_runs(site, owed)
    assert len(set(requeued(site, victims))) == len(requeued(site, victims)) == 2


@pytest.mark.parametrize("daemon", ["slurmdbd", "mariadb"])
def test_jobs_that_start_and_end_while_the_accounting_is_away(
    site: Playground, daemon: str
) -> None:
    quick = changed(site, timeout=QUICK)
    short = ("--gres=gpu:2", "--qos=funded", "--comment=min-runtime=2s")
    across, _ = site.sbatch(ANA, *short, "12")
    site.wait("it runs", lambda: site.state(across) == "RUNNING")
    site.cluster("stop", daemon)
    done = site.sbudget("sweep", code=6, env=quick)
    assert "acted on nothing" in done.err
    inside = [site.sbatch(BEN, *short, "1")[0], site.sbatch(CLEO, "--gres=gpu:1", "1")[0]]
    begun, _ = site.sbatch(BEN, *short, "20")
    ended = ("COMPLETED", "GONE")
    jobs = [*inside, across]
    site.wait("they end", lambda: all(site.state(job) in ended for job in jobs))
    assert site.state(begun) == "RUNNING"
    assert site.sbudget("sweep", code=6, env=quick).out == ""
    site.cluster("start", daemon)
    site.wait("the accounting knows", lambda: site.last(begun) == "COMPLETED")
    sweep_until_known(site, *jobs, begun)
    assert len(by_slurm(site, *jobs, begun)) == 4, "each start once"


@pytest.fixture
def in_mariadb(site: Playground) -> dict[str, str]:
    """The environment for a ledger in MariaDB, with the budgets of the other one."""
    socket = site.folder / "run" / "mysql.socket"
    password = site.site / "password"
    password.touch(0o600)
    password.write_text("open sesame\n")
    sql = (
        "CREATE DATABASE sbudget CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;"
        "CREATE USER sbudget@'127.0.0.1' IDENTIFIED BY 'open sesame';"
        "GRANT ALL ON sbudget.* TO sbudget@'127.0.0.1'"
    )
    site.slurm("mariadb", "--no-defaults", f"--socket={socket}", "-u", "root", "-e", sql)
    port = state_of(site)["ports"]["mariadb"]
    env = changed(
        site,
        url=f"mariadb+pymysql://sbudget@127.0.0.1:{port}/sbudget",
        password_file=str(password),
        timeout=QUICK,
    )
    site.sbudget("ledger", "init", env=env)
    site.sbudget("budget", "load", str(site.site / "budgets.yaml"), "-m", "for it", env=env)
    return env


@pytest.mark.requeued_by_hand  # for the law looks into the other ledger
def test_a_ledger_in_mariadb_that_goes_away_in_the_middle(
    site: Playground, in_mariadb: dict[str, str]
) -> None:
    victims = vision_runs(site)
    owed, _ = site.sbatch(BEN, "-Jgang", *FUNDED, "5")
    stop = f"{ROOT}/scripts/cluster stop mariadb --name {site.name}"

    def stopped() -> bool:
        done = disturbed(site, "after-signal", stop, env=in_mariadb)
        # 3: a busy machine's scancel took longer than the 3 s that this test gives Slurm
        assert done.code in (0, 3, 7), str(done)
        if done.code == 7:
            # it knows what it did, and does not claim to have done nothing
            assert "acted on nothing" not in done.err
            assert "signalled job" in done.err
            assert "then failed: " in done.err
        return done.code == 7

    site.wait("it stops after a signal", stopped)
    done = site.sbudget("sweep", code=7, env=in_mariadb)
    assert "acted on nothing: the connection to the ledger's database was lost" in done.err
    assert requeued_in_queue(site, victims) == 0
    site.cluster("start", "mariadb")

    def runs() -> bool:
        site.sbudget("sweep", env=in_mariadb, code=None)
        return site.state(owed) in ("RUNNING", "COMPLETED")

    site.wait("the owed job runs", runs)
    site.wait("the accounting is back", lambda: len(requeued(site, victims)) == 1)


def requeued_in_queue(site: Playground, jobs: list[int]) -> int:
    return sum(site.job(job)["RestartCnt"] != "0" for job in jobs)


@pytest.fixture
def small_disk(site: Playground) -> Iterator[Path]:
    folder = site.site / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k,mode=0755", "tmpfs", str(folder)]
    if subprocess.run(mount, check=False).returncode:
        pytest.skip("no file system can be mounted here")
    yield folder
    subprocess.run(["umount", folder], check=True)
    folder.rmdir()


def test_with_a_full_disk_it_acts_and_says_that_the_snapshot_is_old(
    site: Playground, small_disk: Path
) -> None:
    env = changed(site, path=str(small_disk / "snapshot"), grace="0s")
    site.sbudget("sweep", env=env)
    victims = vision_runs(site)
    owed, _ = site.sbatch(BEN, "-Jgang", *FUNDED, "5")
    before = (small_disk / "snapshot").read_bytes()
    filler = small_disk / "filler"
    with filler.open("wb", buffering=0) as file, pytest.raises(OSError, match="No space left"):
        file.writelines(itertools.repeat(b"x" * 4096))

    def acted() -> bool:
        done = site.sbudget("sweep", code=3, env=env)
        assert "the snapshot stays as it was: cannot be written: No space left" in done.out
        assert f"{small_disk / 'snapshot'}: cannot be written" in done.err
        return "requeued job" in done.out

    site.wait("it acts", acted)
    assert (small_disk / "snapshot").read_bytes() == before
    assert {file.name for file in small_disk.iterdir()} == {"snapshot", "snapshot.told", "filler"}
    site.wait("the owed job runs", lambda: site.state(owed) in ("RUNNING", "COMPLETED"))
    filler.unlink()
    site.sbudget("sweep", env=env)
    assert (small_disk / "snapshot").read_bytes() != before
    assert len(requeued(site, victims)) == 1


@pytest.mark.requeued_by_hand
def test_runs_that_end_between_deciding_and_acting_are_left(site: Playground) -> None:
    """Of three runs that shall make way one is cancelled, one requeued by hand, one ends.

    Slurm 22.05 says nothing to a requeue that came too late; the sweep behind it sees."""
    env = changed(site, grace="0s", beat=LONG_LEASE)
    end = site.home(ANA) / "end"
    wait = f"until [ -e {end} ]; do sleep 0.2; done"
    jobs = [site.sbatch(ANA, "-Jtrain", *FUNDED, command=wait)[0] for _ in range(3)]
    stays, _ = site.sbatch(BEN, "-Jstay", *FUNDED, "300")
    site.wait("all run", lambda: all(site.state(job) == "RUNNING" for job in [*jobs, stays]))
    site.sbatch(BEN, "-Jgang", "--nodes=3", *FUNDED, "5")
    cancelled, again, ends = jobs
    meanwhile = (
        f"scancel {cancelled}; scontrol requeue {again}; touch {end};"
        f" while squeue -h -t R -j {','.join(map(str, jobs))} | grep -q .; do sleep 0.1; done"
    )

    def decided() -> bool:
        assert disturbed(site, "planned", meanwhile, env=env).code == 0
        return end.exists()

    site.wait("a sweep that decides", decided)
    gone = [cancelled, ends]
    site.wait("they end", lambda: not {site.state(job) for job in gone} & {"RUNNING", "COMPLETING"})

    def back() -> bool:
        site.sbudget("sweep")
        return site.last(again) == "COMPLETED"

    site.wait("the requeued one comes back", back)
    with Ledger.open(f"sqlite:///{site.ledger}") as ledger:
        assert ledger.open_intents(site.name) == []
    assert [row[1].split()[0] for row in site.rows(cancelled)] == ["CANCELLED"]
    assert [row[1] for row in site.rows(ends)] == ["COMPLETED"]
    assert requeued(site, jobs) == [again]
    end.unlink()


def sql(site: Playground, text: str) -> str:
    """What slurmdbd's own database answers."""
    socket = site.folder / "run" / "mysql.socket"
    client = ("mariadb", "--no-defaults", f"--socket={socket}", "-u", "root")
    return site.slurm(*client, "-N", "-e", text)


def accounting(site: Playground) -> str:
    """The name of slurmdbd's database."""
    return sql(
        site,
        "SELECT table_schema FROM information_schema.tables"
        f" WHERE table_name = '{site.name}_job_table'",
    ).strip()


def test_a_run_whose_end_the_accounting_lost_ends_with_its_job(site: Playground) -> None:
    """It does not count on until slurmctld forgets the job; a true end that comes later stands."""
    job, _ = site.sbatch(ANA, *FUNDED, "60")
    site.wait("it runs", lambda: site.last(job) == "RUNNING")

    def known() -> bool:
        site.sbudget("sweep")
        return [row[2:4] for row in by_ledger(site, job)] == [(0, "RUNNING")]

    site.wait("the ledger has it without an end", known)
    site.slurm("scancel", str(job))
    site.wait("its end is told", lambda: bool(by_slurm(site, job)))
    site.wait("it has let go of its GPUs", lambda: site.state(job) == "CANCELLED")
    ((_, start, end, _, _),) = by_slurm(site, job)
    row = f"{accounting(site)}.{site.name}_job_table"
    sql(site, f"UPDATE {row} SET time_end = 0, state = 1 WHERE id_job = {job}")
    assert by_slurm(site, job) == [], "the accounting believes that it runs"
    site.sbudget("sweep")
    assert [r[:4] for r in by_ledger(site, job)] == [(job, start, end, "CANCELLED")]
    sql(site, f"UPDATE {row} SET time_end = {end - 1}, state = 4 WHERE id_job = {job}")
    site.sbudget("sweep")
    assert [r[:4] for r in by_ledger(site, job)] == [(job, start, end - 1, "CANCELLED")]


def test_rows_of_another_cluster_and_of_ids_that_wrapped_change_nothing(site: Playground) -> None:
    """Both have the id of a job that runs; neither ever ended."""
    job, _ = site.sbatch(ANA, *FUNDED, "60")
    site.wait("it runs", lambda: site.last(job) == "RUNNING")
    site.sbudget("sweep")
    site.sbudget("ledger", "rebuild")
    runs = by_ledger(site, job)
    database = accounting(site)
    mine, other = (f"{database}.{name}_job_table" for name in (site.name, "other"))
    site.slurm("sacctmgr", "-i", "add", "cluster", "other")
    try:
        sql(site, f"INSERT INTO {other} SELECT * FROM {mine} WHERE id_job = {job}")
        sql(site, f"UPDATE {other} SET time_start = time_start - 100000, time_end = 0")
        sql(
            site,
            f"CREATE TEMPORARY TABLE {database}.old AS SELECT * FROM {mine} WHERE id_job = {job};"
            f" UPDATE {database}.old SET job_db_inx = 99999999, time_end = 0,"
            "  time_submit = time_submit - 300000000, time_start = time_start - 300000000,"
            "  time_eligible = time_eligible - 300000000;"
            f" INSERT INTO {mine} SELECT * FROM {database}.old",
        )
        assert len(site.slurm("sacct", "-a", "-n", "-P", "-X", "-D", "-j", str(job), "-S",
                              "2000-01-01").splitlines()) == 2, "the old row is seen"  # fmt: skip
        said = site.sbudget("sweep").out
        assert "left job" not in said
        site.sbudget("ledger", "rebuild")
        assert by_ledger(site, job) == runs
    finally:
        sql(site, f"DELETE FROM {mine} WHERE job_db_inx = 99999999; DELETE FROM {other}")
        site.slurm("sacctmgr", "-i", "delete", "cluster", "other", code=None)
