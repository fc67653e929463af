"""`sbudget why` for what has ended, and for runs that were stopped, on a real Slurm.

ended    completed; failed; cancelled while it ran; cancelled before it started
was      requeued by its user; preempted by Slurm
waits    held until its budget allows it
"""

import pytest
from asking import minimum, why
from playground import Playground
from story import ANA, CLEO


@pytest.mark.requeued_by_hand
def test_what_became_of_jobs(site: Playground) -> None:
    def sbatch(*options: str, command: str = "sleep 300") -> int:
        return site.sbatch(ANA, "--gres=gpu:8", *options, command=command)[0]

    done, failed, killed, again = (
        sbatch(*minimum("1s"), command="true"),
        sbatch(*minimum("1s"), command="exit 3"),
        sbatch(*minimum("1s")),
        sbatch(*minimum("1s")),
    )
    never = sbatch("--hold")
    site.wait("both run", lambda: all(site.state(j) == "RUNNING" for j in (killed, again)))
    assert site.as_user(ANA, "scontrol", "requeue", str(again)).code == 0
    for job in (killed, never):
        site.as_user(ANA, "scancel", str(job))
    victim = sbatch("--nodelist=n1")
    site.wait("it runs", lambda: site.state(victim) == "RUNNING")
    sbatch(*minimum("1s"), "--nodelist=n1", command="sleep 20")
    site.wait("Slurm preempts it", lambda: site.state(victim) != "RUNNING")
    expected = {
        done: ["completed at", "It ran funded (QOS funded-vision) with 8 GPUs"],
        failed: ["failed at", "with exit code 3:0"],
        killed: [f"was cancelled by {ANA} at"],
        never: [f"was cancelled by {ANA}", "before it started"],
        again: ["was requeued", "by hand (`scontrol requeue`) or by Slurm, not by the sweeper"],
        victim: ["was preempted by Slurm", "a funded job needed the GPUs"],
    }
    for job, phrases in expected.items():
        site.wait(
            f"the answer for job {job}: {phrases}\n{why(site, job)}",
            lambda job=job, phrases=phrases: all(p in why(site, job) for p in phrases),
            20,
        )


def test_a_job_that_is_held_for_its_budget_is_told_so(site: Playground) -> None:
    waits = site.site / "wait.toml"
    waits.write_text(site.config.read_text().replace("[jobs]", '[jobs]\non_exhausted = "wait"'))
    try:
        site.sbudget("sweep", env={"SBUDGET_CONFIG": str(waits)})
        options = ("--gres=gpu:8", *minimum("1min"), "--time=60")
        site.sbatch(CLEO, *options, command="sleep 60")
        second, _ = site.sbatch(CLEO, *options, command="true")
        said = why(site, second)
    finally:
        site.sbudget("sweep")
    assert "held until a budget has enough left" in said
    assert "it is held until the budget allows it to be funded" in said
