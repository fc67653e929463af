"""What the demo and docs/managers.md tell a reader to type: it works as it stands there."""

import re
import shlex
import subprocess
import sys
import time
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType

import pytest

from slurm_budget.ledger.store import Ledger

from .conftest import ROOT
from .test_ledger_cli import Sbudget, sbudget

__all__ = ["sbudget"]


@pytest.fixture
def demo(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """scripts/demo, not run."""
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    spec = spec_from_loader("demo", SourceFileLoader("demo", str(ROOT / "scripts" / "demo")))
    assert spec is not None
    assert spec.loader is not None
    made = module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def examples() -> list[str]:
    """The commands of docs/managers.md, in their order."""
    text = (ROOT / "docs" / "managers.md").read_text()
    return re.findall(r"^    (sbudget .*)$", text, re.MULTILINE)


def test_a_reader_can_type_what_managers_are_shown(
    demo: ModuleType, sbudget: Sbudget, tmp_path: Path
) -> None:
    budgets = tmp_path / "demo.yaml"
    budgets.write_text(demo.BUDGETS)
    assert sbudget("ledger", "init").code == 0
    assert sbudget("budget", "load", str(budgets), "-m", "demo", "--cluster", "demo").code == 0
    config = tmp_path / "slurm-budget.toml"
    config.write_text(config.read_text().replace('"main"', '"demo"'))
    with Ledger.open(f"sqlite:///{tmp_path / 'ledger.db'}") as ledger:
        for age in (120, 60):
            at = int(time.time()) - age
            ledger.record_levels("demo", at, {(None, "h100"): 32})
            ledger.record_sweep("demo", at, "swept", 0.1)
    shown = examples()
    assert len(shown) > 12
    for line in shown:
        done = sbudget(*shlex.split(line, comments=True)[1:])
        assert done.code == 0, f"{line}\n{done.err}"
    assert "robotics  1 GPUs" in sbudget("budget", "tree").out, "the last change was undone"


def test_the_command_that_ends_the_demo_is_there_and_runs(demo: ModuleType) -> None:
    play = demo.Playground("nowhere")
    env, *rest = shlex.split(play.command("--version").removeprefix("sudo "))
    assert env == "env"
    assert f"SBUDGET_CONFIG={play.config}" in rest
    done = subprocess.run([env, *rest], capture_output=True, text=True, check=True, cwd="/")
    assert done.stdout.startswith("sbudget")
    assert str(Path(sys.executable).parent) in play.command()
