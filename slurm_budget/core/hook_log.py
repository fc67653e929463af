"""What slurmctld's log says of the submit hook. Pure.

The loader logs one line whenever slurmctld loads it: which version of the logic, with its
checksum, or why there is none. Slurm logs one where it goes on with the old job_submit.lua.
"""

import re
from typing import NamedTuple

LOADED, NOT_LOADED = "sbudget: hook ", "sbudget: jobs pass as they are, the logic cannot be loaded"
_LOADED = re.compile(r"sbudget: hook (\S+) \(([0-9a-f]{8})\) loaded")
_TROUBLE = re.compile(r"error: job_submit/lua: |" + NOT_LOADED)


class Running(NamedTuple):
    """A version of the logic and the checksum of its file."""

    version: str
    checksum: str

    def __str__(self) -> str:
        return f"{self.version} ({self.checksum})"


def running(lines: str) -> Running | None:
    """What the last line about a load says; None where the last one failed or there is none."""
    for line in reversed(lines.splitlines()):
        if NOT_LOADED in line:
            return None
        found = _LOADED.search(line)
        if found:
            return Running(found[1], found[2])
    return None


def trouble(lines: str) -> list[str]:
    """Errors of loading or running job_submit.lua, each once, without their times."""
    found = [line for line in lines.splitlines() if _TROUBLE.search(line)]
    return list(dict.fromkeys(re.sub(r"^\[[^]]*\]\s*", "", line) for line in found))
