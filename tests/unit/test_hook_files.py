"""What stands where when the hook is installed, and that nothing of it stays when it is removed."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_budget import __version__
from slurm_budget.core import hook_check, hook_files, hook_log
from slurm_budget.core.hook_files import PASS, Found, Places, Sources, chain, unchain
from slurm_budget.core.hook_log import Running
from slurm_budget.errors import BadInput

ETC = Path(__file__).parents[2] / "etc"
SHIPPED = Sources((ETC / "sbudget.lua").read_bytes(), (ETC / "job_submit.lua").read_bytes())
PLACES = Places(Path("/etc/slurm/job_submit.lua"), Path("/etc/slurm-budget"))
SNAPSHOT = Path("/var/lib/slurm-budget/snapshot")
LINE = 'dofile("/etc/slurm-budget/job_submit.lua") -- slurm-budget'
RUNS = Running(hook_files.version(SHIPPED.logic), hook_files.checksum(SHIPPED.logic))

lines = st.lists(st.sampled_from(["return slurm.SUCCESS", "x = 1", "", "-- end", "\t", "a\r"]))


def installed(**found: bytes) -> hook_files.Layout:
    return hook_files.installed(SHIPPED, Found(**found), PLACES, SNAPSHOT)


@given(lines.map("\n".join) | st.text())
def test_our_line_goes_in_once_and_out_without_a_trace(text: str) -> None:
    chained = chain(text, PLACES.loader)
    assert LINE in chained.split("\n")
    assert chain(chained, PLACES.loader) == chained
    assert unchain(chained, PLACES.loader) == text


@given(st.binary())
def test_a_site_s_file_comes_back_byte_by_byte(blob: bytes) -> None:
    layout = installed(slurm=blob)
    after = Found(slurm=layout.files[PLACES.slurm], loader=b"ours", logic=b"ours")
    assert hook_files.mode(after.slurm, PLACES) == "chained"
    back = hook_files.removed(after, PLACES, needed=True)
    assert back.files == {PLACES.slurm: blob, PLACES.loader: None, PLACES.logic: None}


@pytest.mark.parametrize(
    ("site", "with_ours"),
    [
        ("a()\nreturn slurm.SUCCESS\n", f"a()\n{LINE}\nreturn slurm.SUCCESS\n"),
        ("a()\nreturn 0 -- well\n\n-- end\n", f"a()\n{LINE}\nreturn 0 -- well\n\n-- end\n"),
        ("function f()\n  return 1\nend\n", f"function f()\n  return 1\nend\n{LINE}\n"),
        ("a()", f"a()\n{LINE}"),
        ("", f"{LINE}\n"),
        (f"a()\n-- {LINE}\n", f"a()\n-- {LINE}\n{LINE}\n"),
        # another folder before, and by hand as the loader's head says
        ('dofile("/opt/x/job_submit.lua") -- slurm-budget\nreturn 0', f"{LINE}\nreturn 0"),
        ("dofile('/etc/slurm-budget/job_submit.lua')\nb()\n",) * 2,
    ],
)
def test_where_our_line_goes(site: str, with_ours: str) -> None:
    assert chain(site, PLACES.loader) == with_ours


def test_the_loader_names_the_paths_of_the_configuration() -> None:
    places = Places(PLACES.slurm, Path("/opt/my--budget, 2"))
    layout = hook_files.installed(SHIPPED, Found(), places, Path("/run/facts"))
    loader = layout.files[PLACES.slurm]
    assert layout.mode == "alone"
    assert list(layout.files) == [places.logic, PLACES.slurm]
    values = hook_files.kept_settings(loader, PLACES.slurm)
    assert values["logic"] == '"/opt/my--budget, 2/sbudget.lua"'
    assert values["snapshot"] == '"/run/facts"'


def test_an_upgrade_keeps_what_a_site_has_set() -> None:
    mine = {"helper": '"exec"', "trusted_uids": "{ 64030, 1000 }", "gone": "1"}
    old = hook_files.with_settings(SHIPPED.loader, mine).replace(b"-- Adler-32", b"-- older")
    for found, place in (
        ({"slurm": old}, PLACES.slurm),
        ({"slurm": b"own()", "loader": old}, PLACES.loader),
    ):
        loader = installed(**found).files[place]
        assert loader is not None
        values = hook_files.kept_settings(loader, place)
        assert (values["helper"], values["trusted_uids"]) == ('"exec"', "{ 64030, 1000 }")
        assert b"-- older" not in loader
        assert "gone" not in values


@pytest.mark.parametrize("value", ["trusted_uids = {", 'helper = "exec', "odd"])
def test_a_setting_that_cannot_be_taken_over_is_an_error(value: str) -> None:
    old = SHIPPED.loader.replace(b"    trusted_uids = {},", b"    " + value.encode())
    with pytest.raises(BadInput, match="cannot be taken over"):
        installed(slurm=old)


@pytest.mark.parametrize("path", ['/etc/"x"', "relative", "/a\nb", "/a\\b"])
def test_a_path_that_lua_would_misread_is_refused(path: str) -> None:
    with pytest.raises(BadInput, match="cannot be named in a Lua file"):
        hook_files.installed(SHIPPED, Found(), PLACES, Path(path))


def test_our_loader_does_not_overwrite_a_site_s_script_in_the_same_folder() -> None:
    places = Places(PLACES.slurm, PLACES.slurm.parent)
    with pytest.raises(BadInput, match="--folder"):
        hook_files.installed(SHIPPED, Found(slurm=b"own()"), places, SNAPSHOT)


@pytest.mark.parametrize(("needed", "left"), [(True, PASS.encode()), (False, None)])
def test_alone_and_removed_slurmctld_still_starts(needed: bool, left: bytes | None) -> None:
    for before in (installed().files[PLACES.slurm], PASS.encode()):
        layout = hook_files.removed(Found(slurm=before), PLACES, needed=needed)
        assert layout.files[PLACES.slurm] == left
    assert hook_files.mode(left, PLACES) == "none"


def test_the_logic_says_the_version_of_the_program() -> None:
    assert hook_files.version(SHIPPED.logic) == __version__
    assert hook_files.version(b"return 1") == "nil"


def test_what_the_log_says_of_the_hook() -> None:
    loaded = f"[2026-11-29T22:01:38.017] lua: sbudget: hook {RUNS} loaded\n"
    failed = f"[x] error: lua: {hook_log.NOT_LOADED}: /x:1: boom\n"
    slurm = "[x] error: job_submit/lua: /etc/x.lua: /etc/x.lua:1: boom, using previous script\n"
    assert hook_log.running("") is None
    assert hook_log.running("[x] other\n" + loaded + "[x] other\n") == RUNS
    assert hook_log.running(loaded + failed) is None
    assert hook_log.running(failed + loaded) == RUNS
    assert hook_log.trouble(loaded + "[x] error: lua: sbudget: no usable snapshot\n") == []
    assert hook_log.trouble(failed + slurm + slurm.replace("[x]", "[y]")) == [
        failed[4:-1],
        slurm[4:-1],
    ]


def seen(**changed: object) -> hook_check.Seen:
    fields: dict[str, object] = {
        "uses_lua": True,
        "plugin": Path("/usr/lib/slurm/job_submit_lua.so"),
        "mode": "alone",
        "places": PLACES,
        "file": RUNS,
        "shipped": RUNS,
        "running": RUNS,
        "log": Path("/var/log/slurmctld.log"),
        "snapshot": str(SNAPSHOT),
        "wanted_snapshot": str(SNAPSHOT),
    }
    return hook_check.Seen(**{**fields, **changed})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changed", "check", "level", "what"),
    [
        ({"plugin": None}, "plugin", "warning", "job_submit_lua.so is not on this machine"),
        ({"uses_lua": False}, "slurm.conf", "error", "JobSubmitPlugins has no lua"),
        ({"mode": "none"}, "hook", "error", "there is none"),
        ({"mode": "site"}, "hook", "error", "the site's own, without our line"),
        ({"file": None}, "file", "error", "is not there"),
        ({"shipped": Running("9.9", "00000000")}, "file", "warning", "this program has 9.9"),
        ({"running": Running("0.0", "00000000")}, "running", "error", "runs 0.0 (00000000)"),
        ({"running": None}, "running", "error", "does not say that the hook was loaded"),
        ({"log": None}, "running", "warning", "no log on this machine"),
        ({"snapshot": "/x"}, "snapshot path", "error", "the hook reads /x"),
    ],
)
def test_what_check_finds(changed: dict[str, object], check: str, level: str, what: str) -> None:
    bad = [finding for finding in hook_check.findings(seen(**changed)) if finding.level != "ok"]
    assert [(finding.check, finding.level) for finding in bad] == [(check, level)]
    assert what in bad[0].what
    assert bad[0].mend


def test_check_has_nothing_to_mend_where_all_is_well() -> None:
    for mode in ("alone", "chained"):
        assert {finding.level for finding in hook_check.findings(seen(mode=mode))} == {"ok"}
