"""Two clusters in one ledger: each with budgets of its own, and one budget for both."""

import json
import re
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from slurm_budget.cli.main import main
from slurm_budget.ledger.store import Ledger
from slurm_budget.settings import LedgerSettings, Settings, SlurmSettings, SnapshotSettings
from slurm_budget.state.budget import Amount, BudgetNode, BudgetTree
from slurm_budget.state.jobs import Queue, Run
from slurm_budget.usecases.fence import Fence
from slurm_budget.usecases.sweep import sweep
from slurm_budget.usecases.swept import Swept

from .fake_slurm import FakeSlurm
from .test_whole_sweep import NOW, Slurm

HOUR = 3_600_000
RUN = Run(
    "a", 1, NOW - 7200, NOW - 3600, NOW - 7200, "ana", "vision", "funded-vision", "gpu",
    "COMPLETED", {"h100": 2}, 1, 0, "funded", 3600,
)  # fmt: skip
"""An hour on two GPUs: it charges 2 GPU-hours."""


def tree(cluster: str, *more: BudgetNode) -> BudgetTree:
    vision = BudgetNode("vision", "lab", Amount("gpu_hours", 10), aliases=("seeing",))
    nodes = (BudgetNode("lab", None, Amount("gpu_hours", 20)), vision, *more)
    return BudgetTree(cluster, {node.name: node for node in nodes})


class There(Slurm):
    """A cluster with the accounts of the tree and nothing in its queue."""

    def queue(self, *, shares: bool = True) -> Queue:
        return Queue([], [])

    def accounts(self, cluster: str) -> dict[str, str]:
        return {"root": "", "lab": "root", "vision": "lab"}


@pytest.fixture
def both(ledger: Ledger) -> Ledger:
    for cluster in ("a", "b"):
        ledger.apply_changeset(cluster, tree(cluster), "root", "root", "first", 0, NOW - 100)
    ledger.record_runs(
        [RUN, replace(RUN, cluster="b", job_id=2, gpus={"h100": 3})], source="test", now=NOW
    )
    ledger.set_cursor("b", NOW - 60)
    return ledger


def swept(ledger: Ledger, cluster: str, folder: Path, across: tuple[str, ...], now: int) -> Swept:
    fence = Fence(ledger, cluster, f"{cluster}:1", 60, 900, lambda: now)
    fence.take()
    settings = Settings(
        ledger=LedgerSettings(across=across),
        slurm=SlurmSettings(cluster=cluster),
        snapshot=SnapshotSettings(path=folder / cluster),
    )
    source = lambda name: lambda since, until: iter(())  # noqa: E731
    return sweep(There(), ledger, source, settings, now, fence=fence)  # type: ignore[arg-type]


def balances(found: Swept) -> dict[str, float]:
    return {name: (it.balance or 0) / HOUR for name, it in found.world.accounts.items()}


def test_each_cluster_has_budgets_a_lease_and_a_snapshot_of_its_own(
    both: Ledger, tmp_path: Path
) -> None:
    assert both.clusters() == ["a", "b"]
    a = swept(both, "a", tmp_path, (), NOW)
    b = swept(both, "b", tmp_path, (), NOW)  # while a holds its lease
    assert (a.idle, b.idle) == ("", "")
    assert balances(a) == {"lab": 18, "vision": 8}
    assert balances(b) == {"lab": 17, "vision": 7}
    assert "\ta\t" in (tmp_path / "a").read_text().splitlines()[0]
    assert "\tb\t" in (tmp_path / "b").read_text().splitlines()[0]
    assert [len(both.last_sweeps(9, name)) for name in "ab"] == [1, 1]


def test_a_budget_across_clusters_has_one_balance(both: Ledger, tmp_path: Path) -> None:
    """It is charged in each for what ran in all; its standing is of each cluster alone, and what
    is not named stays apart."""
    apart = swept(both, "a", tmp_path, (), NOW)
    found = {name: swept(both, name, tmp_path, ("vision",), NOW) for name in "ab"}
    assert {name: balances(one)["vision"] for name, one in found.items()} == {"a": 5, "b": 5}
    assert {name: balances(one)["lab"] for name, one in found.items()} == {"a": 18, "b": 17}
    assert found["a"].world.accounts["vision"].use == apart.world.accounts["vision"].use
    line = next(x for x in (tmp_path / "a").read_text().splitlines() if x.startswith("A\tvision\t"))
    assert f"\t{5 * HOUR}\t" in line, "the hook promises what is left on all"
    nested = swept(both, "a", tmp_path, ("lab", "vision"), NOW)
    assert balances(nested) == {"lab": 15, "vision": 5}, "each counts once"


def test_an_account_is_the_same_under_a_former_name_and_may_be_missing(
    both: Ledger, tmp_path: Path
) -> None:
    assert balances(swept(both, "a", tmp_path, ("seeing", "nobody"), NOW))["vision"] == 5
    vision = BudgetNode("seeing", None, Amount("gpu_hours", 10))
    _, base = both.budgets("b")
    both.apply_changeset("b", BudgetTree("b", {"seeing": vision}), "root", "root", "x", base, NOW)
    assert balances(swept(both, "a", tmp_path, ("seeing",), NOW))["vision"] == 8, "vision has gone"


def test_a_cluster_that_was_not_read_for_long_is_named(both: Ledger, tmp_path: Path) -> None:
    assert "may lack" not in swept(both, "a", tmp_path, ("vision",), NOW).sentence()
    both.set_cursor("b", NOW - 3600)
    said = swept(both, "a", tmp_path, ("vision",), NOW).sentence()
    assert "budgets across clusters may lack the newest runs of b" in said
    assert "may lack" not in swept(both, "a", tmp_path, (), NOW).sentence()


Sbudget = Callable[..., tuple[int, str, str]]


@pytest.fixture
def sbudget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Sbudget:
    """The program on cluster a, with one ledger for a and b that share `vision`."""
    FakeSlurm(tmp_path)
    config = tmp_path / "c.toml"
    config.write_text(
        f'[ledger]\nurl = "sqlite:///{tmp_path}/ledger.db"\nacross = ["vision"]\n'
        f'[slurm]\ncluster = "a"\nbin = "{tmp_path}"\n'
    )
    for cluster in "ab":
        (tmp_path / f"{cluster}.yaml").write_text(
            f"cluster: {cluster}\naccounts:\n  vision: {{gpu_hours: 10}}\n  only-{cluster}: "
            "{gpus: 1, gres: 'gres/gpu:a100'}\n"
        )

    def run(*argv: str) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["sbudget", "--config", str(config), *argv])
        with pytest.raises(SystemExit) as done:
            main()
        said = capsys.readouterr()
        assert isinstance(done.value.code, int)
        return done.value.code, said.out, said.err

    run("ledger", "init")
    return run


def test_a_file_of_another_cluster_needs_its_name(sbudget: Sbudget, tmp_path: Path) -> None:
    load = ("budget", "load", str(tmp_path / "b.yaml"), "-m", "x")
    code, _, err = sbudget(*load)
    assert code == 4
    assert "its budgets are of cluster b, not of a; nothing was changed" in err
    assert "load it with --cluster b" in err
    assert sbudget("budget", "log", "--cluster", "b")[1] == ""
    assert sbudget(*load, "--cluster", "c")[0] == 4
    code, out, err = sbudget(*load, "--cluster", "b")
    assert (code, err) == (0, "")
    assert "changeset 1: 2 changes" in out


def test_a_type_that_is_not_accounted_is_told_when_it_is_loaded(
    sbudget: Sbudget, tmp_path: Path
) -> None:
    load = ("budget", "load", str(tmp_path / "a.yaml"), "-m", "x")
    code, _, err = sbudget(*load)
    assert code == 0, "a hint is no failure"
    assert "warning: slurmctld does not account gres/gpu:a100, which budgets name" in err
    assert "AccountingStorageTRES=cpu,gres/gpu,gres/gpu:a100" in err
    (tmp_path / "scontrol").write_text("#!/bin/sh\nexit 1\n")
    assert sbudget(*load) == (0, "nothing to change\n", "")


def test_the_report_shows_each_cluster_and_all(sbudget: Sbudget, tmp_path: Path) -> None:
    for cluster in "ab":
        file = str(tmp_path / f"{cluster}.yaml")
        sbudget("budget", "load", file, "-m", "x", "--cluster", cluster)
    with Ledger.open(f"sqlite:///{tmp_path}/ledger.db") as ledger:
        now = int(time.time())
        run = replace(RUN, start=now - 7200, end=now - 3600)
        ledger.record_runs([run, replace(run, cluster="b", gpus={"h100": 3})], source="t", now=now)
        ledger.record_sweep("a", now, "swept", 0.1)
    code, out, _ = sbudget("report", "across", "-P")
    assert code == 0
    assert out.splitlines() == [
        "Account|Cluster|Budget|Charged|Left|Use",
        "vision|a|10|2||2",
        "vision|b|10|3||3",
        "vision|(all)|10|5|5|5",
        "only-a|a|168|0|168|0",
        "only-b|b|168|0|168|0",
    ]
    title, *lines, a, b = sbudget("report", "across")[1].splitlines()
    assert re.fullmatch(r"Budgets of a, b, [0-9T:-]+ - [0-9T:-]+, GPU-hours", title)
    assert lines[4].split() == ["vision", "(all)", "10", "5", "5", "5"]
    assert (a[:12], b) == (
        "a: As of the",
        "b: No sweep has looked yet; shown is what was imported.",
    )
    bare = sbudget("report", "across", "-n", "-t", "minutes")[1].splitlines()
    assert bare[2].split() == ["vision", "(all)", "600", "300", "300", "300"]
    share = sbudget("report", "across", "--csv", "-t", "percent")[1].splitlines()
    assert share[0] == "account,cluster,budget,charge,left,use"
    assert share[3] == "vision,(all),100.00%,50.00%,50.00%,50.00%"
    assert "choose one" in sbudget("report", "across", "--csv", "--json")[2]
    found = json.loads(sbudget("report", "across", "--json")[1])["rows"][2]
    assert (found["cluster"], found["left"]) == ("", 5 * HOUR)
    for cluster in ("a", "b"):
        lines = sbudget("budget", "show", "--cluster", cluster)[1].splitlines()
        assert lines[1].split()[3:7] == ["10", "5", "5", "2" if cluster == "a" else "3"]
