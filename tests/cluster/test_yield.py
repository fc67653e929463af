"""Runs make way for a job that is owed, and come back: docs/examples/checkpoint.sh, really run."""

import json
import re

from playground import Playground
from story import ANA, BEN, CLEO

FUNDED = ("--gres=gpu:8", "--qos=funded", "--comment=min-runtime=2s", "--time=2")
STEPS = 30


def standings(site: Playground) -> dict[str, float]:
    """Use over budget of every account, after a sweep."""
    site.sbudget("sweep")
    report = json.loads(site.sbudget("report", "budgets", "--json").out)
    return {row["account"]: row["standing"] for row in report["accounts"]}


def test_an_owed_gang_gets_two_nodes_of_the_account_furthest_over_its_share(
    site: Playground,
) -> None:
    """vision and robotics hold two nodes each, all past their protection. robotics has a sixteenth
    of vision's budget, so it is soon the one furthest over; language waits for two whole nodes."""
    vision = [site.sbatch(ANA, "-Jstay", *FUNDED, "100")[0] for _ in range(2)]
    site.wait("vision runs", lambda: all(site.state(job) == "RUNNING" for job in vision))
    robotics = [site.sbatch(CLEO, "-Jyield", *FUNDED, str(STEPS))[0] for _ in range(2)]
    site.wait("robotics runs", lambda: all(site.state(job) == "RUNNING" for job in robotics))
    held = {site.job(job)["NodeList"] for job in robotics}

    def robotics_is_furthest() -> bool:
        at = standings(site)
        return at["robotics"] > at["vision"] + 0.02 > at["language"] + 0.035

    site.wait("robotics is furthest over its share, and vision is over", robotics_is_furthest)
    gang, _ = site.sbatch(BEN, "-Jgang", "--nodes=2", *FUNDED, "3")
    said = ""

    def gang_runs() -> bool:
        nonlocal said
        said += site.sbudget("sweep").out
        return site.state(gang) == "RUNNING"

    site.wait("the gang runs", gang_runs)
    (nodes,) = re.findall(r"NodeList=(n\S+)", site.slurm("scontrol", "show", "job", str(gang)))
    assert set(site.slurm("scontrol", "show", "hostnames", nodes).split()) == held
    assert "gres/gpu=16" in site.slurm("scontrol", "show", "job", str(gang)), "two whole nodes"
    assert {site.state(job) for job in vision} == {"RUNNING"}
    assert re.findall(r"; signalled jobs? (.*?);", said.replace(".", ";")) == [
        ", ".join(map(str, robotics))
    ]
    assert re.findall(r"requeued jobs? (.*?) \((\d+) GPUs\)", said) == [
        (", ".join(map(str, robotics)), "16")
    ]

    site.slurm("scancel", *map(str, vision))
    site.wait(
        "robotics finishes",
        lambda: site.sbudget("sweep") and all(site.last(job) == "COMPLETED" for job in robotics),
        90,
    )
    assert [row[1] for row in site.rows(*vision)].count("REQUEUED") == 0
    for job in robotics:
        assert [row[1] for row in site.rows(job)] == ["REQUEUED", "COMPLETED"]
        log = (site.home(CLEO) / f"yield-{job}.log").read_text().splitlines()
        warned = next(line for line in log if line.startswith("warned, checkpoint at step "))
        resumed = next(line for line in log if line.startswith("start 1 from step "))
        assert int(warned.split()[-1]) <= int(resumed.split()[4]) < STEPS
        steps = [int(line.split()[1]) for line in log if line.startswith("step ")]
        assert steps == list(range(1, STEPS + 1)), f"job {job} repeated or lost a step"
