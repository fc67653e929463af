"""What clusters share on one machine: a lock, a list of the clusters, and the ports.

    /run/sbudget-cluster/HASH -> DIR    one link per cluster that is up or stopped

Ports are reserved by being in the state.json of a listed cluster: so a daemon that a fault test
stopped finds its port free again, even if another cluster came up in between.
"""

import fcntl
import hashlib
import os
import random
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from .base import ClusterError
from .layout import Layout
from .state import Spec, State, load

REGISTRY = Path("/run/sbudget-cluster")
SINGLE_PORTS = ("mariadb", "slurmdbd", "slurmctld")


@contextmanager
def machine_lock() -> Iterator[None]:
    """Held for moments only: choosing ports, changing Linux users.

    The lock is on the folder, which therefore stays (empty, gone at the next boot).
    """
    REGISTRY.mkdir(mode=0o755, exist_ok=True)
    handle = os.open(REGISTRY, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def register(layout: Layout) -> None:
    link = _link(layout)
    if not link.is_symlink():
        link.symlink_to(layout.root)


def unregister(layout: Layout) -> None:
    with suppress(FileNotFoundError):
        _link(layout).unlink()


def _link(layout: Layout) -> Path:
    return REGISTRY / hashlib.sha256(str(layout.root).encode()).hexdigest()[:16]


def other_states(layout: Layout) -> list[State]:
    """The states of all other clusters on the machine; links that lead nowhere are removed."""
    states = []
    for link in REGISTRY.iterdir():
        root = Path(os.readlink(link))
        if not root.exists():
            link.unlink()
        elif root != layout.root:
            with suppress(ClusterError):
                if state := load(Layout(root)):
                    states.append(state)
    return states


def choose_ports(layout: Layout, spec: Spec) -> dict[str, int]:
    """One block of free ports, outside the range that the kernel gives to outgoing connections."""
    taken: set[int] = set()
    for state in other_states(layout):
        taken |= set(all_ports(state.spec, state.ports))
    low, high = _outgoing_range()
    wanted = len(SINGLE_PORTS) + spec.nodes
    # The larger of the two stretches outside that range; all of it where nothing is left.
    first, last = max((10_000, low - 1), (high + 1, 65_000), key=lambda pair: pair[1] - pair[0])
    if last - first < 2 * wanted:
        first, last = 10_000, 65_000
    for _ in range(200):
        base = random.randint(first, last - wanted)
        block = range(base, base + wanted)
        if taken.isdisjoint(block) and all(_free(port) for port in block):
            singles = {name: base + i for i, name in enumerate(SINGLE_PORTS)}
            return {**singles, "slurmd": base + len(SINGLE_PORTS)}
    raise ClusterError(
        f"no {wanted} free TCP ports in a row between {first} and {last}",
        mend="stop other clusters (scripts/cluster down), or take fewer --nodes",
    )


def all_ports(spec: Spec, ports: dict[str, int]) -> list[int]:
    if not ports:
        return []
    return [ports[name] for name in SINGLE_PORTS] + [ports["slurmd"] + i for i in range(spec.nodes)]


def port_of(name: str, spec: Spec, ports: dict[str, int]) -> int | None:
    """The TCP port of a daemon; munged has none."""
    if name.startswith("slurmd:"):
        return ports["slurmd"] + spec.node_names().index(name.removeprefix("slurmd:"))
    return ports.get(name)


def _outgoing_range() -> tuple[int, int]:
    try:
        text = Path("/proc/sys/net/ipv4/ip_local_port_range").read_text()
    except OSError:
        return 32_768, 60_999  # Linux's default
    low, high = text.split()
    return int(low), int(high)


def _free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("", port))
        except OSError:
            return False
    return True
