"""Putting the hook in place with a pretended slurmctld: what is tried, written, and put back."""

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from slurm_budget import files, lua, shipped
from slurm_budget.core import hook_files
from slurm_budget.core.hook_files import Layout
from slurm_budget.errors import BadInput, SbudgetError
from slurm_budget.settings import HookSettings, Settings
from slurm_budget.slurm import ctld
from slurm_budget.slurm.command import Commands
from slurm_budget.slurm.port import CommandSlurm
from slurm_budget.usecases import hook
from slurm_budget.usecases.hook_trial import try_out

GIVEN = hook.sources()
RUNS = f"lua: sbudget: hook {hook.identity(GIVEN.logic)} loaded"
OWN = b"function slurm_job_submit() end\nfunction slurm_job_modify() end\n"


class Pretended:
    """A controller: `says` is what slurmctld logs when it is made to load job_submit.lua."""

    def __init__(self, folder: Path) -> None:
        self.etc, self.bin, self.log = folder / "etc", folder / "bin", folder / "slurmctld.log"
        self.script = self.etc / "job_submit.lua"
        self.settings = Settings(hook=HookSettings(folder=folder / "ours"))
        self.config = {"JobSubmitPlugins": "lua", "SlurmctldLogFile": str(self.log)}
        self.etc.mkdir()
        self.bin.mkdir()
        (self.etc / "slurm.conf").write_text("")
        self.log.write_text("before\n")
        self.said: list[str] = []
        self.configured()
        self.says(RUNS)

    def _command(self, name: str, script: str) -> None:
        (self.bin / name).write_text("#!/bin/sh\n" + script)
        (self.bin / name).chmod(0o755)

    def says(self, *lines: str) -> None:
        """One line at each load, the last for ever."""
        for number, line in enumerate(lines):
            (self.bin / f"line{number}").write_text(line + "\n")
        last = len(lines) - 1
        self._command(
            "sbatch",
            f"cd {self.bin}; for n in $(seq 0 {last}); do if [ -e line$n ]; then cat line$n >>"
            f" {self.log}; [ $n = {last} ] || rm line$n; break; fi; done\n",
        )

    def configured(self) -> None:
        lines = "".join(f"{name} = {value}\n" for name, value in self.config.items())
        show = f"cat <<'END'\n{lines}END\nexit 0\n"
        self._command("scontrol", f'if [ "$1" = show ]; then\n{show}fi\n')

    def look(self) -> hook.Site:
        slurm = CommandSlurm(Commands(bin=self.bin))
        return hook.look(slurm, self.settings, self.etc, None)

    def layout(self, site: hook.Site) -> Layout:
        return hook_files.installed(GIVEN, site.found, site.places, self.settings.snapshot.path)

    def install(self) -> bool:
        site = self.look()
        return hook.install(site, self.layout(site), GIVEN.logic, self.said.append)


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pretended:
    monkeypatch.setattr(hook, "PATIENCE", 0.0)
    return Pretended(tmp_path)


def everything(folder: Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in sorted(folder.rglob("*.lua"))}


def test_a_site_s_file_keeps_mode_owner_and_link_and_has_a_copy(there: Pretended) -> None:
    real = there.etc.parent / "repository.lua"
    real.write_bytes(OWN)
    real.chmod(0o640)
    there.script.symlink_to(real)
    before = real.stat()
    assert there.install()
    assert there.script.is_symlink()
    after = real.stat()
    assert stat.S_IMODE(after.st_mode) == 0o640
    assert (after.st_uid, after.st_gid) == (before.st_uid, before.st_gid)
    assert int(after.st_mtime) > int(before.st_mtime)
    assert [copy.read_bytes() for copy in real.parent.glob("repository.lua.*.bak")] == [OWN]
    assert f"slurmctld runs {hook.identity(GIVEN.logic)}" in there.said


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("lua: sbudget: hook 0.0 (00000000) loaded", "it loaded 0.0 (00000000)"),
        ("nothing of ours", "it loaded nothing"),
        (RUNS + "\nerror: job_submit/lua: x: returned 5 on load", "returned 5 on load"),
        (f"error: lua: {hook.hook_log.NOT_LOADED}: boom", "cannot be loaded: boom"),
    ],
)
@pytest.mark.parametrize("own", [None, OWN])
def test_what_the_log_does_not_confirm_is_put_back(
    there: Pretended, own: bytes | None, line: str, fault: str
) -> None:
    if own is not None:
        there.script.write_bytes(own)
    before = everything(there.etc.parent)
    there.says(line, "fine again")
    with pytest.raises(SbudgetError) as caught:
        there.install()
    assert fault in str(caught.value)
    assert "the files are as before" in str(caught.value)
    assert caught.value.code == 1
    assert everything(there.etc.parent) == before


def test_where_slurmctld_does_not_answer_the_files_come_back(there: Pretended) -> None:
    there.script.write_bytes(OWN)
    site = there.look()
    there._command("sbatch", "echo 'Unable to contact slurm controller' >&2; exit 1\n")
    with pytest.raises(SbudgetError, match="Unable to contact slurm controller"):
        hook.install(site, there.layout(site), GIVEN.logic, there.said.append)
    assert there.script.read_bytes() == OWN


def test_a_folder_that_cannot_be_written_leaves_the_site_s_file(there: Pretended) -> None:
    there.script.write_bytes(OWN)
    site = there.look()
    there.settings.hook.folder.mkdir()
    (there.settings.hook.folder / "job_submit.lua").mkdir()
    with pytest.raises(SbudgetError, match=r"cannot be (read|written)"):
        hook.install(site, there.layout(site), GIVEN.logic, there.said.append)
    assert there.script.read_bytes() == OWN


def test_without_a_log_it_says_that_nothing_was_seen(there: Pretended) -> None:
    there.config["SlurmctldLogFile"] = "(null)"
    there.configured()
    assert there.install() is False
    assert "could not be seen" in there.said[-1]
    assert there.script.exists()


def test_without_slurm_conf_nothing_is_guessed(there: Pretended) -> None:
    (there.etc / "slurm.conf").unlink()
    with pytest.raises(BadInput, match=r"no slurm\.conf"):
        there.look()


@pytest.mark.parametrize("only", ["lua", "lupa", "luac", "none"])
def test_whatever_lua_there_is_finds_a_broken_file(
    there: Pretended, monkeypatch: pytest.MonkeyPatch, only: str
) -> None:
    only_with(monkeypatch, only)
    site = there.look()
    notes = try_out(site, there.layout(site), GIVEN)
    broken = hook_files.Sources(b"end end", GIVEN.loader)
    if only == "none":
        assert notes[0].startswith("NOT tried: this machine has neither")
        return
    assert ("only the syntax" in notes[0]) == (only == "luac")
    with pytest.raises(BadInput, match="nothing was changed"):
        try_out(site, there.layout(site), broken)


def only_with(monkeypatch: pytest.MonkeyPatch, only: str) -> None:
    which: Callable[[str], str | None] = lua.shutil.which
    wanted = {"lua": "lua", "luac": "luac"}.get(only)
    if only == "lua" and not any(which(f"lua{v}") for v in ("", "5.1", "5.3", "5.4")):
        pytest.skip("no lua on this machine")
    if only == "luac" and not any(which(f"luac{v}") for v in ("", "5.1", "5.3", "5.4")):
        pytest.skip("no luac on this machine")
    monkeypatch.setattr(
        lua.shutil,
        "which",
        lambda name: which(name) if wanted and name.rstrip("5.1234") == wanted else None,
    )
    if only != "lupa":
        monkeypatch.setattr(lua.importlib.util, "find_spec", lambda name: None)


@pytest.mark.parametrize(
    ("own", "says"),
    [
        (OWN + b"return 0\n", "both load"),
        (b"local posix = require('posix.nothing')\n" + OWN, "cannot be tried outside slurmctld"),
    ],
)
def test_a_site_s_script_is_tried_with_our_line(there: Pretended, own: bytes, says: str) -> None:
    there.script.write_bytes(own)
    site = there.look()
    assert says in try_out(site, there.layout(site), GIVEN)[-1]


def test_a_line_that_would_never_be_reached_is_refused(there: Pretended) -> None:
    there.script.write_bytes(OWN + b"--[[\nreturn 0\n]]\n" + b"do return 0 end\n")
    site = there.look()
    with pytest.raises(BadInput, match="never reached"):
        try_out(site, there.layout(site), GIVEN)


def test_the_log_is_read_from_where_it_was_and_from_the_start_of_a_new_one(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("old sbudget: hook 1\n" + "x" * 100 + "\n")
    at = ctld.size(log)
    with log.open("a") as file:
        file.write("new\n")
    assert ctld.since(log, at) == "new\n"
    assert ctld.last(log, "sbudget: hook", "nowhere") == "old sbudget: hook 1"
    log.write_text("turned\n")
    assert ctld.since(log, at) == "turned\n"
    log.write_text("")
    assert ctld.last(log, "sbudget: hook") == ""


def test_what_is_removed_twice_is_gone_and_no_draft_stays(tmp_path: Path) -> None:
    path = tmp_path / "file"
    files.change(path, b"one")
    first = path.stat().st_mtime
    files.change(path, b"two")
    assert path.stat().st_mtime > first
    assert os.listdir(tmp_path) == ["file"]
    files.change(path, None)
    files.change(path, None)
    assert os.listdir(tmp_path) == []


def test_etc_is_found_beside_the_package() -> None:
    assert (shipped.folder("etc", "sbudget.lua") / "job_submit.lua").exists()
    with pytest.raises(SbudgetError, match="was not installed"):
        shipped.folder("etc", "nothing.lua")


def test_the_check_finds_files_that_others_may_write(there: Pretended) -> None:
    """slurmctld runs them as its own user."""
    there.install()
    logic = there.look().places.logic

    def mends() -> list[str]:
        found = hook.check(there.look(), there.settings, 1)
        return [one.mend for one in found if one.check == "rights"]

    assert mends() == []
    there.script.chmod(0o664)
    assert mends() == [f"chmod go-w {there.script}"]
    there.script.chmod(0o644)
    logic.parent.chmod(0o777)
    assert mends() == [f"chmod go-w {logic.parent}"]
