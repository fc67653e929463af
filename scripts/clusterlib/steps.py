"""Slurm's own children: a slurmstepd for each job step, and the processes of the jobs.

We did not start them, so they are not in state.json.  A slurmstepd leaves its slurmd at once
(it must outlive it) and overwrites its command line and environment; but it listens on a socket
in our spool folder, and the kernel tells who listens there.  Jobs are its descendants.  A process
that left its job (`setsid`, and its parent died) still has Slurm's variables in its environment.
"""

import os
import socket
import stat
import struct
import subprocess
from contextlib import suppress
from pathlib import Path

from . import procs
from .layout import Layout
from .procs import Proc


def stepds(layout: Layout) -> set[Proc]:
    """The living slurmstepd of all nodes."""
    found = set()
    for path in layout.spool.glob("*/*"):
        with suppress(OSError):
            if stat.S_ISSOCK(path.lstat().st_mode) and (proc := _listener(path)):
                found.add(proc)
    return found


def _listener(path: Path) -> Proc | None:
    """The process that listens on a Unix socket; None when it is dead (connection refused)."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(2)
        try:
            probe.connect(str(path))
        except OSError:
            return None
        answer = probe.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    pid, _, _ = struct.unpack("3i", answer)
    return Proc.of(pid) if pid else None


def strays(layout: Layout, launched: set[int]) -> set[Proc]:
    """Processes of this cluster that no longer hang below one that we know.

    They have our SLURM_CONF; but so has a shell that uses the cluster.  What tells them apart:
    SLURMD_NODENAME, which is set inside jobs only, or the session of a daemon that we launched
    (a child that outlived it).
    """
    conf = f"SLURM_CONF={layout.slurm_conf}".encode()
    found = set()
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) == os.getpid():
            continue
        with suppress(OSError):
            variables = _environment(int(entry))
            if conf not in variables:
                continue
            in_job = any(item.startswith(b"SLURMD_NODENAME=") for item in variables)
            facts = procs.read_stat(int(entry))
            if facts and not facts.dead and (in_job or facts.session in launched):
                found.add(Proc(int(entry), facts.start))
    return found


def _environment(pid: int) -> list[bytes]:
    """The environment a process started with.

    In a container with default capabilities root may not read that of another user's process
    (it lacks CAP_SYS_PTRACE), but may become that user, who may.
    """
    path = f"/proc/{pid}/environ"
    try:
        return Path(path).read_bytes().split(b"\0")
    except PermissionError:
        owner = os.stat(f"/proc/{pid}")
        done = subprocess.run(
            ["cat", path],
            user=owner.st_uid,
            group=owner.st_gid,
            extra_groups=[],
            capture_output=True,
            check=False,
        )
        return done.stdout.split(b"\0")


def all_of(layout: Layout, launched: set[int]) -> set[Proc]:
    """Every process of every job: the steps, what hangs below them, and what got away."""
    roots = stepds(layout)
    return roots | procs.descendants(roots) | strays(layout, launched)
