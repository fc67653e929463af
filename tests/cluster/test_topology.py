"""A cluster with topology/tree: an owed gang gets nodes under one switch."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from playground import Playground
from story import ANA, BEN, CLEO, SETTINGS, open_site

from slurm_budget.slurm.command import Commands
from slurm_budget.slurm.port import CommandSlurm
from slurm_budget.state.jobs import Place

TOPOLOGY = """\
SwitchName=leaf1 Nodes=n[1-2]
SwitchName=leaf2 Nodes=n[3-4]
SwitchName=spine Switches=leaf[1-2]
"""


@pytest.fixture
def tree(tmp_path: Path) -> Iterator[Playground]:
    """Four nodes under two switches; preemption by Slurm after an hour, whatever our settings."""
    file = tmp_path / "topology.conf"
    file.write_text(TOPOLOGY)
    play = Playground(
        f"sbtree{os.getpid()}",
        (ANA, BEN, CLEO),
        settings=SETTINGS,
        slurm_conf=("TopologyPlugin=topology/tree",),
        files=(file,),
    )
    try:
        open_site(play)
        yield play
    finally:
        play.down()


def test_an_owed_gang_gets_two_nodes_under_one_switch(tree: Playground) -> None:
    slurm = CommandSlurm(Commands(conf=tree.conf))
    places = slurm.places()
    assert places["n1"] == Place(("leaf1", "spine"), "spine")
    assert places["n4"] == Place(("leaf2", "spine"), "spine")

    # Equal in work and age; the two lowest job ids, which break the tie, are under two switches.
    funded = ("--gres=gpu:8", "--qos=funded", "--comment=min-runtime=1s")
    runs = {
        tree.sbatch(ANA, *funded, "--hold", f"--nodelist={node}", "60")[0]: node
        for node in ("n1", "n3", "n2", "n4")
    }
    tree.slurm("scontrol", "release", ",".join(map(str, runs)))
    tree.wait("they run", lambda: all(tree.state(job) == "RUNNING" for job in runs))
    gang, _ = tree.sbatch(BEN, "--nodes=2", *funded, "5")
    tree.wait("it waits", lambda: tree.job(gang)["Reason"] in ("Resources", "Priority"))

    def chosen() -> set[str]:
        out = tree.sbudget("sweep", "--dry-run").out
        return {node for job, node in runs.items() if f"would requeue job {job}:" in out}

    tree.wait(
        "runs under one switch to be chosen", lambda: chosen() in ({"n1", "n2"}, {"n3", "n4"}), 20
    )
