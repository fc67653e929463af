"""What tests of faults have in common: four runs that may make way, and sweeps that go wrong."""

import json
import os
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from playground import Done, Playground
from story import ANA

DRIVER = Path(__file__).with_name("killed_sweep.py")
FUNDED = ("--gres=gpu:8", "--qos=funded", "--comment=min-runtime=2s")


def vision_runs(site: Playground, steps: int = 300) -> list[int]:
    """Four runs that fill the cluster, past their protection two seconds after their start."""
    jobs = [site.sbatch(ANA, "-Jtrain", *FUNDED, str(steps))[0] for _ in range(4)]
    site.wait("vision runs", lambda: all(site.state(job) == "RUNNING" for job in jobs))
    return jobs


def requeued(site: Playground, jobs: list[int]) -> list[int]:
    """Each job as often as it was requeued."""
    return sorted(int(row[0]) for row in site.rows(*jobs) if row[1] == "REQUEUED")


def disturbed(site: Playground, *what: str, env: dict[str, str] | None = None) -> Done:
    """One sweep to which something happens (killed_sweep.py)."""
    return site._run([sys.executable, str(DRIVER), *what], env=env)


def changed(site: Playground, **values: str) -> dict[str, str]:
    """The environment for settings that differ: `timeout='3s'` and so on, each key there is."""
    lines = []
    for line in site.config.read_text().splitlines():
        key = line.partition(" = ")[0]
        lines.append(f'{key} = "{values.pop(key)}"' if key in values else line)
    extra = {"timeout": "[slurm]", "password_file": "[ledger]"}
    for key, value in values.items():
        at = lines.index(extra[key]) + 1
        lines.insert(at, f'{key} = "{value}"')
    config = site.site / "changed.toml"
    config.write_text("\n".join(lines) + "\n")
    return {"SBUDGET_CONFIG": str(config)}


def state_of(site: Playground) -> Mapping[str, Mapping[str, object]]:
    """What scripts/cluster knows of its daemons."""
    found = json.loads((site.folder / "state.json").read_text())
    assert isinstance(found, dict)
    return found


@contextmanager
def frozen(site: Playground, daemon: str) -> Iterator[None]:
    """A daemon that is there and does not answer."""
    pid = state_of(site)["procs"][daemon]["pid"]  # type: ignore[index]
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)
