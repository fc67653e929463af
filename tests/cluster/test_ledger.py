"""The ledger beside a real slurmdbd."""

import json
import time
from contextlib import suppress

import pytest
from playground import Failed, Playground
from story import ANA, BEN, CLEO
from told import sweep_until_known

from slurm_budget.slurm import sacct, slurmdbd_sql
from slurm_budget.slurm.command import Commands
from slurm_budget.state.jobs import Run


def figures(site: Playground) -> list[list[str]]:
    """Account, funded, preemptible and charged GPU-milliseconds: they end with the runs."""
    rows = json.loads(site.sbudget("report", "budgets", "--json").out)["rows"]
    return [[r["account"], r["funded"], r["preemptible"], r["charge"]] for r in rows]


def test_rebuild_leaves_every_figure_as_it_was(site: Playground) -> None:
    jobs = [
        site.sbatch(ANA, "--gres=gpu:8", "--qos=funded", "--comment=min-runtime=2s", "4")[0],
        site.sbatch(BEN, "--gres=gpu:8", "--qos=funded", "2")[0],
        site.sbatch(CLEO, "--gres=gpu:4", "2")[0],
    ]
    site.wait("all finish", lambda: all(site.last(job) == "COMPLETED" for job in jobs))
    sweep_until_known(site, *jobs)
    before = figures(site)
    assert any(row[1] for row in before)
    site.sbudget("ledger", "rebuild")
    # the window slides: what left it since is gone from both, what is in it is the same
    after = figures(site)
    assert [row[0] for row in after] == [row[0] for row in before]
    for old, new in zip(before, after, strict=True):
        assert all(b <= a for a, b in zip(old[1:], new[1:], strict=True)), (old, new)
    site.sbudget("ledger", "check")


def test_the_second_of_two_changes_from_one_base_is_refused(site: Playground) -> None:
    first = site.sbudget("budget", "log").out
    site.sbudget("budget", "set", "vision", "--gpus", "15", "-m", "first")
    base = site.sbudget("budget", "log", code=0).out
    assert "first" in base
    assert base != first
    done = site.sbudget(
        "budget", "set", "vision", "--gpus", "14", "-m", "second", "--base", "1", code=4
    )
    assert "16 GPUs" in done.err
    assert "15 GPUs" in done.err
    site.sbudget("budget", "set", "vision", "--gpus", "16", "-m", "as it was")
    assert site.sbudget("plan", "--exit-code").code == 0


@pytest.mark.requeued_by_hand
def test_slurmdbds_own_tables_give_exactly_the_runs_of_sacct(site: Playground) -> None:
    """Completed, cancelled, requeued, timed-out, array and running jobs; each start its own run."""
    gpu = ("--gres=gpu:2", "--qos=funded", "--comment=min-runtime=2s")
    done, _ = site.sbatch(ANA, *gpu, "1")
    array, _ = site.sbatch(ANA, *gpu, "--array=0-2", "1")
    fails, _ = site.sbatch(BEN, "--gres=gpu:1", command="exit 3")
    again, _ = site.sbatch(BEN, *gpu, "90")
    pending, _ = site.sbatch(BEN, *gpu, "--hold", "1")
    site.wait("it runs", lambda: site.state(again) == "RUNNING")
    site.slurm("scontrol", "requeue", str(again))
    site.wait("it is requeued", lambda: len(site.rows(again)) == 2)
    site.wait("it runs again", lambda: site.state(again) == "RUNNING", 120)
    site.slurm("scontrol", "suspend", str(again))
    site.slurm("scontrol", "resume", str(again))
    site.wait(
        "the others end",
        lambda: not {site.state(j) for j in (done, array, fails)} & {"PENDING", "RUNNING"},
    )
    commands = Commands(conf=site.conf)
    database = slurmdbd_sql.Database.from_slurm(commands)
    password = next(
        line
        for line in (site.folder / "etc" / "slurmdbd.conf").read_text().splitlines()
        if line.startswith("StoragePass=")
    ).partition("=")[2]
    assert password not in repr(database)
    ends = (int(time.time()) - 3600, int(time.time()) + 10)

    theirs: list[object] = []
    ours: list[object] = []

    def same() -> bool:
        theirs[:] = sorted(sacct.runs(commands, site.name, *ends), key=repr)
        ours[:] = sorted(slurmdbd_sql.runs(database, site.name, *ends), key=repr)
        return ours == theirs

    # slurmctld's last words reach slurmdbd a moment later, perhaps between the two reads
    with suppress(Failed):
        site.wait("both say the same", same, 20)
    assert ours == theirs
    starts = [run.job_id for run in ours if isinstance(run, Run)]
    assert starts.count(again) == 2
    assert pending not in starts
    site.slurm("scancel", str(again))
    # an end that arrives between the sweep and the rebuild would be a changed figure
    site.wait("its end is known", lambda: site.last(again).startswith("CANCELLED"))
    config = site.site / "sql.toml"
    config.write_text(
        site.config.read_text().replace("[slurm]", '[slurm]\nsource = "slurmdbd-sql"')
    )
    sweep_until_known(site, done, again)
    before = figures(site)
    site.sbudget("ledger", "rebuild", env={"SBUDGET_CONFIG": str(config)})
    assert [row[0] for row in figures(site)] == [row[0] for row in before]
