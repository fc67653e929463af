"""The ledger beside a real slurmdbd."""

import json

from playground import Playground
from story import ANA, BEN, CLEO


def figures(site: Playground) -> list[list[str]]:
    """Account, funded, preemptible and charged GPU-milliseconds: they end with the runs."""
    rows = json.loads(site.sbudget("report", "budgets", "--json").out)["accounts"]
    return [[r["account"], r["funded"], r["preemptible"], r["charge"]] for r in rows]


def test_rebuild_leaves_every_figure_as_it_was(site: Playground) -> None:
    jobs = [
        site.sbatch(ANA, "--gres=gpu:8", "--qos=funded", "--comment=min-runtime=2s", "4")[0],
        site.sbatch(BEN, "--gres=gpu:8", "--qos=funded", "2")[0],
        site.sbatch(CLEO, "--gres=gpu:4", "2")[0],
    ]
    site.wait("all finish", lambda: all(site.rows(job)[-1][1] == "COMPLETED" for job in jobs))
    site.sbudget("sweep")
    before = figures(site)
    assert any(row[1] for row in before)
    site.sbudget("ledger", "rebuild")
    # the window slides: what left it since is gone from both, what is in it is the same
    after = figures(site)
    assert [row[0] for row in after] == [row[0] for row in before]
    for old, new in zip(before, after, strict=True):
        assert all(b <= a for a, b in zip(old[1:], new[1:], strict=True)), (old, new)
    site.sbudget("ledger", "check")


def test_the_second_of_two_changes_from_one_base_is_refused(site: Playground) -> None:
    first = site.sbudget("budget", "log").out
    site.sbudget("budget", "set", "vision", "--gpus", "15", "-m", "first")
    base = site.sbudget("budget", "log", code=0).out
    assert "first" in base
    assert base != first
    done = site.sbudget(
        "budget", "set", "vision", "--gpus", "14", "-m", "second", "--base", "1", code=4
    )
    assert "16 GPUs" in done.err
    assert "15 GPUs" in done.err
    site.sbudget("budget", "set", "vision", "--gpus", "16", "-m", "as it was")
    assert site.sbudget("plan", "--exit-code").code == 0
