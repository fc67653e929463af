"""Runs make way for a job that is owed, and come back: docs/examples/checkpoint.sh, really run."""

import json
import os
import re

from playground import Playground
from story import ANA, BEN, CLEO

FUNDED = ("--qos=funded", "--comment=min-runtime=2s", "--time=10")
STEPS = round(30 * max(2.0, float(os.environ.get("SBUDGET_PATIENCE", "1"))))
"""Long enough for the gang to get its nodes before they are done."""


def test_an_owed_gang_gets_two_whole_nodes_of_the_account_furthest_over_its_share(
    site: Playground,
) -> None:
    """Three accounts hold all GPUs, past their protection: vision three nodes, language and
    robotics the fourth. vision is furthest over, and language waits for two whole nodes."""
    config = site.site / "short.toml"
    text = site.config.read_text()
    # what earlier tests used is soon outside of it
    text = text.replace('length = "10min"', 'length = "40s"')
    # a lease that outlives one warning: scancel of 24.11 and later may wait 5 s ("Job is in
    # transitional state, retrying"), and the second warning would come with the next sweep
    config.write_text(text.replace('beat = "1s"', 'beat = "10s"'))
    said: list[str] = []

    def sweep(config_: str = str(config)) -> bool:
        said.append(site.sbudget("sweep", env={"SBUDGET_CONFIG": config_}).out)
        return True

    def standings() -> dict[str, float]:
        sweep()
        env = {"SBUDGET_CONFIG": str(config)}
        report = json.loads(site.sbudget("report", "budgets", "--json", env=env).out)
        return {row["account"]: row["standing"] for row in report["rows"]}

    def furthest_over() -> bool:
        at = standings()
        return at["vision"] > at["robotics"] + 0.02 > at["language"] + 0.04

    def run(user: str, name: str, gpus: int, steps: int) -> int:
        # in a step of srun, which the warning must reach as well
        option = f"--gres=gpu:{gpus}"
        job, _ = site.sbatch(user, name, option, *FUNDED, command=f"exec srun ./job {steps}")
        site.wait(f"job {job} runs", lambda: site.state(job) == "RUNNING", 30)
        return job

    try:
        sweep()
        vision = [run(ANA, "-Jyield", 8, STEPS) for _ in range(3)]
        others = [run(BEN, "-Jstay", 7, 10_000), run(CLEO, "-Jstay", 1, 10_000)]
        site.wait("vision is furthest over its share, then robotics", furthest_over)
        gang, _ = site.sbatch(BEN, "-Jgang", "--nodes=2", "--gres=gpu:8", *FUNDED, "3")
        site.wait("the gang runs", lambda: sweep() and site.state(gang) == "RUNNING")

        shown = site.slurm("scontrol", "show", "job", str(gang))
        (nodes,) = re.findall(r"^ +NodeList=(\S+)", shown, re.M)
        assert "gres/gpu=16" in shown, "two whole nodes"
        victims = [job for job in vision if site.job(job)["RestartCnt"] != "0"]
        assert len(victims) == 2
        freed = {site.rows(job)[0][5] for job in victims}
        assert set(site.slurm("scontrol", "show", "hostnames", nodes).split()) == freed
        assert {site.state(job) for job in others} == {"RUNNING"}
        ids = ", ".join(map(str, victims))
        assert f"signalled jobs {ids};" in "".join(said).replace(".\n", ";\n")
        assert re.findall(r"requeued jobs? (.*?) \((\d+) GPUs\)", "".join(said)) == [(ids, "16")]

        site.wait(
            "vision finishes",
            lambda: sweep() and all(site.last(job) == "COMPLETED" for job in vision),
            180,
        )
        for job in vision:
            starts = ["REQUEUED", "COMPLETED"] if job in victims else ["COMPLETED"]
            assert [row[1] for row in site.rows(job)] == starts
            log = (site.home(ANA) / f"yield-{job}.log").read_text()
            steps = [int(step) for step in re.findall(r"^step (\d+)$", log, re.M)]
            assert steps == list(range(1, STEPS + 1)), f"job {job} repeated or lost a step"
            if job in victims:
                (warned, *_) = re.findall(r"^warned, checkpoint at step (\d+)$", log, re.M)
                (resumed,) = re.findall(r"^start 1 from step (\d+)", log, re.M)
                assert int(warned) < int(resumed) < STEPS, "it went on after the warning"
        assert {site.state(job) for job in others} == {"RUNNING"}, "past protection, left alone"
    finally:
        sweep(str(site.config))
