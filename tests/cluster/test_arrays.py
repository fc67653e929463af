"""How jobs must be named so that a deed hits one task of an array."""

import pytest
from playground import Playground
from story import ANA

from slurm_budget.core import live
from slurm_budget.slurm.command import Commands
from slurm_budget.slurm.port import CommandSlurm


def slurm(site: Playground) -> CommandSlurm:
    return CommandSlurm(Commands(conf=site.conf))


@pytest.mark.requeued_by_hand
def test_the_task_that_has_the_arrays_own_id_is_requeued_alone(site: Playground) -> None:
    base, _ = site.sbatch(ANA, "--gres=gpu:1", "--array=0-1", command="sleep 120")
    port = slurm(site)

    def running() -> dict[int, str]:
        return {job.id: live.address(job) for job in port.jobs() if job.running}

    site.wait("both run", lambda: len(running()) == 2)
    found = running()
    assert found[base].startswith(f"{base}_"), "the last to start keeps the array's id"
    (other,) = found.keys() - {base}
    assert port.signal(found[base], "CONT").outcome == "done"
    assert port.requeue(found[base]).outcome == "done"

    def restarts() -> dict[int, int]:
        return {job.id: job.restarts for job in port.jobs()}

    site.wait("it is requeued", lambda: restarts().get(base) == 1)
    assert restarts() == {base: 1, other: 0}
    assert other in running()


def test_an_array_with_many_holes_is_seen_whole_and_moved_by_one_command(site: Playground) -> None:
    # no step between them, or Slurm writes 1-199:2
    holes = ",".join(str(task * task) for task in range(2, 32))
    base, _ = site.sbatch(ANA, "--gres=gpu:1", f"--array={holes}", "--hold", command="true")
    port = slurm(site)
    (job,) = (job for job in port.jobs() if job.id == base)
    assert job.tasks == 30
    assert live.address(job) == f"{base}_[{holes}]"
    assert port.retag(live.address(job), "funded-vision", "sbudget: by hand").outcome == "done"
    assert {job.qos for job in port.jobs()} == {"funded-vision"}
