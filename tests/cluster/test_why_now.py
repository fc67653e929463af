"""`sbudget why`, `balance`, `fit`, `top` and `metrics` on a real Slurm.

Situations, all of jobs that Slurm really has:

    runs     protected; past its protection; on a node that drains; preemptible; in an array;
             that cannot be requeued; without a GPU; warned by the sweeper
    waits    for GPUs that protected runs hold; for GPUs that the next sweep frees; behind a higher
             priority; preemptible; held by its user; held by an admin; for another job; for a time;
             at a limit of its QOS; at a limit of its association; for a node that is drained;
             without budget; larger than its budget; as part of a het job
    was      requeued by the sweeper for somebody
    is       unknown; no job id

test_why_past.py has what ended or was stopped otherwise.

Untested: interactive jobs, reservations, federations.
"""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from asking import minimum, why
from playground import Playground
from prometheus_client.parser import text_string_to_metric_families
from story import ANA, BEN, CLEO, tidy

QOS = "funded-robotics"
Jobs = dict[str, int]


@pytest.fixture(scope="module")
def busy(playground: Playground) -> Iterator[tuple[Playground, Jobs]]:
    """A full cluster: two nodes protected, one past its protection, one shared by small runs."""
    site = playground
    tidy(site)
    limits = [("sacctmgr", "-i", "modify", *of, "set") for of in (("user", CLEO), ("qos", QOS))]
    try:
        for limit in limits:
            site.slurm(*limit, "grpjobs=0")
        yield site, fill(site)
    finally:
        site.slurm("scontrol", "update", "nodename=n4", "state=resume", code=None)
        for limit in limits:
            site.slurm(*limit, "grpjobs=-1")
        tidy(site)
        site.sbudget("sweep")


def fill(site: Playground) -> Jobs:
    """The jobs by what they are for, when Slurm has told its reasons."""
    site.sbudget("sweep")

    def sbatch(user: str, *options: str) -> int:
        return site.sbatch(user, *options, command="sleep 300")[0]

    runs = {
        "protected": sbatch(ANA, "-N2", "--gres=gpu:8", *minimum("5min")),
        "past": sbatch(ANA, "--gres=gpu:8", *minimum("1s")),
        "final": sbatch(ANA, "--gres=gpu:6", *minimum("5min"), "--no-requeue", "--time=5"),
        "array": sbatch(ANA, "--gres=gpu:1", "--array=0-1"),
        "cpu": sbatch(ANA, "-c1"),
    }
    site.wait("a full cluster", lambda: all(site.state(j) == "RUNNING" for j in runs.values()))
    site.wait("a protection is over", lambda: "protection ended" in why(site, runs["past"]))
    waits = {
        "owed": sbatch(BEN, "--gres=gpu:8", *minimum("10s")),
        "whole": sbatch(BEN, "-N4", "--gres=gpu:8", *minimum("10s"), "--nice=1000"),
        "free": sbatch(BEN, "--gres=gpu:8"),
        "held": sbatch(ANA, "--gres=gpu:1", "--hold"),
        "frozen": sbatch(ANA, "--gres=gpu:1"),
        "after": sbatch(ANA, "--gres=gpu:1", f"--dependency=afterok:{runs['protected']}"),
        "later": sbatch(ANA, "--gres=gpu:1", "--begin=now+1hour"),
        "qos": sbatch(CLEO, "--gres=gpu:8", *minimum("20s")),
        "assoc": sbatch(CLEO, "--gres=gpu:1"),
        "spent": sbatch(CLEO, "--gres=gpu:8", *minimum("1min")),
        "never": sbatch(CLEO, "--gres=gpu:8", *minimum("2min")),
        "het": het(site),
    }
    site.slurm("scontrol", "hold", str(waits["frozen"]))
    site.slurm("scontrol", "update", "nodename=n4", "state=drain", "reason=test")
    waits["node"] = sbatch(ANA, "--gres=gpu:1", "--nodelist=n4")
    site.wait(
        "Slurm's reasons",
        lambda: all(site.job(j)["Reason"] not in ("None", "") for j in waits.values()),
    )
    quiet = site.site / "quiet.toml"
    quiet.write_text(site.config.read_text().replace("[sweep]", '[sweep]\nrequeue = "never"'))

    def accounted() -> bool:
        """Slurm's accounting may hear of a run late. This sweep records and requeues nothing."""
        site.sbudget("sweep", env={"SBUDGET_CONFIG": str(quiet)})
        return "next sweep would requeue job" in why(site, waits["owed"])

    site.wait("the ledger knows who has used what", accounted)
    return runs | waits


def het(site: Playground) -> int:
    parts = ("--hold", "--gres=gpu:1", ":", "--gres=gpu:2")
    done = site.as_user(ANA, "sbatch", "--output=/dev/null", *parts, "--wrap=true")
    return int(done.out.split()[-1])


SITUATIONS = {
    "runs protected": ("{protected}", "It is funded: its protection fits", "is protected until"),
    "runs past its protection and is the next to go": (
        "{past}", "Its protection ended", "The next sweep would warn it and, after its grace,",
        "language is owed 8 GPUs for job {owed}",
    ),
    "cannot be requeued": ("{final}", "is protected until", "since it cannot be requeued"),
    "runs preemptible in an array": (
        "{array}_0", "Job {array}_0 of", "It is preemptible: nothing was asked for", "no budget",
        "requeue it: node n4 is draining",
    ),
    "an array as a whole": ("{array}", "Of array {array}, 2 tasks run and 0 wait"),
    "has no GPU": ("{cpu}", "It has no GPU, so budgets and the sweeper leave it alone"),
    "waits for GPUs that the next sweep frees": (
        "{owed}", "once it starts, it is protected for 10 s", "Of 32 GPUs in partition gpu:",
        "16 protected (vision 16, the first until", "8 in runs past their protection (vision 8)",
        "The next sweep would requeue job {past} for it",
    ),
    "waits for what protected runs hold": (
        "{whole}", "for 32 GPUs on 4 nodes", "would requeue nobody for it: needs 4 nodes x 8",
    ),
    "waits behind a higher priority": ("{whole}", "Slurm's reason is Priority: jobs with a higher"),
    "waits preemptible": ("{free}", "Preemptible jobs run on idle GPUs; nobody makes way for them"),
    "held by its user": ("{held}", "Slurm's reason is JobHeldUser: its user holds it"),
    "held by an admin": ("{frozen}", "Slurm's reason is JobHeldAdmin: an administrator holds it"),
    "depends": ("{after}", "Slurm's reason is Dependency: a job that it depends on", "{protected}"),
    "begins later": (
        "{later}", "Slurm's reason is BeginTime: it may not start before", "It may start from",
    ),
    "limit of its QOS": (
        "{qos}", "Slurm's reason is QOSGrpJobsLimit: a limit of its QOS is reached: jobs",
    ),
    "limit of its association": (
        "{assoc}", "Slurm's reason is AssocGrpJobsLimit: a limit of its account or user is reached",
    ),
    "no budget left": (
        "{spent}", "It is preemptible though it asked to be funded: a budget has too little left",
        "Robotics's budget has", "this job needs 0.134",
    ),
    "larger than its budget": (
        "{never}", "its protection costs more than a whole budget", "it will never be funded so",
    ),
    "part of a het job": ("{het}+1", "Job {het}+1 of", "for 2 GPUs", "JobHeldUser"),
    "needs a node that is drained": ("{node}", "ReqNodeNotAvail", "down, drained, reserved"),
}  # fmt: skip


@pytest.mark.parametrize("name", SITUATIONS)
def test_why_is_right_for_a_job_that(busy: tuple[Playground, Jobs], name: str) -> None:
    site, jobs = busy
    job, *phrases = (text.format(**jobs) for text in SITUATIONS[name])
    said = why(site, job)
    assert [phrase for phrase in phrases if phrase not in said] == [], said


def test_unknown_jobs_and_no_ids(busy: tuple[Playground, Jobs]) -> None:
    site, _ = busy
    assert "Job 99999 is unknown" in why(site, 99999, code=1)
    assert "is not a Slurm job id" in site.sbudget("why", "soon", code=2).err


def as_researcher(site: Playground, user: str, *argv: str) -> str:
    program = Path(sys.executable).parent / "sbudget"
    done = site.as_user(user, "env", f"SBUDGET_CONFIG={site.config}", str(program), *argv)
    assert done.code == 0, done
    return done.out + done.err


def test_a_researcher_without_the_ledger_gets_answers_and_is_told_what_is_missing(
    busy: tuple[Playground, Jobs],
) -> None:
    site, jobs = busy
    said = as_researcher(site, BEN, "why", str(jobs["owed"]))
    assert "16 protected (vision 16" in said
    assert "not read" not in said, "the last sweep has told all of it"
    said = as_researcher(site, CLEO, "balance")
    assert "(not read: ledger: this user may not read it" in said
    assert re.search(r"robotics: [0-9.]+ of 0\.166 GPU-hours are left for new jobs", said)
    said = as_researcher(site, ANA, "fit", "8x10s")
    assert "Funded; protected for 10 s from vision's budget" in said
    assert "It would wait: it needs 1 node x 8 GPUs" in said


def test_balance_says_what_runs_and_what_comes_back(busy: tuple[Playground, Jobs]) -> None:
    site, jobs = busy
    said = site.sbudget("balance", "vision").out
    assert f"job {jobs['protected']} of {ANA}: 16 GPUs until" in said
    assert "Past their protection, at no charge, run 8 GPUs" in said
    document = json.loads(site.sbudget("balance", "vision", "--json").out)
    (vision,) = document["accounts"]
    assert [run["gpus"] for run in vision["protected"]] == [16, 6]
    assert vision["charged"] is not None
    assert document["unread"] == []
    assert "root is in no account" in site.sbudget("balance", code=2).err


def test_fit_says_where_and_who_would_make_way(busy: tuple[Playground, Jobs]) -> None:
    site, jobs = busy
    said = site.sbudget("fit", "8x10s", "-A", "language", "--user", BEN).out
    node = site.job(jobs["past"])["NodeList"]
    assert f"It would start on {node} after the sweeper has requeued" in said
    assert f"(job {jobs['past']})" in said
    said = site.sbudget("fit", "2x8x8h", "-A", "vision").out
    assert "it will never be funded so" in said


def test_top_and_metrics_show_the_same_cluster(busy: tuple[Playground, Jobs]) -> None:
    site, _ = busy
    shown = site.sbudget("top", "--once").out
    assert re.search(r"^  vision +2\.66 .* 30 \+ 2 ", shown, re.MULTILINE), shown
    assert "swept:" in shown
    families = list(text_string_to_metric_families(site.sbudget("metrics").out))
    values = {
        (sample.name, *sample.labels.values()): sample.value
        for family in families
        for sample in family.samples
    }
    assert values["slurm_budget_running_gpus", "vision", "funded"] == 30
    assert values["slurm_budget_up", "slurm"] == 1
    assert values["slurm_budget_owed_gpus", "language"] >= 8


def test_requeues_are_told_with_the_one_they_were_for(busy: tuple[Playground, Jobs]) -> None:
    """Last in this file's cluster, since it empties a node."""
    site, jobs = busy
    past, owed = jobs["past"], jobs["owed"]
    site.sbudget("sweep")
    said = why(site, past)
    assert "It was warned, and is requeued from" in said
    assert f"language is owed 8 GPUs for job {owed}" in said
    assert f"Job {past} makes way for it" in why(site, owed)

    def told() -> bool:
        site.sbudget("sweep")
        return "was requeued by the sweeper" in why(site, past)

    site.wait("it is requeued and the accounting has it", told)
    assert f"language is owed 8 GPUs for job {owed}" in why(site, past)
    assert f"language is owed 8 GPUs for job {owed}" in as_researcher(site, ANA, "why", str(past))
