"""Processes, known by pid and start time: a pid alone may belong to somebody else by now.

Only /proc/PID/stat is read.  It is open to everybody, even in a container without
CAP_SYS_PTRACE, where root may not look at the environment or the files of a job's process.
"""

import os
import signal
import subprocess
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from .base import until

# The child stops here until it has been written to state.json.  If we are killed first, the pipe
# closes, `read` fails and the child ends: no daemon ever runs that `down` does not know of.
# `exec` keeps the pid and the start time.
GATE = 'read -r go || exit 1; exec "$@" </dev/null'


@dataclass(frozen=True)
class Stat:
    """What we need of /proc/PID/stat."""

    ppid: int
    state: str
    session: int
    start: int  # clock ticks since boot

    @property
    def dead(self) -> bool:
        """A zombie is dead too: in a container nobody may ever collect it."""
        return self.state in "ZX"


def read_stat(pid: int) -> Stat | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return None
    # The command stands in parentheses and may hold any character: count from the last one.
    field = text.rpartition(")")[2].split()
    return Stat(int(field[1]), field[0], session=int(field[3]), start=int(field[19]))


@dataclass(frozen=True)
class Proc:
    """One process, and no other that gets the same pid later."""

    pid: int
    start: int

    @classmethod
    def of(cls, pid: int) -> "Proc | None":
        stat = read_stat(pid)
        return cls(pid, stat.start) if stat and not stat.dead else None

    @property
    def alive(self) -> bool:
        stat = read_stat(self.pid)
        return stat is not None and stat.start == self.start and not stat.dead

    def send(self, sig: signal.Signals) -> None:
        if self.alive:
            with suppress(ProcessLookupError):
                os.kill(self.pid, sig)


def descendants(roots: Iterable[Proc]) -> set[Proc]:
    """All living children, grandchildren, ... of the living among `roots`; not the roots."""
    table: dict[int, Stat] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit() and (stat := read_stat(int(entry))):
            table[int(entry)] = stat
    children: dict[int, list[int]] = {}
    for pid, stat in table.items():
        children.setdefault(stat.ppid, []).append(pid)
    found: set[Proc] = set()
    queue = [proc.pid for proc in roots if proc.alive]
    while queue:
        for pid in children.get(queue.pop(), ()):
            proc = Proc(pid, table[pid].start)
            if proc not in found:
                found.add(proc)
                queue.append(pid)
    return {proc for proc in found if not table[proc.pid].dead}


def end(procs: Iterable[Proc], patience: float) -> list[Proc]:
    """SIGTERM, wait at most `patience` seconds, SIGKILL.  Returns those that still live."""
    living = [proc for proc in procs if proc.alive]
    if patience > 0:
        for proc in living:
            proc.send(signal.SIGTERM)
            proc.send(signal.SIGCONT)  # a stopped process would not see the SIGTERM
        until(lambda: not any(proc.alive for proc in living), patience, every=0.05)
    for proc in living:
        proc.send(signal.SIGKILL)
    until(lambda: not any(proc.alive for proc in living), 10, every=0.02)
    return [proc for proc in living if proc.alive]


@dataclass(frozen=True)
class Command:
    """A daemon to start: its name in state.json, its command line, where its output goes."""

    name: str
    argv: list[str]
    output: Path


def launch(
    commands: list[Command], env: dict[str, str], record: Callable[[dict[str, Proc]], None]
) -> None:
    """Start all commands at once, each in a session of its own, after `record` has them all."""
    children: list[subprocess.Popen[bytes]] = []
    started: dict[str, Proc] = {}
    for command in commands:
        with open(command.output, "ab") as output:
            child = subprocess.Popen(
                ["/bin/sh", "-c", GATE, "gate", *command.argv],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C in `up` is not for the daemons
                cwd="/",
                env=env,
            )
        children.append(child)
        proc = Proc.of(child.pid)
        if proc is not None:
            started[command.name] = proc
    record(started)
    for child in children:
        with suppress(BrokenPipeError):
            assert child.stdin is not None
            child.stdin.write(b"go\n")
            child.stdin.close()


def listening(port: int) -> bool:
    """Whether something on this machine listens on the TCP port, without knocking at it."""
    wanted = f":{port:04X}"
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with suppress(OSError):
            for line in Path(table).read_text().splitlines()[1:]:
                field = line.split()
                if field[3] == "0A" and field[1].endswith(wanted):  # 0A: TCP_LISTEN
                    return True
    return False
