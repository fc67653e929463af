"""The port by pyslurm beside the one by commands, on one queue: they must tell the same."""

from collections.abc import Callable
from dataclasses import asdict

import pytest
from playground import Playground
from story import ANA, BEN

from slurm_budget.core import live
from slurm_budget.errors import BadInput, SlurmUnreachable
from slurm_budget.ports import JobPort
from slurm_budget.slurm.command import Commands
from slurm_budget.slurm.port import CommandSlurm
from slurm_budget.slurm.pyslurm_port import PyslurmSlurm


def by_commands(site: Playground) -> CommandSlurm:
    # short, for a controller that is gone
    return CommandSlurm(Commands(conf=site.conf, timeout=5))


def by_pyslurm(site: Playground) -> PyslurmSlurm:
    try:
        return PyslurmSlurm.opened(Commands(conf=site.conf))
    except BadInput as bad:
        pytest.skip(f"{bad}")


PORTS: tuple[Callable[[Playground], JobPort], ...] = (by_commands, by_pyslurm)


@pytest.fixture(params=PORTS, ids=["commands", "pyslurm"])
def port(site: Playground, request: pytest.FixtureRequest) -> JobPort:
    """Each of the ports, for what both must do."""
    made: Callable[[Playground], JobPort] = request.param
    return made(site)


def queue(site: Playground) -> None:
    """Jobs of every kind whose fields Slurm words in a way of its own."""
    sleep = "sleep 120"
    first, _ = site.sbatch(ANA, "--gres=gpu:2", "--comment=é|x", command=sleep)
    site.sbatch(BEN, "--gpus=12", "-N2", "--no-requeue", command=sleep)
    site.sbatch(ANA, "--array=0-7%2", "--gres=gpu:h100:1", command=sleep)
    site.sbatch(ANA, "--gres=gpu:1", f"--dependency=afterok:{first}", command=sleep)
    site.sbatch(ANA, "--gres=gpu:1", f"--dependency=afterany:{first}?afternotok:{first}",
                command=sleep)  # fmt: skip
    site.sbatch(ANA, "--gpus=9", "--hold", command=sleep)
    site.sbatch(ANA, "--gpus=h100:9", "--hold", "--time=UNLIMITED", command=sleep)
    site.sbatch(ANA, "-n2", "--gpus-per-task=1", "--hold", command=sleep)
    site.sbatch(ANA, "-n2", "--gpus-per-task=h100:2", "--hold", command=sleep)
    site.sbatch(ANA, "-N2-3", "--gres=gpu:8", "--exclusive", "--hold", command=sleep)
    site.sbatch(ANA, "--begin=now+1hour", "--time=1-2:30", command=sleep)
    site.sbatch(ANA, "--array=1,3,5-9:2,400", "--hold", command=sleep)
    site.as_user(ANA, "sbatch", "--hold", "--wrap=true", ":", "--gres=gpu:1", "--wrap=true")


def test_both_ports_tell_of_the_same_jobs(site: Playground) -> None:
    theirs, ours = by_pyslurm(site), by_commands(site)
    queue(site)
    site.wait("jobs run", lambda: sum(job.running for job in ours.jobs()) >= 4)
    seen: list[tuple[dict[int, object], dict[int, object]]] = []

    def agree() -> bool:
        # Slurm works on between the two looks
        seen.append(tuple({job.id: asdict(job) for job in p.jobs()} for p in (theirs, ours)))  # type: ignore[arg-type]
        return seen[-1][0] == seen[-1][1]

    try:
        site.wait("both tell the same", agree, seconds=15)
    finally:
        assert seen[-1][0] == seen[-1][1]
    assert len(seen[-1][0]) >= 13


def test_gpus_of_an_uneven_run_are_known_by_node(site: Playground, port: JobPort) -> None:
    site.sbatch(ANA, "--gpus=12", "-N2", command="sleep 60")

    def held() -> list[int]:
        return [sum(job.gpus_on.values()) for job in port.jobs() if job.running]

    site.wait("it runs", lambda: held() == [12])
    assert held() == [12]


@pytest.mark.requeued_by_hand
def test_a_task_of_an_array_is_requeued_alone(site: Playground, port: JobPort) -> None:
    base, _ = site.sbatch(ANA, "--gres=gpu:1", "--array=0-1", command="sleep 120")
    site.wait("both run", lambda: sum(job.running for job in port.jobs()) == 2)
    (task,) = (job for job in port.jobs() if job.id == base)
    assert port.requeue(live.address(task)).outcome == "done"
    site.wait(
        "it is requeued",
        lambda: sorted(job.restarts for job in port.jobs()) == [0, 1],
    )
    assert {job.id for job in port.jobs() if job.restarts} == {base}


def test_a_controller_that_is_gone_is_no_empty_queue(site: Playground, port: JobPort) -> None:
    site.cluster("stop", "slurmctld")
    with pytest.raises(SlurmUnreachable):
        port.jobs()
