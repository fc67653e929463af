"""Who may do what on a real Slurm: a user who forges, and a sidecar that is no root."""

import os
import pwd
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playground import Done, Playground
from story import ANA, BEN, SIDECAR

FUNDED = ("--gres=gpu:8", "--qos=funded", "--time=2")
FORGED = "sbudget:1:c=funded:a=funded:m=28800:w=fits"


def marker(site: Playground, job: int) -> str:
    return site.job(job)["admin_comment"]


def test_a_marker_that_a_user_writes_is_no_verdict(site: Playground) -> None:
    """In every text that is theirs; AdminComment is not, and Slurm refuses it to them."""
    everywhere = (f"--comment={FORGED}", f"--job-name={FORGED}", f"--wckey={FORGED}")
    job, _ = site.sbatch(ANA, *everywhere, "--qos=preemptible", "--gres=gpu:1", "--hold", "1")
    assert marker(site, job).startswith("sbudget:1:c=preemptible:a=preemptible:")
    for text in (FORGED, ""):
        done = site.as_user(ANA, "scontrol", "update", f"JobId={job}", f"AdminComment={text}")
        assert done.code != 0
        assert "denied" in done.err.lower()
    site.sbudget("sweep")
    assert site.job(job)["QOS"] == "preemptible"
    assert "c=preemptible" in marker(site, job)


def test_what_a_session_hears_has_nothing_of_the_jobs_own_words(site: Playground) -> None:
    job, _ = site.sbatch(
        ANA, "--job-name=\x1b[2Jevil", "--comment=\x1b]0;evil", "--gres=gpu:1", "--time=10",
        "--no-requeue", f"--output={site.home(ANA)}/words-%j.log", "60",
    )  # fmt: skip
    log = site.home(ANA) / f"words-{job}.log"
    said = []

    def heard() -> bool:
        said.append(site.sbudget("sweep", "-v").out)
        return log.exists() and "may be ended" in log.read_text()

    site.wait("it has heard", heard)
    for text in (log.read_text(), *said, site.sbudget("report", "cluster").out):
        assert "\x1b" not in text
        assert "evil" not in text


@pytest.fixture
def sidecar(site: Playground) -> Iterator[Path]:
    """Settings of a sidecar with ledger and snapshot of its own; its user is no operator yet."""
    who = pwd.getpwnam(SIDECAR)
    folder = site.site / "sidecar"
    folder.mkdir(mode=0o755)
    shutil.copy(site.ledger, folder / "ledger.db")
    for path in (folder, folder / "ledger.db"):
        os.chown(path, who.pw_uid, who.pw_gid)
    config = folder / "c.toml"
    text = site.config.read_text().replace(str(site.ledger), str(folder / "ledger.db"))
    config.write_text(text.replace(str(site.snapshot), str(folder / "snapshot")))
    site.slurm("sacctmgr", "-i", "add", "user", SIDECAR, "account=root")
    try:
        yield config
    finally:
        site.slurm("sacctmgr", "-i", "delete", "user", SIDECAR)
        shutil.rmtree(folder)
        site.sbudget("sweep")


@pytest.mark.requeued_by_hand
def test_a_sidecar_that_is_no_root_needs_to_be_an_administrator(
    site: Playground, sidecar: Path
) -> None:
    def sbudget(*args: str) -> Done:
        program = str(Path(sys.executable).parent / "sbudget")
        return site.as_user(SIDECAR, "env", f"SBUDGET_CONFIG={sidecar}", program, *args)

    victims = [
        site.sbatch(ANA, *FUNDED, "--comment=min-runtime=1s", command="exec srun ./job 60")[0]
        for _ in range(4)
    ]
    site.wait("vision runs", lambda: all(site.state(job) == "RUNNING" for job in victims))
    assert "would sweep: 4 running" in sbudget("sweep", "--dry-run").out
    # as a plain user it sees, and each deed is refused; an operator may do half of what it takes
    for argv in (
        ("scontrol", "requeue", "Incomplete", str(victims[0])),
        ("scancel", "--signal=CONT", str(victims[0])),
        ("scontrol", "notify", str(victims[0]), "hello"),
        ("scontrol", "update", f"JobId={victims[0]}", "AdminComment=x"),
    ):
        done = site.as_user(SIDECAR, *argv)
        assert re.search("denied|Invalid user id", done.err), done
    level = ("sacctmgr", "-i", "modify", "user", SIDECAR, "set")
    site.slurm(*level, "adminlevel=operator")
    for ok in (
        ("scancel", "--signal=CONT", str(victims[0])),
        ("scontrol", "update", f"JobId={victims[0]}", "Comment=x"),
        ("scontrol", "requeue", "Incomplete", str(victims[0])),
    ):
        assert site.as_user(SIDECAR, *ok).code == 0, ok
    for no in (
        ("scontrol", "update", f"JobId={victims[0]}", "AdminComment=x"),
        ("scontrol", "notify", str(victims[1]), "hello"),
        ("sacctmgr", "-i", "modify", "qos", "funded-vision", "set", "grptres=gres/gpu=9"),
    ):
        assert site.as_user(SIDECAR, *no).code != 0, no
    site.slurm(*level, "adminlevel=admin")
    qos = ("sacctmgr", "-i", "modify", "qos", "funded-vision", "set", "description=x")
    assert site.as_user(SIDECAR, *qos).code == 0
    site.wait("it runs again", lambda: site.state(victims[0]) == "RUNNING")
    site.sbudget("sweep")  # publishes who the administrators are; the hook lets their changes pass

    # a job whose verdict is to change: asked for funded, and is not
    waits, _ = site.sbatch(BEN, *FUNDED, "--comment=min-runtime=2s", "--hold", "1")
    site.slurm("scontrol", "update", f"JobId={waits}", "QOS=preemptible",
               "AdminComment=sbudget:1:c=preemptible:a=funded:m=2:w=budget")  # fmt: skip
    owed, _ = site.sbatch(BEN, *FUNDED, "--comment=min-runtime=2s", "1")
    said: list[str] = []

    def served() -> bool:
        done = sbudget("sweep")
        assert done.code == 0, done
        said.append(done.out)
        return site.last(owed) in ("RUNNING", "COMPLETED")

    site.wait("the owed job runs", served)
    text = "".join(said)
    assert f"retagged job {waits}" in text
    assert site.job(waits)["QOS"] == "funded-language"
    assert "signalled job" in text
    assert "requeued job" in text
    assert "left job" not in text, "nothing was refused"
    log = "".join((site.home(ANA) / f"wrap-{job}.log").read_text() for job in victims)
    assert "warned, checkpoint at step" in log, "the warning arrived"
    assert (sidecar.parent / "snapshot").stat().st_uid == pwd.getpwnam(SIDECAR).pw_uid
    done = site.as_user(SIDECAR, "scontrol", "notify", str(victims[0]), "hello")
    assert "Invalid user id" in done.err, "SlurmUser and root alone may, in 22.05"
