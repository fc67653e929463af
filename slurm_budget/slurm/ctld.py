"""slurmctld's submit plugin and its log, and how to make slurmctld look at job_submit.lua."""

import mmap
import os
import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from slurm_budget.errors import BadInput
from slurm_budget.slurm.command import Commands, checked

PLUGIN = "job_submit_lua.so"
_QUIET = ("quiet", "fatal", "error")


def uses_lua(config: Mapping[str, str]) -> bool:
    """Whether slurmctld runs job_submit.lua (`scontrol show config`)."""
    return "lua" in re.split(r"[,\s]+", config.get("JobSubmitPlugins", "").lower())


def plugin(config: Mapping[str, str]) -> Path | None:
    """Slurm's Lua plugin on this machine; None where it is not installed."""
    places = [Path(name) / PLUGIN for name in config.get("PluginDir", "").split(":") if name]
    return next((place for place in places if place.exists()), None)


def user(config: Mapping[str, str]) -> int:
    """The uid that slurmctld runs as, of `slurm(64030)`; 0 where it is not said."""
    found = re.search(r"\((\d+)\)", config.get("SlurmUser", ""))
    return int(found[1]) if found else 0


def log_of(config: Mapping[str, str]) -> Path | None:
    """slurmctld's log, where it says what it loads: None where that goes elsewhere or is off."""
    path = config.get("SlurmctldLogFile", "")
    if not path.startswith("/") or config.get("SlurmctldDebug", "").lower() in _QUIET:
        return None
    return Path(path) if Path(path).is_file() else None


def reload(commands: Commands) -> None:
    """Make slurmctld look at job_submit.lua, if that has changed, and load it.

    A submission does, and keeps the old script where the new one is broken; one that only asks when
    a job would start leaves no job. Its answer is of no interest: a site's script may refuse it.
    Never `scontrol reconfigure`: in 22.05 it does not look at the script, and from 23.11 on it
    starts slurmctld anew, which a broken script then ends for good (24.11, 26.05). Raises
    SlurmUnreachable where slurmctld is not there.
    """
    reply = commands.run("sbatch", "--test-only", "--ntasks=1", "--time=1", "--wrap=true")
    if reply.unreachable:
        checked(reply)


def size(log: Path) -> int:
    return log.stat().st_size


def since(log: Path, at: int) -> str:
    """What was logged after byte `at`; all of it where the log is a new file."""
    with log.open("rb") as file:
        file.seek(at if at <= size(log) else 0)
        return file.read().decode(errors="replace")


def wait(log: Path, at: int, seen: Callable[[str], bool], seconds: float) -> str:
    """What was logged after byte `at`, as soon as `seen` is true of it, or after `seconds`."""
    end = time.monotonic() + seconds
    while True:
        text = since(log, at)
        if seen(text) or time.monotonic() > end:
            return text
        time.sleep(0.1)


def last(log: Path, *words: str) -> str:
    """The last line of the log that has one of these words; empty where none has."""
    if not size(log):
        return ""
    if not os.access(log, os.R_OK):
        raise BadInput(
            "this user may not read slurmctld's log",
            where=str(log),
            mend="run it as root, or as the user that slurmctld runs as",
        )
    with log.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
        at = max(text.rfind(word.encode()) for word in words)
        if at < 0:
            return ""
        end = text.find(b"\n", at)
        start = text.rfind(b"\n", 0, at) + 1
        return text[start : end if end >= 0 else len(text)].decode(errors="replace")
