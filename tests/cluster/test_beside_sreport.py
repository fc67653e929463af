"""Reports beside Slurm's own, on the same cluster and the same hours."""

import json
import time

import pytest
from playground import Playground
from story import ANA, BEN, CLEO

from slurm_budget.ledger.store import Ledger
from slurm_budget.text.moments import moment

HOUR = 3600


@pytest.fixture
def ran(site: Playground) -> tuple[int, int]:
    """Some jobs ran and ended, and a sweep saw it: whole hours around them, rolled up."""
    # not earlier: sreport may say nothing of a period that began before the cluster did
    start = int(time.time()) // HOUR * HOUR
    jobs = [
        site.sbatch(ANA, "--gres=gpu:8", "--qos=funded", "--comment=min-runtime=2s", "3")[0],
        site.sbatch(BEN, "--gres=gpu:2", "2")[0],
        site.sbatch(CLEO, "--gres=gpu:1", "1")[0],
    ]
    site.wait("all end", lambda: all(site.last(job) == "COMPLETED" for job in jobs))
    site.wait("the ledger has them", lambda: recorded(site, start, jobs, ended=True))
    return start, int(time.time()) // HOUR * HOUR + HOUR


def recorded(site: Playground, start: int, jobs: list[int], *, ended: bool) -> bool:
    """Whether a sweep has runs of all these jobs: slurmctld tells slurmdbd of starts every 5 s."""
    site.sbudget("sweep")
    with Ledger.open(f"sqlite:///{site.ledger}") as ledger:
        found = ledger.runs_between(site.name, start, int(time.time()) + 1)
        return {run.job_id for run in found if run.end or not ended} >= set(jobs)


def ours(site: Playground, start: int, end: int) -> dict[tuple[str, str], int]:
    rows = json.loads(
        site.sbudget("report", "usage", "--json", f"start={utc(start)}", f"end={utc(end)}").out
    )["rows"]
    return {(row["account"], row["login"]): row["used"] for row in rows}


def utc(at: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at))


def test_usage_is_what_sreport_says_to_the_second(site: Playground, ran: tuple[int, int]) -> None:
    """slurmdbd rolls up an hour when it is over; `sacctmgr rollup` does it when it is asked."""
    start, end = ran
    site.slurm("sacctmgr", "-i", "rollup", utc(start), utc(end))
    text = site.slurm(
        "sreport", "-nP", "-t", "seconds", "--tres=gres/gpu", "cluster",
        "AccountUtilizationByUser", f"start={utc(start)}", f"end={utc(end)}",
        "format=account,login,used",
    )  # fmt: skip
    theirs = {
        (account, login): int(used) * 1000
        for account, login, used in (line.split("|") for line in text.splitlines())
        if account != "root" and int(used)
    }
    assert theirs.get(("vision", ANA), 0) >= 8 * 3 * 1000, text
    assert ours(site, start, end) == theirs


def test_usage_is_what_sacct_says_to_the_second(site: Playground, ran: tuple[int, int]) -> None:
    start, end = ran
    text = site.slurm(
        "sacct", "-a", "-D", "-X", "-nP", "-S", utc(start), "-E", utc(end),
        "-o", "Account,User,ElapsedRaw,AllocTRES",
    )  # fmt: skip
    theirs: dict[tuple[str, str], int] = {}
    for line in text.splitlines():
        account, user, elapsed, tres = line.split("|")
        gpus = [item for item in tres.split(",") if item.startswith("gres/gpu=")]
        if gpus and int(elapsed):
            key = account, user
            used = int(elapsed) * int(gpus[0].partition("=")[2]) * 1000
            theirs[key] = theirs.get(key, 0) + used
    users = {key: used for key, used in ours(site, start, end).items() if key[1]}
    assert users == theirs


def test_moments_are_what_sreport_takes_them_for(site: Playground) -> None:
    """sreport prints the period that it understood, from the nearest hour on; in 26.05 from the
    beginning of the hour."""
    release = int(site.slurm("sreport", "-V").split()[1].partition(".")[0])
    words = (
        *("now-3hours", "now-2days", "now-1week", "now-90", "now-90minutes", "today", "midnight"),
        *("noon", "fika", "teatime", "08:15", "2026-11-01", "2026-11-01T05:00", "11/01", "1101"),
        *("11/01/25", "110125", "11/01-06:00", "12/24"),
    )
    for word in words:
        now = int(time.time())
        text = site.slurm(
            "sreport", "cluster", "utilization", f"start={word}", "end=now", code=None
        )
        found = [line for line in text.splitlines() if line.startswith("Cluster Utilization ")]
        assert found, (word, text)
        mine = moment(word, now)
        # to the nearest minute, and then to the nearest hour
        hour = ((mine + 30) // 60 + (30 if release < 26 else 0)) // 60 * HOUR
        assert found[0].split()[2] == str(hour), (word, found)


def test_what_a_sweep_saw_is_in_the_delivered_share(site: Playground) -> None:
    """A job that waits for GPUs and never starts is demand, and drained nodes are no capacity."""
    began = int(time.time())
    held = [site.sbatch(ANA, "--gres=gpu:8", "--qos=funded", "60")[0] for _ in range(4)]
    site.wait("they run", lambda: all(site.state(job) == "RUNNING" for job in held))
    site.wait("the ledger has them", lambda: recorded(site, began, held, ended=False))
    waits, _ = site.sbatch(BEN, "--gres=gpu:8", "--qos=funded", "--comment=min-runtime=8s", "5")
    site.wait("it waits", lambda: site.job(waits)["Reason"] in ("Resources", "Priority"), 30)
    since = int(time.time())
    site.sbudget("sweep", "--dry-run")
    site.sbudget("sweep")
    site.wait("two seconds pass", lambda: time.time() > since + 3)
    rows = {
        row["account"]: row
        for row in json.loads(
            site.sbudget("report", "delivered", "--json", f"start={utc(since)}").out
        )["rows"]
    }
    assert rows["language"]["deserved"] > 0
    assert rows["language"]["delivered"] < 1
    assert rows["vision"]["got"] > 0
