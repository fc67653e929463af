"""One container of the matrix: what runs in it, and how it went."""

import os
import re
import threading
from dataclasses import dataclass, field
from pathlib import Path

from testcontainers.core.container import DockerContainer

ROOT = Path(__file__).resolve().parents[2]
VERSIONS = ("22.05", "24.11", "26.05")
PATIENCE = 4200
AT_ONCE = threading.Semaphore(3)
"""Rings that run together. Each waits for Slurm most of the time: three load two cores by half."""
# No helper container is to be pulled where no registry is reached; we end what we start.
os.environ.setdefault("TESTCONTAINERS_RYUK_DISABLED", "true")


@dataclass
class Ring:
    """How the tests in one container went."""

    version: str
    code: int | None = None
    output: str = ""
    said: threading.Event = field(default_factory=threading.Event)

    @property
    def figures(self) -> str:
        """pytest's own last lines, e.g. `187 passed, 2 skipped in 301.20s`; two where something
        failed and was run once more."""
        found = re.findall(r"^.*\b(?:passed|failed|error)\b.* in [\d.]+s.*$", self.output, re.M)
        return "; once more: ".join(line.strip("= ") for line in found) or "no test ran"

    @property
    def failed_at_first(self) -> list[str]:
        """What failed before it was run once more, as pytest says it, with the reason."""
        before, again, _ = self.output.partition("what failed, once more:")
        return re.findall(r"^((?:FAILED|ERROR) .*?)\s*$", before, re.M) if again else []


def play(ring: Ring) -> None:
    """Run one container to its end, and keep what it said."""
    AT_ONCE.acquire()
    try:
        container = (
            DockerContainer(f"slurm-budget-test:{ring.version}")
            .with_command(["/src/docker/inside", "tests/matrix/twice"])
            .with_volume_mapping(str(ROOT), "/src", "ro")
            # the daemons of one container find each other; zombies of theirs are reaped
            .with_env("SBUDGET_DISPOSABLE", "1")
            .with_env("SBUDGET_PATIENCE", "3")
            # pytest cuts the reason of a failure off where its line is full
            .with_env("COLUMNS", "240")
            .with_kwargs(hostname="localhost", init=True)
        )
        with container:
            wrapped = container.get_wrapped_container()
            ring.code = wrapped.wait(timeout=PATIENCE)["StatusCode"]
            ring.output = wrapped.logs().decode(errors="replace")
    except Exception as bad:
        ring.output += f"\nthe container failed: {bad!r}"
    finally:
        AT_ONCE.release()
        ring.said.set()
