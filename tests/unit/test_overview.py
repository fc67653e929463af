"""The views of everything: teams, top's text, metrics, and the dashboard that shows them."""

import io
import json
import re
from fractions import Fraction
from pathlib import Path

import pytest
from answers_world import HOUR, NOW, POLICY, clock, free, job, node, preemptible, run
from prometheus_client.parser import text_string_to_metric_families
from rich.console import Console

from slurm_budget.core import overview
from slurm_budget.core.standing import Standing
from slurm_budget.errors import SbudgetError, SlurmUnreachable
from slurm_budget.ledger.sweeping import Sweep, Totals
from slurm_budget.render import metrics, top
from slurm_budget.usecases.overview import Overview

ROOT = Path(__file__).resolve().parents[2]
PARENTS: dict[str, str | None] = {"top": None, "vision": "top", "robots": "top"}
NAMES = {name: name for name in PARENTS} | {"seeing": "vision"}
QUEUE = [
    run(1, 600), run(2, 60, "n2", account="seeing"), free(3, 60, "n3", account="robots"),
    job(4, tasks=3, at_once=2), preemptible(5, "budget", account="robots"),
    free(6, 60, "n4", account="elsewhere", gpus={"": 2}), run(7, 60, gpus={}),
    job(8, account="robots", reason="JobHeldUser"),
]  # fmt: skip
NODES = [node(n) for n in range(1, 5)] + [node(5, flags=frozenset({"DRAIN"}))]
LOADS = overview.loads(QUEUE, NODES, NAMES, POLICY, NOW)
STANDINGS = {
    "top": Standing("top", 100 * HOUR, 20 * HOUR, 0, 50 * HOUR),
    "vision": Standing("vision", 80 * HOUR, 20 * HOUR, 0, 40 * HOUR),
    "robots": Standing("robots", 0, 0, 0, HOUR),
}


def seen(**given: object) -> Overview:
    fields: dict[str, object] = {
        "cluster": "main", "now": NOW,
        "teams": overview.teams(PARENTS, STANDINGS, {"vision": (80 * HOUR, 55 * HOUR)}, LOADS),
        "loads": LOADS, "gpus": overview.gpus(QUEUE, NODES),
        "sweeps": [Sweep(NOW - 20, "main", "swept: [red]evil[/red] \x1b[2J.", 0.25)],
        "totals": Totals(7, {"vision": 2}, {"vision": 16}),
        "observed_at": NOW - 20, "paused": "", **given,
    }  # fmt: skip
    return Overview(**fields)  # type: ignore[arg-type]


def test_loads_count_gpus_and_jobs_by_account_and_class() -> None:
    vision, robots, other = LOADS["vision"], LOADS["robots"], LOADS["other"]
    assert (vision.funded_gpus, vision.funded_jobs) == (16, 2)
    assert (vision.waiting_funded_gpus, vision.waiting_funded_jobs) == (16, 3)
    assert vision.owed_gpus == 16
    assert (robots.preemptible_gpus, robots.waiting_preemptible_gpus) == (8, 8)
    assert robots.owed_gpus == 0, "a held job is not demand"
    fits = overview.loads(QUEUE, NODES, NAMES, POLICY, NOW, owing={99})
    assert fits["vision"].owed_gpus == 0, "what a sweep does not call owed is not"
    assert other.preemptible_gpus == 2


def test_a_parent_has_what_is_below_it() -> None:
    teams = {team.account: team for team in seen().teams}
    assert [team.depth for team in seen().teams] == [0, 1, 1, 0]
    assert teams["top"].load is not None
    assert (teams["top"].load.funded_gpus, teams["top"].load.preemptible_gpus) == (16, 8)
    assert (teams["vision"].left, teams["vision"].standing) == (55 * HOUR, Fraction(1, 2))


def test_the_plain_view() -> None:
    lines = top.plain(seen(), clock).splitlines()
    assert lines[0] == (
        "main  T+0; 26 of 40 GPUs held; 8 on nodes that are down or drained; last sweep 20 s ago"
    )
    (vision,) = [line for line in lines if "vision" in line]
    assert vision.split() == [
        "vision",
        *["80", "55", "50%", "16", "+", "0", "16", "+", "0", "16"],
    ]
    assert "inf" in next(line for line in lines if "robots" in line)
    assert lines[-1] == "T-20  swept: [red]evil[/red] ?[2J."


def test_the_live_view_reads_no_markup_and_no_control_characters() -> None:
    console = Console(width=120, force_terminal=True, record=True, file=io.StringIO())
    console.print(top.live(seen(), clock))
    text = console.export_text()
    assert "[red]evil[/red] ?[2J." in text
    assert "vision" in text


def test_what_was_not_read_is_empty_in_the_view_and_absent_in_the_metrics() -> None:
    down = SlurmUnreachable("squeue failed (exit 1)")
    blind = seen(
        teams=overview.teams(PARENTS, STANDINGS, {}, None), loads=None, gpus=None,
        failed={"slurm": down},
    )  # fmt: skip
    text = top.plain(blind, clock)
    assert "(not read: slurm: squeue failed (exit 1))" in text
    assert " 0 + 0" not in text
    found = names(metrics.text(blind))
    assert "slurm_budget_budget_gpu_seconds" in found
    assert not any("running" in name or "waiting" in name or "gpus" in name for name in found - {
        "slurm_budget_requeued_gpus_total"})  # fmt: skip
    nothing = seen(
        teams=[], loads=None, gpus=None, sweeps=None, totals=None, observed_at=None,
        failed={name: SbudgetError("x") for name in metrics.SOURCES},
    )  # fmt: skip
    assert samples(metrics.text(nothing)) == {
        ("slurm_budget_up", "slurm"): 0,
        ("slurm_budget_up", "ledger"): 0,
        ("slurm_budget_up", "snapshot"): 0,
    }


def samples(text: str) -> dict[tuple[str, ...], float]:
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def names(text: str) -> set[str]:
    return {key[0] for key in samples(text)}


def test_metrics_have_base_units_and_are_read_by_prometheus() -> None:
    found = samples(metrics.text(seen()))
    assert found["slurm_budget_budget_gpu_seconds", "vision"] == 80 * 3600
    assert found["slurm_budget_left_gpu_seconds", "vision"] == 55 * 3600
    assert found["slurm_budget_standing_ratio", "robots"] == float("inf")
    assert found["slurm_budget_running_gpus", "vision", "funded"] == 16
    assert found["slurm_budget_running_gpus", "other", "preemptible"] == 2
    assert found["slurm_budget_requeues_total", "vision"] == 2
    assert found["slurm_budget_sweeps_total",] == 7
    assert found["slurm_budget_gpus", "unusable"] == 8
    assert sum(v for k, v in found.items() if k[0] == "slurm_budget_running_gpus") == 26
    for name in names(metrics.text(seen())):
        assert re.fullmatch(r"slurm_budget_[a-z_]+", name)


def test_labels_stay_few_whatever_accounts_jobs_name() -> None:
    many = [free(n, 60, account=f"account{n}") for n in range(500)]
    loads = overview.loads(many, NODES, NAMES, POLICY, NOW)
    assert set(loads) == {*PARENTS, "other"}


def test_the_dashboard_shows_every_metric_and_no_other() -> None:
    board = json.loads((ROOT / "etc" / "grafana-dashboard.json").read_text())
    shown = {
        name
        for panel in board["panels"]
        for target in panel["targets"]
        for name in re.findall(r"slurm_budget_[a-z_]+", target["expr"])
    }
    assert shown == names(metrics.text(seen()))
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])


@pytest.mark.parametrize("standing", [None, Fraction(1, 3)])
def test_a_team_without_figures_has_empty_cells(standing: Fraction | None) -> None:
    team = overview.Team("evil\x1b[2J", 1, standing=standing)
    shown = "" if standing is None else "33%"
    assert top.cells(team) == ("  evil?[2J", "", "", shown, "", "", "")
