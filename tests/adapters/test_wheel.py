"""The wheel has everything in it, and what it installs works where there is no checkout."""

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ("slurm_budget", "etc", "man", "sql", "pyproject.toml", "README.md", "LICENSE")


def run(*argv: object, env: "dict[str, str] | None" = None) -> str:
    done = subprocess.run(
        [str(arg) for arg in argv], capture_output=True, text=True, check=False, timeout=300,
        env=None if env is None else {"PATH": os.environ["PATH"], **env}, cwd="/",
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy, so that the checkout stays clean, and without an index."""
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for name in SOURCES:
        there = ROOT / name
        if there.is_dir():
            ignore = shutil.ignore_patterns("__pycache__")
            shutil.copytree(there, source / name, ignore=ignore)
        else:
            shutil.copy(there, source / name)
    run(
        *(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-index", "--no-deps"),
        *("--no-build-isolation", "--wheel-dir", out, source),
    )
    (built,) = out.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def program(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`sbudget` in an environment of its own; the libraries are those of the tests'."""
    folder = tmp_path_factory.mktemp("installed") / "venv"
    venv.create(folder, with_pip=False, symlinks=True)
    python = folder / "bin" / "python"
    run(
        *(sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-index"),
        *("--no-deps", wheel),
    )
    (site,) = folder.glob("lib/python*/site-packages")
    (site / "libraries.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return folder / "bin" / "sbudget"


def test_it_has_every_file_of_etc_and_sql(wheel: Path) -> None:
    listed = zipfile.ZipFile(wheel).namelist()
    data = f"{wheel.name.split('-py3')[0]}.data/data/share/"
    shared = {name.removeprefix(data) for name in listed if name.startswith(data)}
    wanted = {
        f"slurm-budget/{path.relative_to(ROOT)}"
        for folder in ("etc", "sql")
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    completion = "slurm-budget/etc/completions/sbudget"
    wanted = wanted - {completion} | {"bash-completion/completions/sbudget"}
    wanted |= {f"man/man1/{path.name}" for path in (ROOT / "man").glob("*.1")}
    assert wanted == shared
    package = {
        str(path.relative_to(ROOT))
        for kind in ("*.py", "*.css", "*.js")
        for path in (ROOT / "slurm_budget").rglob(kind)
    }
    assert package <= set(listed)


def test_it_is_a_program_outside_of_any_checkout(program: Path, tmp_path: Path) -> None:
    assert run(program, "--version").startswith("sbudget, version ")
    config, ledger = tmp_path / "slurm-budget.toml", tmp_path / "ledger.db"
    config.write_text(f'[ledger]\nurl = "sqlite:///{ledger}"\n')
    assert "created" in run(program, "--config", config, "ledger", "init")
    assert ledger.exists()
    where = run(program.with_name("python"), "-c", "import slurm_budget; print(slurm_budget)")
    assert str(program.parents[1]) in where


def test_it_sets_up_from_its_own_files(program: Path, tmp_path: Path) -> None:
    run(program, "setup", "--root", tmp_path, "--by", "systemd", "--yes", env={})
    unit = (tmp_path / "etc/systemd/system/slurm-budget.service").read_text()
    assert f"ExecStart={program} run\n" in unit


def test_it_has_the_hook(program: Path, tmp_path: Path) -> None:
    """`hook show` asks slurmctld only for where its files lie."""
    (tmp_path / "scontrol").write_text("#!/bin/sh\necho 'ClusterName = main'\n")
    (tmp_path / "scontrol").chmod(0o755)
    (tmp_path / "slurm.conf").touch()
    config = tmp_path / "slurm-budget.toml"
    config.write_text(f'[slurm]\nbin = "{tmp_path}"\n')
    shown = run(program, "--config", config, "hook", "show", "--slurm-dir", tmp_path)
    assert f"-- {tmp_path}/job_submit.lua:" in shown
    assert "/etc/slurm-budget/sbudget.lua: 0.1.0" in shown


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash here")
def test_bash_completes_its_commands(program: Path) -> None:
    words = {"_SBUDGET_COMPLETE": "bash_complete", "COMP_WORDS": "sbudget se", "COMP_CWORD": "1"}
    assert "plain,setup" in run(program, env=words)
    script = program.parents[1] / "share/bash-completion/completions/sbudget"
    run("bash", "-c", f"source {script} && complete -p sbudget")
