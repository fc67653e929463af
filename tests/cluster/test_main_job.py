"""The main job on a real Slurm, seen as a user and an admin see it."""

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from disturb import changed
from playground import Playground
from story import ANA, BEN, CLEO

from slurm_budget.core.snapshot import decode
from slurm_budget.core.snapshot_write import encode
from slurm_budget.ledger.store import Ledger

FUNDED = ("--gres=gpu:8", "--qos=funded")


def table(site: Playground, *argv: str) -> dict[str, list[str]]:
    """Rows of a sacctmgr listing by their first field (account, or account/user)."""
    rows = [line.split("|") for line in site.slurm(*argv).splitlines()]
    return {row[0] + (f"/{row[1]}" if row[1] else ""): row[2:] for row in rows}


def test_sync_twice_does_nothing_the_second_time(site: Playground) -> None:
    done = site.sbudget("sync", "--yes")
    assert "nothing" in done.out.lower()
    assert site.sbudget("plan", "--exit-code").code == 0


def test_slurm_shows_the_figures_of_the_budget_file(site: Playground) -> None:
    rows = table(
        site,
        *("sacctmgr", "-nP", "show", "assoc"),
        "format=account,user,parentname,share,qos,defaultqos",
    )
    shares = {name: int(rows[name][1]) for name in ("vision", "language", "robotics")}
    assert shares["vision"] * 15 == shares["language"] * 16
    assert shares["vision"] == 16 * shares["robotics"]
    assert rows["vision"][0] == "institute"
    assert {"funded-vision", "preemptible"} <= set(rows[f"vision/{ANA}"][2].split(","))
    assert rows[f"vision/{ANA}"][3] == "preemptible"
    qos = {
        line.split("|")[0]: line.split("|")[1:]
        for line in site.slurm(
            "sacctmgr", "-nP", "show", "qos", "format=name,grptres,preempt,preemptmode,usagefactor"
        ).splitlines()
    }
    assert qos["funded-vision"][:2] == ["gres/gpu=96", "preemptible"]
    assert qos["funded-robotics"][0] == "gres/gpu=8", "never below one whole node"
    assert qos["preemptible"][2] == "requeue"
    assert float(qos["preemptible"][3]) == 0.1


def test_the_doctor_finds_nothing_to_mend(site: Playground) -> None:
    site.sbudget("sweep")
    done = site.sbudget("doctor")
    assert "ERROR" not in done.out
    assert "JobSubmitPlugins has lua" in done.out


def test_verdicts_stand_in_qos_and_admin_comment(site: Playground) -> None:
    job, said = site.sbatch(ANA, *FUNDED, "--comment=min-runtime=20s", "--hold", "1")
    assert "funded; protected for 20 s from vision's budget" in said
    shown = site.job(job)
    assert shown["QOS"] == "funded-vision"
    assert "sbudget:1:c=funded:a=funded:m=20" in shown["admin_comment"]
    free, said = site.sbatch(ANA, "--gres=gpu:1", "--hold", "1")
    assert site.job(free)["QOS"] == "preemptible"
    assert "preemptible" in said
    minutes, _ = site.sbatch(ANA, *FUNDED, "--time=60", "--time-min=10", "--hold", "1")
    assert "m=600" in site.job(minutes)["admin_comment"]
    assert "TimeMin=N/A" in site.slurm("scontrol", "show", "job", str(minutes))


def test_a_job_beyond_the_budget_is_told_whose_and_runs_preemptible(site: Playground) -> None:
    job, said = site.sbatch(CLEO, *FUNDED, "--comment=min-runtime=2min", "--hold", "1")
    assert "robotics" in said
    assert site.job(job)["QOS"] == "preemptible"


def test_promises_between_snapshots_are_not_made_twice(site: Playground) -> None:
    """robotics has 600 GPU-seconds: two jobs of 240 fit, the third does not, sweep or no sweep."""
    time_ = "--comment=min-runtime=30s"
    jobs = [site.sbatch(CLEO, *FUNDED, time_, "--hold", "--time=60", "1")[0] for _ in range(3)]
    assert [site.job(job)["QOS"] for job in jobs] == [
        "funded-robotics", "funded-robotics", "preemptible",
    ]  # fmt: skip


def _damage_delete(path: Path) -> None:
    path.unlink()


def _damage_random(path: Path) -> None:
    path.write_bytes(os.urandom(4000))


def _damage_cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


def _damage_empty(path: Path) -> None:
    path.write_bytes(b"")


def _damage_directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _shift(seconds: int) -> object:
    def damage(path: Path) -> None:
        old = decode(path.read_text())
        at = int(time.time()) + seconds
        path.write_text(encode(old._replace(observed_at=at, published_at=at)))

    return damage


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(_damage_delete, id="missing"),
        pytest.param(_damage_random, id="random bytes"),
        pytest.param(_damage_cut, id="cut off"),
        pytest.param(_damage_empty, id="empty"),
        pytest.param(_damage_directory, id="a directory"),
        pytest.param(_shift(86400), id="of tomorrow"),
        pytest.param(_shift(-7 * 86400), id="of last week"),
    ],
)
def test_every_submission_is_accepted_whatever_the_snapshot(site: Playground, damage) -> None:  # type: ignore[no-untyped-def]
    try:
        damage(site.snapshot)
        for extra in ((), ("--qos=funded",), ("--qos=funded", "--comment=min-runtime=1h")):
            job, _ = site.sbatch(ANA, "--gres=gpu:1", *extra, "--hold", "1")
            assert site.job(job)["QOS"] == "preemptible"
    finally:
        if site.snapshot.is_dir():
            site.snapshot.rmdir()
        site.sbudget("sweep")


def test_with_slurmctld_stopped_a_sweep_acts_on_nothing(site: Playground) -> None:
    # Slurm's own commands would try for 30 s
    quick = changed(site, timeout="3s")
    before = site.snapshot.read_text()
    site.cluster("stop", "slurmctld")
    done = site.sbudget("sweep", code=6, env=quick)
    assert "acted on nothing" in done.err
    assert site.snapshot.read_text() == before
    for command in ("plan", "doctor"):
        assert site.sbudget(command, code=None, env=quick).code in (1, 6)
    assert "mend:" in site.sbudget("report", "cluster", code=6, env=quick).err


def test_with_slurmdbd_stopped_a_sweep_acts_on_nothing(site: Playground) -> None:
    job, _ = site.sbatch(CLEO, "--gres=gpu:1", "--qos=funded", "--comment=min-runtime=1s", "2")

    def charged() -> int:
        rows = json.loads(site.sbudget("report", "budgets", "--json").out)["rows"]
        (row,) = (row for row in rows if row["account"] == "robotics")
        return int(row["charge"])

    def told() -> bool:
        site.sbudget("sweep")
        return site.last(job) == "COMPLETED" and charged() > 0

    site.wait("its charge", told)
    before = charged()
    site.cluster("stop", "slurmdbd")
    done = site.sbudget("sweep", code=6)
    assert "acted on nothing" in done.err
    assert site.sbudget("plan", code=6).code == 6
    # what was charged ten minutes ago leaves the window meanwhile; this job's is new
    assert 0 < charged() <= before, "unreachable is never zero"


def test_nothing_is_requeued_while_nobody_is_owed(site: Playground) -> None:
    jobs = [site.sbatch(ANA, *FUNDED, "--comment=min-runtime=1s", "8")[0] for _ in range(2)]
    site.wait("both run", lambda: all(site.state(job) == "RUNNING" for job in jobs))

    def swept_to_the_end() -> bool:
        assert "requeued" not in site.sbudget("sweep").out
        return all(site.last(job) == "COMPLETED" for job in jobs)

    site.wait("both finish undisturbed", swept_to_the_end)
    assert [row[1] for row in site.rows(*jobs)] == ["COMPLETED", "COMPLETED"]


def test_protected_runs_are_left_alone_and_the_dry_run_says_why(site: Playground) -> None:
    jobs = [site.sbatch(ANA, *FUNDED, "--comment=min-runtime=30s", "60")[0] for _ in range(4)]
    site.wait("vision runs", lambda: all(site.state(job) == "RUNNING" for job in jobs))
    site.sbatch(BEN, *FUNDED, "--comment=min-runtime=10s", "5")
    done = site.sbudget("sweep", "--dry-run")
    assert f"job {jobs[0]} is left: protected for" in done.out
    assert "would requeue" not in done.out
    assert "requeued" not in site.sbudget("sweep").out


def test_a_pause_stops_acting_but_not_seeing(site: Playground) -> None:
    """The brake lies in the ledger; the snapshot is published all the same."""
    with Ledger.open(f"sqlite:///{site.ledger}") as ledger:
        ledger.set_brake(site.name, paused=True, author="root", reason="repairs", now=1)
    try:
        assert "paused: repairs (root)" in site.sbudget("sweep").out
    finally:
        with Ledger.open(f"sqlite:///{site.ledger}") as ledger:
            ledger.set_brake(site.name, paused=False, author="root", reason="done", now=2)
    assert "paused" not in site.sbudget("sweep").out


def test_a_budget_file_with_faults_changes_nothing(site: Playground, tmp_path: Path) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text(f"cluster: {site.name}\naccounts:\n  x: {{gpus: -1}}\n")
    before = site.sbudget("budget", "export").out
    done = site.sbudget("budget", "load", str(bad), "-m", "x", code=2)
    assert f"{bad}:3:7" in done.err
    assert "below zero" in done.err
    assert site.sbudget("budget", "export").out == before


def test_a_ledger_that_is_none_is_refused(site: Playground, tmp_path: Path) -> None:
    fake = tmp_path / "ledger.db"
    fake.write_text("hello, I am no ledger\n" * 100)
    config = tmp_path / "c.toml"
    config.write_text(site.config.read_text().replace(str(site.ledger), str(fake)))
    done = site.sbudget("sweep", code=7, env={"SBUDGET_CONFIG": str(config)})
    assert str(fake) in done.err


@pytest.fixture
def waiting(site: Playground) -> Iterator[dict[str, str]]:
    """An environment in which jobs that no budget allows are held; the hook knows it by a sweep."""
    waits = site.site / "wait.toml"
    waits.write_text(site.config.read_text().replace("[jobs]", '[jobs]\non_exhausted = "wait"'))
    env = {"SBUDGET_CONFIG": str(waits)}
    try:
        site.sbudget("sweep", env=env)
        yield env
    finally:
        site.sbudget("sweep")


def test_a_job_that_waits_for_budget_is_released_when_it_is_there(
    site: Playground, waiting: dict[str, str]
) -> None:
    # 320 of robotics' 600 GPU-seconds each: both do not fit, one does whatever the first has used
    costs = ("--comment=min-runtime=40s", "--time=2")
    first, _ = site.sbatch(CLEO, *FUNDED, *costs, "60")
    site.wait("the first runs", lambda: site.state(first) == "RUNNING", 30)
    second, said = site.sbatch(CLEO, *FUNDED, *costs, "1")
    assert "robotics" in said
    site.sbudget("sweep", env=waiting)
    site.wait("it is held", lambda: site.job(second)["Reason"].startswith("JobHeld"), 30)
    site.slurm("scancel", str(first))

    def swept_until_done() -> bool:
        site.sbudget("sweep", env=waiting)
        return site.last(second) == "COMPLETED"

    site.wait("it is released and runs", swept_until_done, 30)
    # slurmctld's word: slurmdbd may hear of a short run's end long before its QOS
    assert site.job(second)["QOS"] == "funded-robotics"


def test_a_hold_that_somebody_asked_for_is_not_lifted(
    site: Playground, waiting: dict[str, str]
) -> None:
    """Nor is one that the sweep could not tell from the hook's: that is refused."""
    costs = ("--comment=min-runtime=40s", "--time=2")
    first, _ = site.sbatch(CLEO, *FUNDED, *costs, "60")
    site.wait("the first runs", lambda: site.state(first) == "RUNNING", 30)
    frozen, _ = site.sbatch(CLEO, *FUNDED, *costs, "1")
    # it can start nowhere, so that its user has the time to hold it
    let_go, _ = site.sbatch(CLEO, *FUNDED, *costs, "--begin=now+1hour", "1")
    refused = site.as_user(CLEO, "scontrol", "hold", str(frozen))
    assert refused.code == 1, refused
    assert "violates accounting/QOS policy" in refused.err, refused
    site.slurm("scontrol", "hold", str(frozen))
    assert site.as_user(CLEO, "scontrol", "release", str(let_go)).code == 0
    site.sbudget("sweep", env=waiting)
    assert "w=budget" in site.job(let_go)["admin_comment"]
    assert site.as_user(CLEO, "scontrol", "hold", str(let_go)).code == 0
    site.slurm("scancel", str(first))

    def funded() -> bool:
        site.sbudget("sweep", env=waiting)
        return site.job(frozen)["QOS"] == "funded-robotics"

    site.wait("the budget allows it", funded, 30)
    reasons = [site.job(job)["Reason"] for job in (frozen, let_go)]
    assert reasons == ["JobHeldAdmin", "JobHeldUser"]
