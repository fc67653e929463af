"""For tests that change the machine: only where it may be thrown away, as in the containers."""

import os
import pwd
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playground import Playground
from story import ANA

DEFAULTS = {"SBUDGET_CONFIG": ""}
"""The environment in which slurm-budget.toml lies where it lies by default."""
PLACES = ("/etc", "/var/lib", "/var/log", "/usr/lib/systemd")
OWN_BACKUPS = {f"/etc/{n}" for n in ("passwd-", "group-", "shadow-", "gshadow-", ".pwd.lock")}


@contextmanager
def cleanly(name: str, gpus: int, *users: str) -> Iterator[Playground]:
    """A cluster of one node without anything of ours."""
    if os.environ.get("SBUDGET_DISPOSABLE") != "1":
        pytest.skip("changes the machine; set SBUDGET_DISPOSABLE=1 where it may be thrown away")
    play = Playground(f"{name}{os.getpid()}", users or (ANA,), nodes=1, gpus=gpus, hook=False)
    try:
        play.up()
        yield play
    finally:
        play.down()


def machine(play: Playground) -> set[str]:
    """Paths, Linux users and Slurm's users; not what the cluster itself writes."""
    found = {entry.pw_name for entry in pwd.getpwall()}
    found |= set(play.slurm("sacctmgr", "-nP", "show", "user", "format=user,adminlevel").split())
    for place in PLACES:
        for folder, folders, names in os.walk(place):
            if folder == "/var/lib/sbudget-cluster":
                folders.clear()
            found |= {str(Path(folder) / name) for name in (*folders, *names)}
    return (found | {str(path) for path in play.conf.parent.iterdir()}) - OWN_BACKUPS


def restart(play: Playground, *, lua: bool) -> None:
    """slurmctld anew, with or without JobSubmitPlugins=lua."""
    line = "\nJobSubmitPlugins=lua\n"
    text = play.conf.read_text().replace(line, "")
    play.conf.write_text(text + line if lua else text)
    play.cluster("stop", "slurmctld")
    play.cluster("start", "slurmctld")
    play.wait("slurmctld", lambda: "UP" in play.slurm("scontrol", "ping", code=None))
