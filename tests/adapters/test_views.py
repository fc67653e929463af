"""`sbudget top`, `metrics` and `balance` as programs, where Slurm answers and where it does not."""

import os
import pty
import re
import select
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from urllib.request import urlopen

import pytest
from prometheus_client.parser import text_string_to_metric_families

from slurm_budget.core.snapshot_write import encode
from slurm_budget.ledger.store import Ledger
from slurm_budget.state.budget import Amount, BudgetNode, BudgetTree
from slurm_budget.state.jobs import Run
from slurm_budget.state.snapshot import AccountFacts, Policy, Snapshot

SBUDGET = str(Path(sys.executable).parent / "sbudget")
HOUR = 3_600_000


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """A ledger with one budget, a snapshot, and no Slurm at all."""
    now = int(time.time())
    tree = BudgetTree("main", {"vision": BudgetNode("vision", None, Amount("gpus", 4))})
    url = f"sqlite:///{tmp_path}/ledger.db"
    with Ledger.open(url, create=True) as ledger:
        ledger.apply_changeset(
            "main", tree, "root", "root", "test", 0, now - 7200, admins=("root",), window=604800
        )
        ledger.record_sweep("main", now, "swept: \x1b[2Jhello.", 0.5)
    facts = AccountFacts("vision", None, "funded-vision", 9 * HOUR, 5 * HOUR, 6 * HOUR)
    (tmp_path / "snapshot").write_text(
        encode(Snapshot("main", now, now, Policy(), {"vision": facts}))
    )
    (tmp_path / "c.toml").write_text(
        f'[ledger]\nurl = "{url}"\n[slurm]\ncluster = "main"\nbin = "{tmp_path}/none"\n'
        f'[snapshot]\npath = "{tmp_path}/snapshot"\n'
    )
    return os.environ | {"SBUDGET_CONFIG": str(tmp_path / "c.toml"), "TERM": "xterm"}


def run(env: dict[str, str], *argv: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([SBUDGET, *argv], env=env, capture_output=True, text=True, check=False)


def values(text: str) -> dict[tuple[str, ...], float]:
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def wait_for(what: str, condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.05)


def test_metrics_go_into_a_file_and_say_that_slurm_is_down(
    env: dict[str, str], tmp_path: Path
) -> None:
    file = tmp_path / "out" / "sbudget.prom"
    file.parent.mkdir()
    done = run(env, "metrics", "-o", str(file))
    assert done.returncode == 6
    assert "slurm: " in done.stderr
    found = values(file.read_text())
    assert found["slurm_budget_up", "slurm"] == 0
    assert found["slurm_budget_up", "ledger"] == 1
    assert found["slurm_budget_left_gpu_seconds", "vision"] == 5 * 3600
    assert found["slurm_budget_sweeps_total",] == 1
    assert not any(name[0] == "slurm_budget_running_gpus" for name in found)
    assert [path.name for path in file.parent.iterdir()] == ["sbudget.prom"]


def test_metrics_are_served_afresh_at_each_scrape(env: dict[str, str], tmp_path: Path) -> None:
    port = free_port()
    with subprocess.Popen(
        [SBUDGET, "metrics", "--listen", f"127.0.0.1:{port}"], env=env, stderr=subprocess.PIPE
    ) as server:
        try:
            assert server.stderr is not None
            assert b"serving http://127.0.0.1" in server.stderr.readline()
            url = f"http://127.0.0.1:{port}/metrics"
            first = values(urlopen(url).read().decode())
            (tmp_path / "snapshot").unlink()
            second = values(urlopen(url).read().decode())
        finally:
            server.terminate()
    assert first["slurm_budget_up", "snapshot"] == 1
    assert second["slurm_budget_up", "snapshot"] == 0
    assert ("slurm_budget_snapshot_timestamp_seconds",) not in second
    assert "is no ADDR:PORT" in run(env, "metrics", "--listen", "9810x").stderr


def free_port() -> int:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_top_prints_once_into_a_pipe(env: dict[str, str]) -> None:
    done = run(env, "top")
    assert done.returncode == 6
    assert "(not read: slurm: the command" in done.stdout
    assert "swept: ?[2Jhello." in done.stdout
    assert "\x1b" not in done.stdout


def test_top_is_left_by_q(env: dict[str, str]) -> None:
    ours, theirs = pty.openpty()
    with subprocess.Popen([SBUDGET, "top"], env=env, stdin=theirs, stdout=theirs) as process:
        os.close(theirs)
        seen = b""

        def shown() -> bool:
            nonlocal seen
            if select.select([ours], [], [], 0.1)[0]:
                seen += os.read(ours, 65536)
            return b"q leaves" in seen

        wait_for("the view", shown)
        os.write(ours, b"q")
        assert process.wait(20) == 0
    os.close(ours)
    assert b"vision" in seen


def test_balance_says_what_it_did_not_read(env: dict[str, str], tmp_path: Path) -> None:
    done = run(env, "balance", "VISION")
    assert done.returncode == 0
    assert done.stdout.startswith("vision: 5 of 9 GPU-hours are left for new jobs")
    assert "Charged in the window: 0" in done.stdout
    assert "(not read: slurm: " in done.stderr
    (tmp_path / "ledger.db").rename(tmp_path / "elsewhere.db")
    done = run(env, "balance", "vision")
    assert "Charged" not in done.stdout
    assert "(not read: ledger: this user may not read it, or it is not there)" in done.stderr
    (tmp_path / "snapshot").unlink()
    assert run(env, "balance", "vision").returncode == 1


def test_why_without_slurm_is_no_answer(env: dict[str, str]) -> None:
    done = run(env, "why", "7")
    assert done.returncode == 6
    assert done.stdout == ""


def test_what_balance_says_is_charged_is_of_the_moment_of_what_is_left(
    env: dict[str, str], tmp_path: Path
) -> None:
    """9 of budget, 1 charged by then and 5 left: 3 are promised, whatever was charged since."""
    then = int(time.time()) - 1800
    job = Run(
        "main", 1, then - 3600, None, then - 3600, "ana", "vision", "funded-vision", "gpu",
        "RUNNING", {"h100": 1}, 1, 0, "funded", 28800,
    )  # fmt: skip
    with Ledger.open(f"sqlite:///{tmp_path}/ledger.db") as ledger:
        ledger.record_runs([job], source="test", now=then + 1800)
    facts = AccountFacts("vision", None, "funded-vision", 9 * HOUR, 5 * HOUR, 0)
    snapshot = Snapshot("main", then, then, Policy(), {"vision": facts})
    (tmp_path / "snapshot").write_text(encode(snapshot))
    said = run(env, "balance", "vision").stdout
    assert re.search(r"left for new jobs \(as of the sweep at [0-9:]+, 30 min( . s)? ago\)", said)
    assert "Charged in the window: 1; promised to jobs that run or wait: 3." in said
