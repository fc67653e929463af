"""`sbudget setup --root`: files below a folder, done, done again, brought up to date, undone."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from slurm_budget.cli.main import cli
from slurm_budget.errors import BadInput


def setup(root: Path, *options: str, by: str = "systemd") -> Result:
    argv = ["setup", "--root", str(root), "--by", by, "--yes", *options]
    return CliRunner().invoke(cli, argv, catch_exceptions=True)


def tree(root: Path) -> dict[str, str]:
    return {
        str(path.relative_to(root)): path.read_text() if path.is_file() else ""
        for path in sorted(root.rglob("*"))
    }


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("SBUDGET_CONFIG", raising=False)
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "hosts").write_text("127.0.0.1 localhost\n")
    return tmp_path


@pytest.mark.parametrize("by", ["systemd", "cron"])
def test_undone_it_leaves_what_was_there(root: Path, by: str) -> None:
    before = tree(root)
    done = setup(root, by=by)
    assert done.exit_code == 0, done.output
    there = set(tree(root)) - set(before)
    assert "etc/slurm-budget/slurm-budget.toml" in there
    assert ("etc/systemd/system/slurm-budget.service" in there) == (by == "systemd")
    assert ("etc/cron.d/slurm-budget" in there) == (by == "cron")
    again = setup(root, by=by)
    assert "nothing to do" in again.output
    assert set(tree(root)) - set(before) == there
    undone = setup(root, "--undo", by=by)
    assert undone.exit_code == 0, undone.output
    assert tree(root) == before


def test_a_dry_run_says_the_steps_and_changes_nothing(root: Path) -> None:
    before = tree(root)
    done = setup(root, "--dry-run")
    assert done.exit_code == 0
    assert f"write {root}/etc/slurm-budget/slurm-budget.toml" in done.output
    assert tree(root) == before
    setup(root)
    there = tree(root)
    assert "take away: file" in setup(root, "--undo", "--dry-run").output
    assert tree(root) == there


def test_the_site_s_settings_are_never_overwritten_nor_removed(root: Path) -> None:
    config = root / "etc/slurm-budget/slurm-budget.toml"
    config.parent.mkdir()
    config.write_text("[sweep]\nbeat = 20\n")
    before = tree(root)
    setup(root)
    assert config.read_text() == "[sweep]\nbeat = 20\n"
    setup(root, "--undo", "--purge")
    assert tree(root) == before


def test_settings_that_were_changed_since_stay_without_purge(root: Path) -> None:
    before = tree(root)
    setup(root)
    config = root / "etc/slurm-budget/slurm-budget.toml"
    config.write_text("[sweep]\nbeat = 20\n")
    assert "stays: it was changed since" in setup(root, "--undo").output
    assert config.exists()
    assert not (root / "etc/systemd/system/slurm-budget.service").exists()
    assert setup(root, "--undo", "--purge").exit_code == 0
    assert tree(root) == before


def test_our_own_old_file_is_brought_up_to_date_one_changed_by_hand_is_not(root: Path) -> None:
    setup(root)
    unit = root / "etc/systemd/system/slurm-budget.service"
    assert setup(root, "--user", "slurm").exit_code == 0
    assert "\nUser=slurm\n" in unit.read_text()
    unit.write_text(unit.read_text() + "# ours\n")
    done = setup(root, "--user", "sweeper")
    assert done.exit_code == 3
    assert "is not as setup wrote it; it was left alone" in done.output
    assert "mend: --skip this step" in done.output
    assert unit.read_text().endswith("# ours\n")


def test_a_step_that_fails_does_not_keep_the_others_from_being_done(root: Path) -> None:
    (root / "etc/systemd").write_text("not a folder")
    done = setup(root)
    assert done.exit_code == 3
    assert "systemd    FAILED" in done.output
    assert (root / "etc/slurm-budget/slurm-budget.toml").exists()
    assert (root / "etc/sysusers.d/slurm-budget.conf").exists()


def test_steps_can_be_skipped_and_done_alone(root: Path) -> None:
    setup(root, "--only", "config")
    made = json.loads((root / "etc/slurm-budget/setup.json").read_text())["made"]
    assert [key for key in made if key.startswith("file")] == [
        f"file {root}/etc/slurm-budget/slurm-budget.toml"
    ]
    setup(root, "--skip", "systemd")
    assert not (root / "etc/systemd").exists()
    assert (root / "etc/tmpfiles.d/slurm-budget.conf").exists()
    setup(root, "--undo", "--only", "sysusers")
    assert not (root / "etc/tmpfiles.d").exists()
    assert (root / "etc/slurm-budget/slurm-budget.toml").exists()


def test_words_that_cannot_be(root: Path) -> None:
    for options, words in ((("--skip", "hok"), "no step 'hok'"), (("--purge",), "is for --undo")):
        done = setup(root, *options)
        assert isinstance(done.exception, BadInput)
        assert words in str(done.exception)
    (root / "etc/slurm-budget").mkdir()
    (root / "etc/slurm-budget/setup.json").write_text("{")
    assert "is not what setup wrote" in str(setup(root).exception)


def systemd(root: Path, program: str, *argv: str) -> str:
    """What one of systemd's own checks says; skips where there is none."""
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not there")
    done = subprocess.run(
        [program, *argv], capture_output=True, text=True, check=False, timeout=60, cwd=root
    )
    return f"exit {done.returncode}: {done.stdout}{done.stderr}"


def test_systemd_finds_no_fault_with_the_unit(root: Path) -> None:
    setup(root)
    units = [str(path) for path in root.glob("etc/systemd/system/*")]
    assert [Path(unit).name for unit in units] == ["slurm-budget.service"]
    said = systemd(root, "systemd-analyze", "verify", "--man=no", "--recursive-errors=no", *units)
    assert said == "exit 0: "
    # 1.9 of 10 by systemd 252, 1.7 by 257: what is left open it needs, as the network
    safe = systemd(root, "systemd-analyze", "security", "--offline=1", "--threshold=20", *units)
    assert safe.startswith("exit 0: "), safe


@pytest.mark.skipif(os.geteuid() != 0, reason="gives a folder to another user")
def test_systemd_makes_the_user_and_the_folder_of_an_image(root: Path) -> None:
    setup(root)
    (root / "etc/passwd").write_text("root:x:0:0::/root:/bin/sh\n")
    (root / "etc/group").write_text("root:x:0:\n")
    user = str(root / "etc/sysusers.d/slurm-budget.conf")
    said = systemd(root, "systemd-sysusers", f"--root={root}", user)
    assert said.startswith("exit 0: "), said
    assert "slurm-budget:/var/lib/slurm-budget:" in (root / "etc/passwd").read_text()
    folder = root / "var/lib/slurm-budget"
    folder.rmdir()
    (rule,) = root.glob("etc/tmpfiles.d/*")
    said = systemd(root, "systemd-tmpfiles", "--create", f"--root={root}", str(rule))
    assert said.startswith("exit 0: "), said
    assert folder.stat().st_mode & 0o777 == 0o755
