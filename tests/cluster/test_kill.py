"""kill -9 of a sweep at each step of acting: the next one finishes, nothing is done twice."""

import sys
from pathlib import Path

import pytest
from playground import Playground
from story import ANA, BEN

DRIVER = Path(__file__).with_name("killed_sweep.py")
STEPS = ["planned", "after-signal", "signalled", "after-requeue", "requeued"]


@pytest.mark.parametrize("step", STEPS)
def test_the_next_sweep_finishes_what_was_killed(site: Playground, step: str) -> None:
    funded = ("--gres=gpu:8", "--qos=funded", "--comment=min-runtime=2s")
    victims = [site.sbatch(ANA, "-Jtrain", *funded, "12")[0] for _ in range(4)]
    site.wait("vision runs", lambda: all(site.state(job) == "RUNNING" for job in victims))
    owed, _ = site.sbatch(BEN, "-Jgang", "--nodes=2", *funded, "4")

    def killed() -> bool:
        done = site._run([sys.executable, str(DRIVER), step])
        assert done.code in (0, -9), str(done)
        return done.code == -9

    site.wait(f"a sweep to reach {step}", killed, 60)

    def started() -> bool:
        site.sbudget("sweep")
        return any(row[1] in ("RUNNING", "COMPLETED") for row in site.rows(owed))

    site.wait("the owed job starts", started, 60)
    site.sbudget("sweep")
    requeues = {job: [r[1] for r in site.rows(job)].count("REQUEUED") for job in victims}
    assert sorted(requeues.values()) == [0, 0, 1, 1]
    site.wait(
        "everybody finishes",
        lambda: site.sbudget("sweep") and all(site.last(job) == "COMPLETED" for job in victims),
        90,
    )
    for job in victims:
        log = (site.home(ANA) / f"train-{job}.log").read_text().splitlines()
        steps = [int(line.split()[1]) for line in log if line.startswith("step ")]
        assert steps == list(range(1, 13)), f"job {job} repeated or lost a step"
    for row in site.rows(*victims):
        if row[1] == "REQUEUED":
            assert int(row[4]) - int(row[3]) >= 2, "a run was requeued inside its protection"
