"""What surrounds the commands: completion, man pages, and how little `--help` loads."""

import subprocess
import sys
from pathlib import Path

import click
import pytest
from answers_world import facts
from click.shell_completion import ShellComplete
from click.testing import CliRunner

from slurm_budget.cli.main import cli
from slurm_budget.core.snapshot_write import encode

ROOT = Path(__file__).resolve().parents[2]
HEAVY = ("sqlalchemy", "pydantic", "rich", "prometheus_client", "ruamel", "ClusterShell")


def loaded(*argv: str) -> set[str]:
    """The heavy modules that a command loads."""
    script = (
        "import sys; from slurm_budget.cli.main import cli\n"
        f"try: cli.main({list(argv)!r}, prog_name='sbudget')\n"
        "except SystemExit: pass\n"
        f"print('LOADED', *[name for name in {HEAVY!r} if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return set(done.stdout.splitlines()[-1].split()[1:])


@pytest.mark.parametrize("argv", [("--help",), ("why", "--help"), ("balance", "--help")])
def test_help_loads_nothing_heavy(argv: tuple[str, ...]) -> None:
    assert loaded(*argv) == set()


def complete(*words: str, config: str = "") -> list[str]:
    args = ["--config", config, *words[:-1]] if config else list(words[:-1])
    found = ShellComplete(cli, {}, "sbudget", "_SBUDGET_COMPLETE")
    return [item.value for item in found.get_completions(args, words[-1])]


def test_commands_options_and_accounts_are_completed(tmp_path: Path) -> None:
    snapshot, config = tmp_path / "snapshot", tmp_path / "c.toml"
    snapshot.write_text(encode(facts()))
    config.write_text(f'[snapshot]\npath = "{snapshot}"\n[slurm]\nbin = "{tmp_path}"\n')
    assert complete("ba") == ["balance"]
    assert "--json" in complete("why", "--")
    assert complete("balance", "v", config=str(config)) == ["vision"]
    assert complete("fit", "8x4h", "-A", "", config=str(config)) == ["misc", "top", "vision"]
    assert complete("why", "", config=str(config)) == [], "no squeue, no words, no error"
    assert complete("balance", "v", config=str(tmp_path / "none.toml")) == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_completion_script_asks_our_program(shell: str) -> None:
    done = CliRunner().invoke(cli, ["completion", shell])
    assert done.exit_code == 0
    assert "_SBUDGET_COMPLETE" in done.output
    assert "sbudget" in done.output


def commands(command: click.Command, path: str) -> list[str]:
    found = [path]
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            assert child is not None
            found += commands(child, f"{path}-{name}")
    return found


def test_every_command_has_a_man_page_with_its_options() -> None:
    pages = {page.stem: page.read_text() for page in (ROOT / "man").glob("*.1")}
    assert set(pages) == set(commands(cli, "sbudget"))
    assert r"\-\-preemptible" in pages["sbudget-fit"]
    assert ".BR sbudget\\-why (1)" in pages["sbudget"]
    for text in pages.values():
        assert text.startswith(".TH SBUDGET")
        assert ".SH NAME\nsbudget" in text
