"""`sbudget ledger` and `sbudget budget`, as a person types them."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from slurm_budget.cli.context import Context
from slurm_budget.cli.main import main
from slurm_budget.core import admission_text

from .conftest import ROOT, Database, Server

BUDGETS = """\
cluster: main
accounts:
  institute:
    gpus: 32
    managers: [dean]
    accounts:
      vision: {share: 50, managers: [mara], users: {ana: , ben: {gpus: 4}}}
      language: {gpus: 8, users: [cleo, dan]}
"""


class Said(NamedTuple):
    code: int
    out: str
    err: str


Sbudget = Callable[..., Said]


@pytest.fixture
def sbudget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Sbudget:
    """Runs the program with a ledger of its own; `as_user` is who types."""
    config = tmp_path / "slurm-budget.toml"
    config.write_text(
        f'[ledger]\nurl = "sqlite:///{tmp_path / "ledger.db"}"\nadmins = ["adm"]\n'
        f'[slurm]\ncluster = "main"\nbin = "{tmp_path}"\n'
    )
    (tmp_path / "budgets.yaml").write_text(BUDGETS)
    monkeypatch.chdir(tmp_path)

    def run(*argv: str, as_user: str = "root") -> Said:
        monkeypatch.setattr(sys, "argv", ["sbudget", "--config", str(config), *argv])
        monkeypatch.setattr(Context, "user", as_user)
        monkeypatch.setattr("os.geteuid", lambda: 0 if as_user == "root" else 1000)
        with pytest.raises(SystemExit) as done:
            main()
        streams = capsys.readouterr()
        assert isinstance(done.value.code, int)
        return Said(done.value.code, streams.out, streams.err)

    return run


@pytest.fixture
def loaded(sbudget: Sbudget) -> Sbudget:
    assert sbudget("ledger", "init").code == 0
    assert sbudget("budget", "load", "budgets.yaml", "-m", "first").code == 0
    return sbudget


def test_init_twice(sbudget: Sbudget) -> None:
    assert sbudget("budget", "show").code == 7
    assert sbudget("ledger", "init").out.startswith("created: sqlite:///")
    assert sbudget("ledger", "init").out.startswith("there already, untouched: ")
    assert sbudget("ledger", "upgrade").out.startswith("nothing to do: the ledger has schema ")
    assert sbudget("ledger", "check").out == "the ledger is sound\n"


def test_two_sets_from_the_same_base(loaded: Sbudget) -> None:
    done = loaded("budget", "set", "vision", "--gpus", "12", "-m", "Q1 plan", as_user="dean")
    assert done.out.startswith("~ account vision: amount 50% -> 12 GPUs\nchangeset 2: 1 change;")
    second = loaded("budget", "set", "vision", "--gpus", "20", "-m", "mine", "--base", "1")
    assert second.code == 4
    assert "changeset 2 by dean (Q1 plan):\n" in second.err
    assert "    account vision: amount 50% -> 12 GPUs (you change this too)" in second.err
    assert loaded("budget", "load", "budgets.yaml", "-m", "x", "--base", "1").code == 0, "equal"


def test_set_makes_moves_and_removes(loaded: Sbudget) -> None:
    new = ("budget", "set", "robots")
    assert "to make it, name its --parent" in loaded(*new, "--gpus", "4", "-m", "x").err
    done = loaded(*new, "--parent", "institute", "--gpu-hours", "500", "--manager", "rob",
                  "--alias", "Bots", "--gres", "gres/gpu:h100", "--valid-until", "2030-01-01",
                  "--description", "arms", "-m", "new team")  # fmt: skip
    assert done.code == 0
    shown = loaded("budget", "show", "BOTS").out
    for text in ("institute > robots", "500 GPU-hours of h100", "arms", "rob", "bots", "2030-01-0"):
        assert text in shown
    loaded(*new, "--user", "ana", "--share", "25", "-m", "her thesis")
    assert "ana   25%       125" in loaded("budget", "show", "robots").out
    assert loaded(*new, "--user", "zoe", "--remove", "-m", "x").code == 2
    loaded(*new, "--user", "ana", "--remove", "-m", "x")
    loaded(*new, "--none", "--no-manager", "rob", "--no-alias", "bots", "--valid-until", "-",
           "--parent", "vision", "--overcommit", "-m", "x")  # fmt: skip
    tree = loaded("budget", "tree", "--users").out
    assert "    robots (overcommitted)" in tree
    assert "  @ben" in tree
    assert loaded("budget", "set", "vision", "--remove", "-m", "x").code == 2, "robots is below"
    assert loaded(*new, "--remove", "-m", "x").code == 0
    assert "robots" not in loaded("budget", "tree").out


@pytest.mark.parametrize(
    ("argv", "code", "what"),
    [
        (("vision", "-m", "x"), 2, "nothing was asked"),
        (("vision", "--gpus", "1", "--share", "2", "-m", "x"), 2, "more than one amount"),
        (("visio", "--gpus", "1", "-m", "x"), 2, "did you mean vision?"),
        (("vision", "--gpus", "30", "-m", "x"), 2, "add up to 6,384 GPU-hours"),
        (("vision", "--gpus", "1"), 2, "-m"),
        (("vision", "--valid-from", "soon", "-m", "x"), 2, "not a moment"),
        (("vision", "--user", "ana", "--gres", "x", "-m", "x"), 2, "of accounts, not of users"),
        (("vision", "--no-manager", "eve", "-m", "x"), 2, "has no manager 'eve' to take away"),
        (("vision", "--no-manager", "eve", "-m", "x"), 2, "it has: mara"),
        (("vision", "--no-alias", "seeing", "-m", "x"), 2, "mend: it has: none"),
    ],
)
def test_set_says_what_is_wrong(
    loaded: Sbudget, argv: tuple[str, ...], code: int, what: str
) -> None:
    done = loaded("budget", "set", *argv)
    assert (done.code, what in done.err) == (code, True), done


def test_managers_and_admins(loaded: Sbudget) -> None:
    more = ("budget", "set", "vision", "--gpus", "17", "-m", "more")
    refused = loaded(*more, as_user="mara")
    assert refused.code == 4
    assert "mara manages neither account institute nor anything above it" in refused.err
    below = ("budget", "set", "vision", "--user", "ana", "--gpus", "2", "-m", "x")
    assert loaded(*below, as_user="mara").code == 0
    assert loaded(*more, "--as", "dean", as_user="eve").code == 4
    assert loaded(*more, "--as", "dean", as_user="adm").code == 0
    assert "adm for dean: more" in loaded("budget", "log", "-n", "1").out


def test_log_diff_undo_export(loaded: Sbudget, tmp_path: Path) -> None:
    loaded("budget", "set", "vision", "--gpus", "12", "-m", "Q1 plan")
    assert loaded("budget", "diff", "1", "2").out == "~ account vision: amount 50% -> 12 GPUs\n"
    assert loaded("budget", "diff", "2").out == "no difference\n"
    assert loaded("budget", "diff", "1h", "now").out.count("+ account") == 3
    assert loaded("budget", "diff", "9").code == 2
    log = loaded("budget", "log").out.splitlines()
    assert log[0].startswith("changeset 2  ")
    assert log[0].endswith("root: Q1 plan")
    assert loaded("budget", "log", "language").out.count("changeset") == 1
    dry = loaded("budget", "undo", "2", "-m", "no", "--dry-run")
    assert dry.out.endswith("1 change, none made (--dry-run)\n")
    assert loaded("budget", "undo", "2", "-m", "no").code == 0
    assert "undoes 2: no" in loaded("budget", "log", "-n", "1").out
    assert loaded("budget", "export", "out.yaml").code == 0
    again = loaded("budget", "load", "out.yaml", "-m", "same")
    assert again == Said(0, "nothing to change\n", "")
    old = loaded("budget", "export", "--at", "2").out
    assert "gpus: 12" in old
    assert "# changeset 2" in old


def test_a_user_whom_nobody_knows_is_warned_of_and_set_all_the_same(
    loaded: Sbudget, tmp_path: Path
) -> None:
    people = tmp_path / "sacctmgr"
    people.write_text("#!/bin/sh\nprintf 'ana|\\nmara|\\n'\n")
    people.chmod(0o755)
    slip = loaded("budget", "set", "vision", "--user", "anna", "--gpus", "1", "-m", "x")
    assert slip.code == 0
    assert "warning: neither Slurm nor this machine knows a user 'anna'" in slip.err
    slip = loaded("budget", "set", "vision", "--manager", "marra", "-n", "-m", "x")
    assert "'marra'" in slip.err
    for known in ("ana", "root", "mara"):
        assert loaded("budget", "set", "language", "--manager", known, "-m", "x").err == ""
    assert loaded("budget", "set", "vision", "--user", "anna", "--remove", "-m", "x").err == ""
    people.write_text("#!/bin/sh\nexit 1\n")  # slurmdbd is away: nobody is called wrong
    assert loaded("budget", "set", "language", "--manager", "marra", "-m", "x").err == ""


@pytest.mark.parametrize(
    "argv",
    [
        ["tree"],
        ["tree", "--at", "1d"],
        ["show"],
        ["log"],
        ["diff", "0"],
        ["export"],
        ["undo", "1", "-m", "x"],
        ["set", "lab", "--parent", "root", "-m", "x"],
    ],
)
def test_a_cluster_that_is_not_there_is_said(loaded: Sbudget, argv: list[str]) -> None:
    said = loaded("budget", *argv, "--cluster", "mian")
    assert (said.code, said.out) == (2, "")
    assert "nothing of a cluster 'mian'\n  mend: did you mean main?" in said.err


def test_a_log_of_an_account_that_never_was_is_an_error(loaded: Sbudget) -> None:
    said = loaded("budget", "log", "visoin")
    assert (said.code, said.out) == (2, "")
    assert "never had a budget for account 'visoin'\n  mend: did you mean vision?" in said.err
    loaded("budget", "set", "language", "--remove", "-m", "closed")
    assert "- account language" in loaded("budget", "log", "Language", "-n", "1").out


def test_a_log_of_less_than_one_change_is_refused(loaded: Sbudget) -> None:
    assert loaded("budget", "log", "-n", "-1").code == 2
    assert loaded("budget", "log", "-n", "0").code == 2


@pytest.mark.parametrize("command", ["tree", "export"])
def test_a_changeset_that_is_not_there_is_said(loaded: Sbudget, command: str) -> None:
    said = loaded("budget", command, "--at", "9")
    assert (said.code, said.out) == (2, "")
    assert "there is no changeset 9\n  mend: see `sbudget budget log`" in said.err


def test_a_budget_is_the_same_figure_wherever_it_is_shown(loaded: Sbudget, tmp_path: Path) -> None:
    """A third of 8 GPU-hours is neither 2.6 nor 2.7."""
    (tmp_path / "budgets.yaml").write_text(
        "cluster: main\naccounts:\n  lab:\n    gpu_hours: 8\n    accounts: {team: {share: 33}}\n"
    )
    loaded("budget", "load", "budgets.yaml", "-m", "small")
    for argv in (
        ("budget", "tree"),
        ("budget", "show"),
        ("budget", "show", "team"),
        ("report", "budgets"),
        ("report", "across"),
        ("top", "--once"),
    ):
        said = loaded(*argv).out
        assert "2.64" in said, argv
        assert "2.6 " not in said, argv
        assert "2.7" not in said, argv
    assert "funded; protected for 1 h from team's budget (2.64 of 2.64 GPU-hours left)" in (
        admission_text.funded(3600, None, "team's budget", 9_504_000, 9_504_000)
    )


def test_show_for_programs(loaded: Sbudget) -> None:
    found = json.loads(loaded("budget", "show", "--json").out)
    assert [one["account"] for one in found] == ["institute", "vision", "language"]
    assert found[1]["budget"] == 16 * 604800 * 1000
    assert loaded("budget", "show").out.splitlines()[0].split() == [
        "account", "given", "budget", "charged", "balance", "use", "standing",
    ]  # fmt: skip


def test_import_lists_bad_rows_and_twice_is_once(loaded: Sbudget) -> None:
    dump = str(ROOT / "tests" / "data" / "sacct_bad.psv")
    first = loaded("ledger", "import", dump)
    assert first.code == 3
    assert first.out == f"{dump}: 3 new, 0 corrected, 1 as before; 8 bad rows left out\n"
    assert first.err.splitlines()[1].startswith(f"{dump}: line 4: 9 columns instead of 15 (torn?)")
    again = loaded("ledger", "import", dump)
    assert again.code == 3
    assert "0 new, 0 corrected, 4 as before" in again.out
    assert loaded("ledger", "import", "nowhere.psv").code == 2
    assert loaded("ledger", "check").code == 0


def test_backup(loaded: Sbudget) -> None:
    done = loaded("ledger", "backup", "copy.db")
    assert done.out == (
        "backed up to copy.db: 1 budget_changesets, 1 names, 3 budget_entries,"
        " 4 budget_entry_users\n"
    )
    assert loaded("ledger", "backup", "copy.db").code == 2


def test_rebuild_leaves_every_figure_as_it_was(loaded: Sbudget, tmp_path: Path) -> None:
    import time

    now = int(time.time())
    rows = [
        "\\037".join(
            [
                *(str(n), str(n), "main", "ana", "vision", "funded-vision", "gpu", str(now - 9000)),
                *(str(now - 8000 + n), str(now - 4000), "1", "00:00:00", "COMPLETED"),
                *("gres/gpu:h100=4,gres/gpu=4", "1", "Unknown", "60"),
                "sbudget:1:c=funded:a=funded:m=600:w=fits",
            ]
        )
        for n in range(5)
    ]
    sacct = tmp_path / "sacct"
    sacct.write_text("#!/bin/sh\nprintf '" + "\\n".join(rows) + "\\n'\n")
    sacct.chmod(0o755)
    first = loaded("ledger", "rebuild")
    assert first.code == 3, "the runs were not there yet"
    assert "charge of ana in vision, h100 GPUs: 0 -> 12000000 GPU-ms" in first.out
    before = loaded("budget", "show").out
    again = loaded("ledger", "rebuild")
    assert (again.code, again.out) == (
        0,
        "sacct: 0 new, 0 corrected, 5 as before\nno figure changed\n",
    )
    assert loaded("budget", "show").out == before
    sacct.write_text("#!/bin/sh\necho 'sacct: error: no' >&2; exit 1\n")
    assert loaded("ledger", "rebuild").code == 6


@pytest.mark.mariadb
def test_the_same_on_mariadb(loaded: Sbudget, mariadb: Server, tmp_path: Path) -> None:
    database: Database = mariadb.database()
    (tmp_path / "slurm-budget.toml").write_text(
        f'[ledger]\nurl = "{database.url}"\npassword_file = "{database.password_file}"\n'
        '[slurm]\ncluster = "main"\n'
    )
    assert loaded("budget", "show").code == 7
    assert loaded("ledger", "init").out.startswith("created: mariadb+pymysql://sbudget@127.0.0.1")
    assert loaded("budget", "load", "budgets.yaml", "-m", "first").code == 0
    assert loaded("ledger", "import", str(ROOT / "tests/data/sacct_bad.psv")).code == 3
    assert loaded("budget", "show").code == 0
    assert loaded("ledger", "check").out == "the ledger is sound\n"
    assert loaded("ledger", "backup", "copy.db").code == 0


def test_pause_needs_a_reason_and_says_who_paused(loaded: Sbudget) -> None:
    assert loaded("pause").code == 2
    assert loaded("resume").out == "not paused: nothing to do\n"
    assert loaded("pause", "-m", "repairs", as_user="mara").code == 0
    again = loaded("pause", "-m", "more repairs")
    assert again.code == 0
    assert "already paused by mara since " in again.out
    assert ": repairs; nothing changed" in again.out
    assert "mara had paused it at " in loaded("resume", "-m", "done").out
    assert loaded("resume").out == "not paused: nothing to do\n"
