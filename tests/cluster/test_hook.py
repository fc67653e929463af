"""The submit hook in a real slurmctld: every way of asking, changes by users, no harm.

Tested: sbatch, salloc, srun, het jobs, arrays, promises, on_exhausted, scontrol update, requeue, a
broken file of ours, 2,000 drawn requests under every kind of snapshot.
Untested: submission by slurmrestd.
"""

import os
import random
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from ClusterShell.NodeSet import NodeSet
from playground import Done, Failed, Playground
from story import ANA, BEN

from slurm_budget.core.snapshot import decode
from slurm_budget.core.snapshot_write import encode
from slurm_budget.state.snapshot import AccountFacts, Policy, Snapshot

GPU_HOUR = 3_600_000
HOLD = "--hold"
FITS = "c=funded:a=funded:m={}:w=fits"
DEFAULT = "c=preemptible:a=preemptible:m=3600:w=default"
ASKED = "c=preemptible:a=preemptible:m=3600:w=asked"


def publish(site: Playground, vision: float = 100, language: float = 10, **policy: object) -> None:
    """A snapshot with these GPU-hours left, and no fast lane unless asked for."""
    now = int(time.time())
    settings = Policy(**{"node_gpus": 8, "fast_lane_gpu_time": 0, **policy})  # type: ignore[arg-type]

    def account(name: str, parent: str | None, left: float, back: int | None) -> AccountFacts:
        balance = int(left * GPU_HOUR)
        amounts = 2688 * GPU_HOUR, balance, balance
        return AccountFacts(name, parent, "funded-" + name, *amounts, back)

    accounts = [
        account("institute", None, 5000, None),
        account("vision", "institute", vision, None),
        account("language", "institute", language, now + 12000),
    ]
    facts = Snapshot(site.name, now, now, settings, {a.name: a for a in accounts})
    new = site.snapshot.with_suffix(".new")
    new.write_text(encode(facts))
    new.rename(site.snapshot)


@pytest.fixture(autouse=True)
def snapshot(site: Playground) -> Iterator[None]:
    # Promises of the test before count until a snapshot is of a later second than they are.
    time.sleep(1 - time.time() % 1)
    publish(site)
    yield
    if site.snapshot.is_dir():
        site.snapshot.rmdir()
    site.sbudget("sweep")


def marker(site: Playground, job: int) -> str:
    return site.job(job)["admin_comment"].removeprefix("sbudget:1:")


def log(site: Playground) -> str:
    return (site.folder / "log" / "slurmctld.log").read_text(errors="replace")


@pytest.mark.parametrize(
    ("options", "qos", "mark"),
    [
        (("--qos=funded", "--gres=gpu:8", "--time-min=4:00:00", "-t1-0"), "funded-vision", FITS),
        (("--gres=gpu:h100:8", "--time-min=4:00:00", "-t1-0"), "funded-vision", FITS),
        (("--gpus=8", "--comment=x min-runtime=4h", "-t1-0"), "funded-vision", FITS),
        (("--gpus-per-node=4", "-N2", "--comment=min-runtime=4h"), "funded-vision", FITS),
        (("--gpus-per-task=1", "-n8", "--comment=min-runtime=4h"), "funded-vision", FITS),
        (
            ("--gpus-per-socket=2", "--sockets-per-node=2", "--time-min=240"),
            "funded-vision",
            FITS,
        ),
        (("--ntasks-per-gpu=2", "-n8", "--time-min=240"), "funded-vision", FITS),
        (("--exclusive", "-N1", "--time-min=240"), "funded-vision", FITS),
        (("--gres=gpu:1", "--array=0-9%4", "--time-min=240"), "funded-vision", FITS),
        (("--qos=FUNDED", "--gres=gpu", "-t240", "--time-min=9:00:00"), "funded-vision", FITS),
        (("--no-requeue", "--gpus=1", "-t240", "--time-min=240"), "funded-vision", FITS + ":r=0"),
        (("--gres=gpu:8", "-t1-0"), "preemptible", DEFAULT),
        (("--gres=gpu:8", "--time-min=0", "-t1-0"), "preemptible", ASKED),
        (("--gres=gpu:8", "--qos=preemptible", "-t1-0"), "preemptible", ASKED),
        (("--gres=gpu:8", "--qos=normal", "-t1-0"), "normal", "(null)"),
        (("-n4", "-t1-0"), "preemptible", "(null)"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)  # fmt: skip
def test_every_way_of_asking(
    site: Playground, options: tuple[str, ...], qos: str, mark: str
) -> None:
    job, _ = site.sbatch(ANA, HOLD, *options, command="true")
    assert site.job(job)["QOS"] == qos
    assert marker(site, job) == mark.format(14400)
    assert "TimeMin=N/A" in site.slurm("scontrol", "show", "job", str(job))


def test_what_the_user_reads(site: Playground) -> None:
    _, said = site.sbatch(
        ANA, HOLD, "--qos=funded", "--gpus=8", "--time-min=240", "-t1-0", command="true"
    )
    assert said == (
        "sbudget: funded; protected for 4 h from vision's budget (68 of 2,688 GPU-hours left)."
    )
    _, said = site.sbatch(
        BEN, HOLD, "--qos=funded", "--gpus=8", "--time-min=240", "-t1-0", command="true"
    )
    first, second = said.splitlines()
    assert first.startswith(
        "sbudget: preemptible for now: language's budget has 10 of 2,688 GPU-hours left,"
        " this job needs 32; more is back in 3 h "
    )
    assert second == (
        "sbudget: it may run on idle GPUs; while it waits, it becomes funded as soon as the budget"
        " allows."
    )


def test_salloc_and_srun(site: Playground) -> None:
    for command in ("salloc", "srun"):
        done = site.as_user(ANA, command, "--qos=funded", "--gpus=1", "-t30", "true")
        assert done.code == 0, done
        assert f"{command}: sbudget: funded; protected for 30 min from vision's budget" in done.err
    done = site.as_user(ANA, "srun", "--qos=funded", "--gpus=1", "-t120", "true")
    assert "preemptible, because an interactive job is funded only when" in done.err


def test_each_component_of_a_het_job(site: Playground) -> None:
    done = site.as_user(
        ANA, "sbatch", HOLD, "-N1", "--gres=gpu:1", "--qos=funded", "-t240", "--output=/dev/null",
        ":", "-N2", "--gres=gpu:2", "--qos=funded", "-t240", "--wrap=true",
    )  # fmt: skip
    assert done.code == 0, done
    assert "sbudget: funded" in done.err
    rows = site.slurm("squeue", "-h", "-O", "QOS:;,admin_comment:").splitlines()
    assert rows == ["funded-vision;sbudget:1:c=funded:a=funded:m=3600:w=fits"] * 2


def test_a_thousand_submissions_cannot_all_spend_the_same_hour(site: Playground) -> None:
    publish(site, vision=10, max_age=3600)
    line = "sbatch -Q -H --gres=gpu:1 --qos=funded -t600 -o /dev/null --wrap true >/dev/null 2>&1"
    site.as_user(ANA, "sh", "-c", f"for i in $(seq 1000); do {line}; done")
    found = site.slurm("squeue", "-h", "-o", "%q").split()
    assert len(found) == 1000
    assert found.count("funded-vision") == 10


def test_out_of_budget_held_where_the_site_says_wait(site: Playground) -> None:
    publish(site, vision=4, on_exhausted="wait")
    options = ("--qos=funded", "--gpus=8", "-t1-0")
    job, said = site.sbatch(ANA, *options, command="sleep 30")
    assert said.startswith("sbudget: held: vision's budget has 4 of 2,688 GPU-hours left")
    assert (site.job(job)["QOS"], site.job(job)["Reason"]) == ("preemptible", "JobHeldUser")
    # The sweep moves it and lets it go once the budget allows.
    site.slurm(
        "scontrol", "update", f"job={job}", "qos=funded-vision",
        "admincomment=sbudget:1:c=funded:a=funded:m=3600:w=fits",
    )  # fmt: skip
    site.slurm("scontrol", "release", str(job))
    site.wait("the job that was held", lambda: site.state(job) == "RUNNING")
    assert site.job(job)["QOS"] == "funded-vision"
    # A user who does not wait runs, and costs no budget anything.
    other, _ = site.sbatch(ANA, *options, command="sleep 30")
    assert site.as_user(ANA, "scontrol", "release", str(other)).code == 0
    site.wait("the job that its user let go", lambda: site.state(other) == "RUNNING")
    assert site.job(other)["QOS"] == "preemptible"


def test_out_of_budget_rejected_where_the_site_says_so(site: Playground) -> None:
    publish(site, vision=4, on_exhausted="reject")
    done = site.try_sbatch(ANA, "--qos=funded", "--gpus=8", "-t1-0", command="true")
    assert done.code != 0
    assert "sbudget: rejected: vision's budget has 4 of 2,688 GPU-hours left" in done.err
    assert "Job violates accounting/QOS policy" in done.err


# --- scontrol update


def update(site: Playground, user: str, job: int, *changes: str) -> Done:
    return site.as_user(user, "scontrol", "update", f"job={job}", *changes)


def test_a_user_moves_into_funded_within_the_balance_only(site: Playground) -> None:
    publish(site, vision=12)
    first, _ = site.sbatch(ANA, HOLD, "--gres=gpu:8", "-t1-0", command="true")
    second, _ = site.sbatch(ANA, HOLD, "--gres=gpu:8", "-t1-0", command="true")
    assert update(site, ANA, first, "qos=funded").code == 0
    assert site.job(first)["QOS"] == "funded-vision"
    refused = update(site, ANA, second, "qos=funded-vision")
    assert refused.code != 0
    assert "Job violates accounting/QOS policy" in refused.err + refused.out
    assert site.job(second)["QOS"] == "preemptible"
    reason = f"a change of job {second}: not funded: vision's budget has 4 of 2,688 GPU-hours left"
    assert reason in log(site)


def test_what_a_user_may_not_change_of_a_funded_job(site: Playground) -> None:
    job, _ = site.sbatch(ANA, HOLD, "--qos=funded", "--gres=gpu:8", "-t1-0", command="true")
    for change in ("requeue=0", "timemin=10", "admincomment=mine"):
        assert update(site, ANA, job, change).code != 0, change
    for change in ("timelimit=2-0", "nice=7", "timelimit=30", "requeue=0", "qos=preemptible"):
        assert update(site, ANA, job, change).code == 0, change
    assert marker(site, job) == FITS.format(3600)


def test_what_root_changes_passes(site: Playground) -> None:
    job, _ = site.sbatch(BEN, HOLD, "--gres=gpu:8", "--array=0-99", "-t1-0", command="true")
    site.slurm("scontrol", "update", f"job={job}", "qos=funded", "admincomment=by hand")
    assert site.job(job)["QOS"] == "funded-language"
    assert "by hand" in site.job(job)["admin_comment"]


def test_what_an_operator_changes_passes_once_a_sweep_has_seen_them(site: Playground) -> None:
    job, _ = site.sbatch(BEN, HOLD, "--gres=gpu:8", "--array=0-99", "-t1-0", command="true")
    modify = ("sacctmgr", "-i", "modify", "user", ANA, "set")
    site.slurm(*modify, "adminlevel=Operator")
    try:
        assert update(site, ANA, job, "qos=funded-language").code != 0
        site.sbudget("sweep")
        assert decode(site.snapshot.read_text()).policy.operators[0] == 0
        assert update(site, ANA, job, "qos=funded-language").code == 0
        assert site.job(job)["QOS"] == "funded-language"
    finally:
        site.slurm(*modify, "adminlevel=None")


@pytest.mark.requeued_by_hand
def test_the_marker_survives_a_requeue(site: Playground) -> None:
    job, _ = site.sbatch(ANA, "--qos=funded", "--gpus=1", "-t60", command="sleep 60")
    site.wait("the job", lambda: site.state(job) == "RUNNING")
    site.slurm("scontrol", "requeue", "Incomplete", str(job))
    site.wait("its requeue", lambda: site.job(job)["RestartCnt"] == "1")
    assert marker(site, job) == FITS.format(3600)


# --- harmless


def hook_file(site: Playground) -> Path:
    return site.folder / "etc" / "job_submit.lua"


def reload(site: Playground, text: str) -> None:
    """slurmctld looks at the time of the file, in whole seconds."""
    time.sleep(1.1)
    hook_file(site).write_text(text)


def test_an_error_in_our_file_leaves_every_job_as_it_is(site: Playground) -> None:
    logic, loader = site.site / "sbudget.lua", hook_file(site).read_text()
    good = logic.read_text()
    try:
        for broken in (good.replace("function M.read(", "function M.gone("), "not Lua", ""):
            logic.write_text(broken)
            reload(site, loader)
            job, said = site.sbatch(ANA, HOLD, "--qos=funded", "--gres=gpu:1", command="true")
            assert (site.job(job)["QOS"], said) == ("preemptible", "")
            job, _ = site.sbatch(ANA, HOLD, "--qos=normal", "--gres=gpu:1", command="true")
            assert site.job(job)["QOS"] == "normal"
    finally:
        logic.write_text(good)
        reload(site, loader)
    job, _ = site.sbatch(ANA, HOLD, "--qos=funded", "--gres=gpu:1", command="true")
    assert site.job(job)["QOS"] == "funded-vision"


CHOICES = (
    (0.3, ("-N1", "-N2", "-N1-3", "-N4", "-N2-4")),
    (0.2, ("-c1", "-c4", "-c16", "-c64")),
    (0.2, ("--cpus-per-gpu=1", "--cpus-per-gpu=8", "--cpus-per-gpu=32")),
    (0.1, ("--mem-per-gpu=1G", "--mem-per-gpu=200G")),
    (0.1, ("--ntasks-per-node=1", "--ntasks-per-node=8")),
    (0.6, ("-t10", "-t1:00:00", "-t8:00:00", "-t2-0", "-t0")),
    (0.3, ("--time-min=5", "--time-min=240", "--time-min=0", "--time-min=1-0")),
    (0.3, ("--comment=min-runtime=4h", "--comment=min-runtime=0", "--comment=min-runtime=x")),
    (0.1, ("--comment=';$(id) \" \\ ü",)),
    (0.6, ("--qos=funded", "--qos=FUNDED", "--qos=preemptible", "--qos=normal")),
    (0.2, ("--qos=funded-vision", "--qos=funded-language")),
    (0.2, ("--account=vision", "--account=VISION")),
    (0.2, ("--array=0-9", "--array=0-9%2", "--array=1-15:4", "--array=3")),
    (0.2, ("--no-requeue", "--switches=1", "--switches=1@5:00", "--nodelist=n1")),
)


def drawn(draw: random.Random) -> list[str]:
    kind, count = draw.choice(["", "h100:"]), draw.choice([0, 1, 2, 4, 8, 9, 16])
    gpus = [
        [f"--gres=gpu:{kind}{count}"],
        ["--gres=gpu"],
        [f"--gpus={kind}{count}"],
        [f"--gpus-per-node={kind}{count}"],
        [f"--gpus-per-task={draw.choice([1, 2])}", f"-n{draw.choice([1, 2, 8])}"],
        ["--gpus-per-socket=2", "--sockets-per-node=2"],
        ["--ntasks-per-gpu=2", f"-n{draw.choice([2, 4, 8])}"],
        ["--exclusive"],
        [],
        [f"--gpus={count}", f"--gres=gpu:{kind}{count}"],
    ]
    more = [draw.choice(values) for share, values in CHOICES if draw.random() < share]
    return draw.choice(gpus) + more


def spoil(site: Playground, draw: random.Random) -> None:
    """One of the states that a snapshot can be in."""
    if site.snapshot.is_dir():
        site.snapshot.rmdir()
    publish(
        site,
        vision=draw.choice([1, 50, 5000]),
        topology=draw.random() < 0.5,
        fast_lane_gpu_time=draw.choice([0, 7200]),
    )
    kind, blob = draw.randrange(8), site.snapshot.read_bytes()
    if kind in (0, 1):
        site.snapshot.unlink()
    if kind == 1:
        site.snapshot.mkdir()
    if kind == 2:
        site.snapshot.write_bytes(blob[: draw.randrange(len(blob))])
    if kind == 3:
        site.snapshot.write_bytes(draw.randbytes(draw.randrange(3000)))
    if kind == 4:
        os.utime(site.snapshot, (0, 0))


def test_no_drawn_request_is_refused_for_our_sake(site: Playground) -> None:
    """What Slurm refuses with the hook it refuses without it, of 2,000 drawn requests."""
    draw, refused = random.Random(26), []
    for number in range(2000):
        if number % 50 == 0:
            spoil(site, draw)
        request = drawn(draw)
        if not accepted(site, request):
            refused.append(request)
        if number % 500 == 499:
            site.slurm("scancel", "--partition=gpu", code=None)
    assert len(refused) < 1000
    loader = hook_file(site).read_text()
    try:
        # Only what must be done for those QOS names, which are our invention.
        reload(site, PLAIN)
        assert [request for request in refused if accepted(site, request)] == []
    finally:
        reload(site, loader)
    assert "UP" in site.slurm("scontrol", "ping")


PLAIN = """
function slurm_job_submit(d)
    local qos = string.lower(d.qos or "")
    if string.find(qos, "^funded") or qos == "preemptible" then d.qos = "preemptible" end
    return slurm.SUCCESS
end
function slurm_job_modify() return slurm.SUCCESS end
return slurm.SUCCESS
"""


def accepted(site: Playground, request: list[str]) -> bool:
    sbatch = shutil.which("sbatch") or "sbatch"
    try:
        site.slurm(
            sbatch, f"--uid={ANA}", HOLD, "--chdir=/tmp", "--output=/dev/null", *request,
            "--wrap=true",
        )  # fmt: skip
    except Failed:
        return False
    return True


def test_a_partition_that_wants_several_nodes_and_keeps_funded_out(site: Playground) -> None:
    """What fits on one node is not kept there, and what cannot start as funded is not left so."""
    site.slurm(
        "scontrol", "create", "PartitionName=gangs", "Nodes=ALL", "MinNodes=2",
        "AllowQos=preemptible",
    )  # fmt: skip
    try:
        site.sbudget("sweep")
        assert "AllowQos keeps out funded-" in site.sbudget("doctor", code=None).out
        job, _ = site.sbatch(
            ANA, "-pgangs", "--gpus=2", "--qos=funded", "-t600", command="sleep 60"
        )
        assert site.job(job)["QOS"] == "funded-vision"
        site.sbudget("sweep")
        assert site.job(job)["QOS"] == "preemptible"
        assert "w=partition" in site.job(job)["admin_comment"]
        site.wait("it starts", lambda: site.state(job) == "RUNNING")
        assert len(NodeSet(site.job(job)["NodeList"])) == 2
    finally:
        site.slurm("scancel", "-p", "gangs", code=None)
        site.wait("an empty queue", lambda: not site.slurm("squeue", "-h", "-a").strip())
        site.slurm("scontrol", "delete", "PartitionName=gangs")
