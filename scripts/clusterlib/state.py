"""state.json: what was asked for, and what was started.

It is replaced as a whole (temporary file, rename), so that a reader or a killed `up` never
leaves half of it.  It holds no secrets: users may read it.
"""

import json
import os
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from .base import ClusterError
from .layout import Layout
from .procs import Proc


@dataclass
class Spec:
    """What a cluster was asked to be.  `up` compares it with the one that runs."""

    name: str = "demo"
    nodes: int = 4
    gpus: int = 8
    type: str = "h100"
    cpus: int = 64
    users: list[str] = field(default_factory=list)
    set: list[str] = field(default_factory=list)
    set_dbd: list[str] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)  # name beside slurm.conf -> sha256

    def node_names(self) -> list[str]:
        return [f"n{i}" for i in range(1, self.nodes + 1)]

    def daemons(self) -> list[str]:
        """All daemons in the order in which they start."""
        return [
            "munged",
            "mariadb",
            "slurmdbd",
            "slurmctld",
            *(f"slurmd:{node}" for node in self.node_names()),
        ]

    def differences(self, wanted: "Spec") -> list[str]:
        """One line for each setting in which `wanted` is not this."""
        lines = []
        for item in fields(self):
            have, want = getattr(self, item.name), getattr(wanted, item.name)
            if item.name == "files":
                lines += [
                    f"{name}: other content"
                    for name in sorted(have.keys() | want.keys())
                    if have.get(name) != want.get(name)
                ]
            elif have != want:
                option = "--" + item.name.replace("_", "-")
                lines.append(f"{option}: there {_show(have)}, asked for {_show(want)}")
        return lines


def _show(value: object) -> str:
    text = " ".join(map(str, value)) if isinstance(value, list) else str(value)
    return text or "none"


@dataclass
class State:
    """Everything that `down`, `stop`, `start` and `status` need to know."""

    spec: Spec
    phase: str = "building"  # "ready" once all has answered
    boot: str = ""
    slurm: str = ""  # version
    ports: dict[str, int] = field(default_factory=dict)
    procs: dict[str, Proc] = field(default_factory=dict)
    stopped: list[str] = field(default_factory=list)  # by `stop`, on purpose
    users_created: list[str] = field(default_factory=list)

    def alive(self, name: str) -> Proc | None:
        """The living process of a daemon, if any."""
        proc = self.procs.get(name)
        return proc if proc and self.boot == boot_id() and proc.alive else None

    def missing(self) -> list[str]:
        """Daemons that should run and do not, in the order of their start."""
        return [
            name
            for name in self.spec.daemons()
            if name not in self.stopped and not self.alive(name)
        ]

    def save(self, layout: Layout) -> None:
        temporary = layout.root / f".state.{os.getpid()}"
        temporary.write_text(json.dumps(asdict(self), indent=1) + "\n")
        temporary.rename(layout.state_file)


def load(layout: Layout) -> State | None:
    """The state of a cluster; None where `up` was killed before it wrote any."""
    try:
        raw: dict[str, Any] = json.loads(layout.state_file.read_text())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise ClusterError(
            f"the state of the cluster cannot be read: {error}", where=str(layout.state_file)
        ) from None
    raw["spec"] = Spec(**raw["spec"])
    raw["procs"] = {name: Proc(**proc) for name, proc in raw["procs"].items()}
    return State(**raw)


def boot_id() -> str:
    """Start times count from the boot: after another boot they say nothing."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
