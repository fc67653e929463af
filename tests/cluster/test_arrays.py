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
    assert running()[base].startswith(f"{base}_"), "the last to start keeps the array's id"
    (other,) = running().keys() - {base}
    assert port.signal(running()[base], "CONT").outcome == "done"
    assert port.requeue(running()[base]).outcome == "done"
    site.wait("it waits again", lambda: site.rows(base)[0][1] == "REQUEUED")
    assert list(running()) == [other]
    assert [row[1] for row in site.rows(other)] == ["RUNNING"]


def test_an_array_with_many_holes_is_seen_whole_and_moved_by_one_command(site: Playground) -> None:
    holes = ",".join(str(task) for task in range(1, 200, 2))
    base, _ = site.sbatch(ANA, "--gres=gpu:1", f"--array={holes}", "--hold", command="true")
    port = slurm(site)
    (job,) = (job for job in port.jobs() if job.id == base)
    assert job.tasks == 100
    assert live.address(job) == f"{base}_[{holes}]"
    assert port.retag(live.address(job), "funded-vision", "sbudget: by hand").outcome == "done"
    assert {job.qos for job in port.jobs()} == {"funded-vision"}
