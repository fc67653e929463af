"""Setup's plan: which steps a machine gets, and what the files say there."""

from pathlib import Path

import pytest

from slurm_budget.core import setup as core
from slurm_budget.errors import BadInput

ETC = Path(__file__).resolve().parents[2] / "etc"
TEXTS = {name: (ETC / name).read_text() for name in core.NEEDED}


def target(**other: object) -> core.Target:
    values: dict[str, object] = {
        "user": "slurm-budget",
        "program": Path(core.PROGRAM),
        "config": Path("/etc/slurm-budget/slurm-budget.toml"),
        "folders": (Path(core.STATE),),
        "snapshot": "snapshot",
        "texts": TEXTS,
        "systemd": True,
        "cron": True,
        "logrotate": True,
    }
    return core.Target(**(values | other))  # type: ignore[arg-type]


def left_out(**other: object) -> dict[str, str]:
    return {step.name: step.skip for step in core.plan(target(**other)) if step.skip}


def test_systemd_or_cron_never_both() -> None:
    assert set(left_out()) == {"cron", "logrotate"}
    assert set(left_out(systemd=False)) == {"sysusers", "systemd"}
    assert set(left_out(systemd=False, logrotate=False)) == {"sysusers", "systemd", "logrotate"}
    assert "sbudget run" in left_out(systemd=False, cron=False)["cron"]


def test_another_root_gets_files_alone(tmp_path: Path) -> None:
    steps = core.plan(target(root=tmp_path))
    done = [part for step in steps if not step.skip for part in step.parts]
    assert all(isinstance(part, core.File | core.Folder) for part in done)
    assert all(part.path.is_relative_to(tmp_path) for part in done)
    assert {step.name for step in steps if step.skip} >= {"user", "slurm", "hook", "ledger"}


def test_the_shipped_files_are_what_a_default_machine_gets() -> None:
    for name in core.NEEDED:
        assert core.text_for(target(), name) == TEXTS[name]


def test_the_files_name_this_machine_s_user_program_settings_and_folders() -> None:
    other = target(
        user="slurm",
        program=Path("/usr/bin/sbudget"),
        config=Path("/srv/b.toml"),
        folders=(Path("/srv/a"), Path("/srv/b")),
    )
    unit = core.text_for(other, "slurm-budget.service")
    assert "\nUser=slurm\n" in unit
    assert "\nExecStart=/usr/bin/sbudget --config /srv/b.toml run\n" in unit
    assert "\nReadWritePaths=/srv/a /srv/b\n" in unit
    assert "* slurm /usr/bin/sbudget --config /srv/b.toml sweep >>" in core.text_for(
        other, "cron.d/slurm-budget"
    )
    for name in core.NEEDED[1:]:
        assert core.PROGRAM not in core.text_for(other, name)
    assert "\nd /srv/a 0755 slurm slurm -\nd /srv/b 0755 slurm slurm -\n" in core.text_for(
        other, "tmpfiles.d/slurm-budget.conf"
    )
    assert "su slurm slurm\n" in core.text_for(other, "logrotate.d/slurm-budget")


def test_the_daemon_and_cron_know_the_slurm_conf_of_the_shell_that_set_them_up() -> None:
    found = target(slurm_conf=Path("/opt/slurm/etc/slurm.conf"))
    line = "SLURM_CONF=/opt/slurm/etc/slurm.conf\n"
    assert f"\nEnvironment={line}ExecStart=" in core.text_for(found, "slurm-budget.service")
    assert f"\n{line}" in core.text_for(found, "cron.d/slurm-budget")


def test_systemd_makes_no_folder_that_undoing_does_not_know_of() -> None:
    assert "\nStateDirectory=" in core.text_for(target(), "slurm-budget.service")
    other = target(folders=(Path("/srv/a"),))
    assert "StateDirectory" not in core.text_for(other, "slurm-budget.service")


def test_no_sysusers_line_for_a_user_of_others() -> None:
    def files(user: str) -> set[str]:
        steps = {step.name: step for step in core.plan(target(user=user))}
        return {part.path.parent.name for part in steps["sysusers"].parts}  # type: ignore[union-attr]

    assert files(core.USER) == {"sysusers.d", "tmpfiles.d"}
    assert files("slurm") == {"tmpfiles.d"}, "Slurm's package has one, with its uid"


def test_another_root_starts_nothing_here() -> None:
    def kinds(**other: object) -> set[type]:
        steps = {step.name: step for step in core.plan(target(**other))}
        return {type(part) for part in steps["systemd"].parts}

    assert kinds() == {core.File, core.Service}
    assert kinds(root=Path("/srv/image")) == {core.File}


def test_steps_are_left_out_by_name() -> None:
    steps = core.plan(target())
    assert {s.name: why for s, why in core.chosen(steps, ["hook"], []) if why} == {
        "hook": "--skip",
        "cron": "systemd runs the daemon",
        "logrotate": "systemd runs the daemon",
    }
    assert [s.name for s, why in core.chosen(steps, [], ["config", "ledger"]) if not why] == [
        "config",
        "ledger",
    ]
    with pytest.raises(BadInput, match="no step 'hok'"):
        core.chosen(steps, ["hok"], [])


def test_each_step_says_why() -> None:
    steps = core.plan(target())
    assert all(step.why for step in steps)
    assert len({step.name for step in steps}) == len(steps)
