"""A host that must be repaired: its run goes on elsewhere once it is past its protection."""

import json
import time
from dataclasses import replace

from playground import Playground
from story import ANA

from slurm_budget.slurm import squeue_shares
from slurm_budget.slurm.command import Commands
from slurm_budget.slurm.port import CommandSlurm


def holders(site: Playground) -> dict[str, list[dict[str, object]]]:
    """Runs by draining node, as `report cluster` shows them."""
    report = json.loads(site.sbudget("report", "cluster", "--json").out)
    return {one["node"]: one["holders"] for one in report["repairs"]}


def test_a_draining_host_is_free_when_the_protection_is_over(site: Playground) -> None:
    job, _ = site.sbatch(
        ANA, "-Jtrain", "--gres=gpu:8", "--qos=funded", "--comment=min-runtime=12s", "25"
    )
    site.wait("it runs", lambda: site.state(job) == "RUNNING")
    node = site.job(job)["NodeList"]
    site.slurm("scontrol", "update", f"node={node}", "state=drain", "reason=fan | broken")
    try:
        (holder,) = holders(site)[node]
        assert holder["waits_for"] == "vision's protection"
        assert int(str(holder["until"])) > time.time()
        text = site.sbudget("report", "cluster").out
        assert f"job {job} of {ANA} (vision, funded) holds 8 GPUs; protection: until" in text
        assert "by root: fan | broken" in text
        assert "requeued" not in site.sbudget("sweep").out

        def swept_free() -> bool:
            return "requeued" in site.sbudget("sweep").out

        site.wait("a sweep to requeue it", swept_free, 40)
        first = site.rows(job)[0]
        assert (first[1], int(first[4]) - int(first[3]) >= 12) == ("REQUEUED", True)
        site.wait("the host is free", lambda: holders(site)[node] == [])
        assert "nothing runs on it: it can be repaired" in site.sbudget("report", "cluster").out
        site.wait("it goes on elsewhere", lambda: site.state(job) == "RUNNING", 40)
        assert site.job(job)["NodeList"] != node
        log = (site.home(ANA) / f"train-{job}.log").read_text()
        assert "warned, checkpoint at step" in log
    finally:
        site.slurm("scontrol", "update", f"node={node}", "state=resume")


def test_gpus_asked_for_in_all_are_known_by_node_as_slurm_packs_them(site: Playground) -> None:
    slurm = CommandSlurm(Commands(conf=site.conf))
    uneven, _ = site.sbatch(ANA, "-N2", "--gpus=10", "30")
    site.wait("it runs", lambda: site.state(uneven) == "RUNNING")
    fixed, _ = site.sbatch(ANA, "-N2", "--gpus=10", "--hold", "1")
    loose, _ = site.sbatch(ANA, "--gpus=12", "--hold", "1")
    choosy, _ = site.sbatch(ANA, "--exclude=n[2-3]", "--gpus=8", "--qos=funded", "--hold", "1")
    jobs = {job.id: job for job in slurm.jobs()}
    assert sorted(jobs[uneven].gpus_on.values()) == [2, 8]
    assert sum(jobs[uneven].gpus_on.values()) == jobs[uneven].gpu_total == 10
    assert (jobs[fixed].max_nodes, jobs[fixed].num_nodes) == (2, 2)
    assert jobs[loose].max_nodes is None
    assert (jobs[choosy].excluded, jobs[loose].excluded) == (("n2", "n3"), ())
    # by the way that is taken where no run is uneven
    bare = [replace(job, excluded=()) for job in jobs.values()]
    assert squeue_shares.with_excluded(slurm.commands, bare) == list(jobs.values())
