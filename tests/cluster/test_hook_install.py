"""`sbudget hook` on a cluster of its own: alone, chained, refused, put back, removed.

Tested: what slurmctld runs after each step, by its jobs and its log.
Untested: a slurmctld that starts with a broken script (nothing broken stays in place).
"""

import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playground import ROOT, Playground

from slurm_budget.core.snapshot_write import encode
from slurm_budget.state.snapshot import Policy, Snapshot

ONLY_THERE = 'if io.open("/proc/self/comm"):read() == "slurmctld" then error("only here") end\n'
OWN = b"""\
-- The site's own, with a letter of an older time: \xe9
function slurm_job_submit(job)
    if job.comment == "forbidden" then
        slurm.log_user("%s", "the site says no")
        return slurm.ERROR
    end
    job.admin_comment = "site"
    return slurm.SUCCESS
end
function slurm_job_modify() return slurm.SUCCESS end
return slurm.SUCCESS"""


@pytest.fixture(scope="module")
def play() -> Iterator[Playground]:
    name = f"sbhook{os.getpid()}"
    folder = Path("/var/lib/sbudget-cluster") / f"{name}-site" / "hook"
    settings = f'[hook]\nfolder = "{folder}"\n'
    play = Playground(name, nodes=1, gpus=2, hook=False, settings=settings)
    try:
        play.up()
        play.slurm("sacctmgr", "-i", "add", "qos", "preemptible")
        play.slurm("sacctmgr", "-i", "modify", "account", "root", "set", "qos+=preemptible")
        yield play
    finally:
        play.down()


@pytest.fixture
def script(play: Playground) -> Path:
    """job_submit.lua beside slurm.conf, as a site without us has it, in use."""
    path = play.conf.parent / "job_submit.lua"
    put(play, path, OWN)
    if "JobSubmitPlugins=lua" not in play.conf.read_text():
        with play.conf.open("a") as file:
            file.write("\nJobSubmitPlugins=lua\n")
        play.slurm("scontrol", "reconfigure")
    now = int(time.time())
    play.snapshot.write_text(encode(Snapshot(play.name, now, now, Policy(), {})))
    return path


def put(play: Playground, path: Path, blob: bytes) -> None:
    """As an editor would; slurmctld looks at whole seconds."""
    before = 0.0
    if path.exists():
        play.sbudget("hook", "remove", "--yes")
        before = path.stat().st_mtime + 1
    path.write_bytes(blob)
    path.chmod(0o640)
    later = max(time.time(), before)
    os.utime(path, (later, later))


def job(play: Playground, *options: str) -> tuple[str, str]:
    """QOS and AdminComment of a job that root submits."""
    done = play.slurm("sbatch", "-H", "--parsable", "--gres=gpu:1", *options, "--wrap=true")
    found = play.job(int(done))
    return found["QOS"], found["admin_comment"]


def test_alone_on_a_cluster_without_any(play: Playground) -> None:
    script = play.conf.parent / "job_submit.lua"
    assert "replace" not in play.sbudget("hook", "install", "--dry-run").out
    assert not script.exists()

    done = play.sbudget("hook", "install", "--yes", code=3)
    assert "it does not run yet: JobSubmitPlugins has no lua" in done.out
    assert "mend: slurm.conf: JobSubmitPlugins=lua" in done.out
    assert "JobSubmitPlugins has no lua" in play.sbudget("hook", "check", code=1).out

    with play.conf.open("a") as file:
        file.write("\nJobSubmitPlugins=lua\n")
    play.cluster("stop", "slurmctld")
    play.cluster("start", "slurmctld")
    play.wait("slurmctld", lambda: "UP" in play.slurm("scontrol", "ping", code=None))
    now = int(time.time())
    play.snapshot.write_text(encode(Snapshot(play.name, now, now, Policy(), {})))
    assert "slurmctld runs 0.1.0" in play.sbudget("hook", "check").out
    assert "nothing to do" in play.sbudget("hook", "install").out
    qos, comment = job(play, "--qos=funded")
    assert (qos, comment) == ("preemptible", "sbudget:1:c=preemptible:a=funded:m=3600:w=account")

    # slurmctld would not start without the file, so one that lets everything pass stays.
    assert "lets every job pass" in play.sbudget("hook", "remove", "--yes").out
    assert "nothing to do" in play.sbudget("hook", "remove").out
    assert job(play)[1] == "(null)"
    assert "there is none" in play.sbudget("hook", "check", code=1).out


def test_chained_behind_the_site_s_own_which_comes_back_unchanged(
    play: Playground, script: Path
) -> None:
    done = play.sbudget("hook", "install", "--yes")
    assert "tried behind the site's own job_submit.lua: both load" in done.out
    assert "slurmctld runs 0.1.0" in done.out
    assert "chained behind the site's own" in play.sbudget("hook", "check").out
    first = script.read_bytes()
    assert "nothing to do" in play.sbudget("hook", "install", "--yes").out
    assert script.read_bytes() == first
    line = f'dofile("{play.site}/hook/job_submit.lua") -- slurm-budget\n'
    assert first.replace(line.encode(), b"") == OWN

    qos, comment = job(play, "--qos=funded")
    assert (qos, comment.split("sbudget:1:")[0].strip("; \n")) == ("preemptible", "site")
    refused = play._run(["sbatch", "--gres=gpu:1", "--comment=forbidden", "--wrap=true"])
    assert refused.code != 0
    assert "the site says no" in refused.err

    play.sbudget("hook", "remove", "--yes")
    assert script.read_bytes() == OWN
    assert script.stat().st_mode & 0o777 == 0o640
    assert list((play.site / "hook").glob("*.lua")) == []
    assert job(play)[1] == "site"


def test_a_broken_file_is_refused_before_anything_changes(
    play: Playground, script: Path, tmp_path: Path
) -> None:
    for name in ("sbudget.lua", "job_submit.lua"):
        (tmp_path / name).write_bytes((ROOT / "etc" / name).read_bytes())
    good = (tmp_path / "sbudget.lua").read_text()
    faults = {
        "end end": "near 'end'",
        good.replace("function M.read(", "function M.gone("): "passes as it is",
    }
    for text, fault in faults.items():
        (tmp_path / "sbudget.lua").write_text(text)
        done = play.sbudget("hook", "install", "--yes", "--from", str(tmp_path), code=2)
        assert "does not load, nothing was changed" in done.err
        assert fault in done.err
    assert script.read_bytes() == OWN
    assert not (play.site / "hook" / "sbudget.lua").exists()


def test_what_breaks_only_in_slurmctld_is_put_back(
    play: Playground, script: Path, tmp_path: Path
) -> None:
    # the site's own, which does not bear our loader beside it
    fault = f'if io.open("{play.site}/hook/job_submit.lua") then error("only here") end\n'
    put(play, script, fault.encode() + OWN)
    done = play.sbudget("hook", "install", "--yes", code=1)
    assert "only here, using previous script" in done.err
    assert "the files are as before, and slurmctld was told; it has no complaint" in done.err
    assert script.read_bytes() == fault.encode() + OWN
    assert not (play.site / "hook" / "sbudget.lua").exists()
    assert job(play)[1] == "site"

    # ours, in an upgrade of one that runs
    put(play, script, OWN)
    play.sbudget("hook", "install", "--yes")
    runs = re.search(r"slurmctld runs .*", play.sbudget("hook", "check").out)
    assert runs is not None
    for name in ("sbudget.lua", "job_submit.lua"):
        (tmp_path / name).write_bytes((ROOT / "etc" / name).read_bytes())
    with (tmp_path / "sbudget.lua").open("r+") as file:
        text = file.read()
        file.seek(0)
        file.write(ONLY_THERE + text)
    done = play.sbudget("hook", "install", "--yes", "--from", str(tmp_path), code=1)
    assert "the logic cannot be loaded" in done.err
    assert runs[0] in play.sbudget("hook", "check").out
    assert job(play, "--qos=funded")[0] == "preemptible"
