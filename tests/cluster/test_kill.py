"""kill -9 of a sweep at each step of acting: the next one finishes, nothing is done twice."""

from pathlib import Path

from disturb import FUNDED, changed, disturbed, requeued, vision_runs
from playground import Playground
from story import ANA, BEN, CLEO

STEPS = [
    *("planning", "planned", "between-signals", "after-signal", "signalled"),
    *("signalled", "requeued", "after-requeue", "done"),
]
"""The second run is signalled after the first; both are requeued when both were signalled."""


def killed(site: Playground, step: str, env: dict[str, str]) -> bool:
    done = disturbed(site, step, env=env)
    assert done.code in (0, -9), str(done)
    return done.code == -9


def steps(log: Path) -> list[int]:
    """Those that a run of docs/examples/checkpoint.sh has done, over all its starts."""
    lines = log.read_text().splitlines()
    return [int(line.split()[1]) for line in lines if line.startswith("step ")]


def test_a_gang_gets_its_nodes_though_each_sweep_is_killed_at_another_step(
    site: Playground,
) -> None:
    # long enough that the second run is signalled before the first is requeued
    env = changed(site, grace="6s")
    victims = vision_runs(site, 3600)
    owed, _ = site.sbatch(BEN, "-Jgang", "--nodes=2", *FUNDED, "4")
    for step in STEPS:
        site.wait(f"a sweep to reach {step}", lambda step=step: killed(site, step, env))

    def swept() -> bool:
        return bool(site.sbudget("sweep", env=env))

    site.wait(
        "the owed job starts", lambda: swept() and site.last(owed) in ("RUNNING", "COMPLETED")
    )
    site.wait(
        "all run again",
        lambda: swept() and all(site.state(job) == "RUNNING" for job in victims),
        90,
    )
    assert len(requeued(site, victims)) == len(set(requeued(site, victims))) == 2
    for job in victims:
        log = site.home(ANA) / f"train-{job}.log"
        before = len(steps(log))
        site.wait("it goes on", lambda log=log, before=before: len(steps(log)) > before)
        assert steps(log) == list(range(1, len(steps(log)) + 1)), f"{job} repeated or lost a step"
    for row in site.rows(*victims):
        if row[1] == "REQUEUED":
            assert int(row[4]) - int(row[3]) >= 2, "a run was requeued inside its protection"


def test_killed_between_release_and_retag_a_job_waits_and_the_next_sweep_moves_it(
    site: Playground,
) -> None:
    """At most it starts as preemptible; it is never held for ever."""
    waits = site.site / "wait.toml"
    waits.write_text(site.config.read_text().replace("[jobs]", '[jobs]\non_exhausted = "wait"'))
    env = {"SBUDGET_CONFIG": str(waits)}
    costs = ("--gres=gpu:8", "--qos=funded", "--comment=min-runtime=40s", "--time=2")
    try:
        site.sbudget("sweep", env=env)
        first, _ = site.sbatch(CLEO, *costs, "60")
        site.wait("the first runs", lambda: site.state(first) == "RUNNING", 30)
        # it can start nowhere, so what it is moved to is seen
        second, _ = site.sbatch(CLEO, *costs, "--begin=now+1hour", "1")
        site.sbudget("sweep", env=env)
        site.wait("it is held", lambda: site.job(second)["Reason"].startswith("JobHeld"), 30)
        site.slurm("scancel", str(first))
        site.wait("a sweep to release it", lambda: killed(site, "after-release", env), 30)
        assert site.job(second)["QOS"] == "preemptible"
        assert not site.job(second)["Reason"].startswith("JobHeld")

        def moved() -> bool:
            site.sbudget("sweep", env=env)
            return site.job(second)["QOS"] == "funded-robotics"

        site.wait("the next sweep moves it", moved, 30)
    finally:
        site.sbudget("sweep")
