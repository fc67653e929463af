"""The one funnel to Slurm's commands: argv lists, a clean environment, a time limit, and both
streams kept. What a reply means is for the caller, by pure functions on Reply.

The environment is made, not inherited: SQUEUE_FORMAT, SACCT_FORMAT, SLURM_TIME_FORMAT and their
like in the shell of whoever calls us would change the output. Times come as epoch seconds.
"""

import os
import subprocess
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from slurm_budget.errors import SlurmUnreachable

_KEEP = ("PATH", "HOME", "USER", "LOGNAME", "LD_LIBRARY_PATH", "MUNGE_SOCKET")
_DOWN = (
    "unable to contact slurm controller",
    "connection refused",
    "slurm_persist_conn_open",
    "unable to contact slurm database",
    "sending persistmsg",
    "problem talking to the database",
    "unable to get information from slurmdbd",
    "database connection",
    "socket timed out",
    "zero bytes were transmitted",
    "protocol authentication error",
    "unable to establish configuration source",
)


@dataclass(frozen=True, slots=True)
class Reply:
    """What one command answered; `seconds` is wall time."""

    argv: tuple[str, ...]
    code: int
    out: str
    err: str
    seconds: float

    @property
    def unreachable(self) -> bool:
        """Whether the text says that a daemon could not be reached; exit codes do not tell."""
        text = (self.err + self.out[-2000:] if self.code else self.err).lower()
        return any(sign in text for sign in _DOWN)


def checked(reply: Reply, *, silent_ok: bool = True) -> str:
    """The output of a read that worked; SlurmUnreachable when it did not, or may not have.

    Text on stderr beside an exit code of 0 is how slurmdbd's absence looks, so it counts as a
    failure. With `silent_ok=False` empty output does too: the caller knows that there must be rows.
    """
    command = Path(reply.argv[0]).name
    if reply.code != 0 or reply.unreachable or "error:" in reply.err:
        detail = (reply.err or reply.out).strip().splitlines()
        raise SlurmUnreachable(
            f"{command} failed (exit {reply.code}): {detail[0] if detail else 'it said nothing'}",
            where=" ".join(reply.argv[:4]),
            mend="check that the daemons answer: `scontrol ping`, `sacctmgr show cluster`",
        )
    if not silent_ok and not reply.out.strip():
        raise SlurmUnreachable(
            f"{command} answered nothing, where there must be something",
            where=" ".join(reply.argv[:4]),
            mend="check slurmdbd and that this user may read it (`sacctmgr show user withassoc`)",
        )
    return reply.out


def _too_slow(argv: Sequence[str], limit: float) -> SlurmUnreachable:
    return SlurmUnreachable(
        f"{argv[0]} did not answer within {limit:g} s",
        where=" ".join(argv[:4]),
        mend="look at slurmctld and slurmdbd; slurm.timeout sets how long we wait",
    )


class _Watch:
    """Kills a command that says nothing for too long; `bit` tells that it did."""

    def __init__(self, process: subprocess.Popen[str], limit: float) -> None:
        self.process, self.limit = process, limit
        self.heard = time.monotonic()
        self.over = threading.Event()
        self.bit = False
        threading.Thread(target=self._watch, daemon=True).start()

    def lines(self, source: Iterable[str]) -> Iterator[str]:
        for line in source:
            self.heard = time.monotonic()
            yield line

    def _watch(self) -> None:
        while not self.over.wait(max(self.heard + self.limit - time.monotonic(), 0)):
            if time.monotonic() >= self.heard + self.limit:
                self.bit = self.process.poll() is None
                self.process.kill()
                return


@dataclass(slots=True)
class Commands:
    """Runs Slurm's commands. `calls` counts them and `seconds` adds up their time, for reports."""

    conf: Path | None = None
    bin: Path | None = None
    timeout: float = 60.0
    calls: int = 0
    seconds: float = 0.0
    extra_env: dict[str, str] = field(default_factory=dict)

    def conf_in_force(self) -> Path:
        """The slurm.conf that Slurm's commands read."""
        return self.conf or Path(os.environ.get("SLURM_CONF", "/etc/slurm/slurm.conf"))

    def environment(self) -> dict[str, str]:
        env = {name: os.environ[name] for name in _KEEP if name in os.environ}
        if "PATH" in env:
            # `.` or nothing between two colons: root in a user's folder would run their scontrol
            places = env["PATH"].split(os.pathsep)
            env["PATH"] = os.pathsep.join(p for p in places if p.startswith("/")) or os.defpath
        env |= {"LC_ALL": "C.UTF-8", "TZ": "UTC", "SLURM_TIME_FORMAT": "%s"}
        env["SLURM_BITSTR_LEN"] = "0"  # or an array with holes is cut at 64 characters
        if self.conf is not None:
            env["SLURM_CONF"] = str(self.conf)
        elif "SLURM_CONF" in os.environ:
            env["SLURM_CONF"] = os.environ["SLURM_CONF"]
        return env | self.extra_env

    def _argv(self, argv: Sequence[str]) -> list[str]:
        return [str(self.bin / argv[0]) if self.bin else argv[0], *argv[1:]]

    def run(self, *argv: str, stdin: str | None = None, timeout: float | None = None) -> Reply:
        """Run to its end. Raises SlurmUnreachable when it cannot be started or takes too long."""
        started = time.monotonic()
        self.calls += 1
        limit = self.timeout if timeout is None else timeout
        try:
            done = subprocess.run(
                self._argv(argv),
                input=stdin,
                stdin=subprocess.DEVNULL if stdin is None else None,
                capture_output=True,
                text=True,
                errors="replace",
                env=self.environment(),
                timeout=limit,
                check=False,
            )
        except FileNotFoundError:
            raise SlurmUnreachable(
                f"the command {argv[0]} is not there",
                where=str(self.bin or "PATH"),
                mend="install Slurm's client commands, or set slurm.bin in slurm-budget.toml",
            ) from None
        except subprocess.TimeoutExpired:
            raise _too_slow(argv, limit) from None
        finally:
            self.seconds += time.monotonic() - started
        return Reply(
            tuple(argv), done.returncode, done.stdout, done.stderr, time.monotonic() - started
        )

    @contextmanager
    def stream(self, *argv: str) -> Iterator[Iterator[str]]:
        """Lines as they come, in bounded memory; the exit is checked when the block ends.

        Raises SlurmUnreachable at the end of the block when the command failed, or said nothing for
        `timeout` seconds, so a caller must commit nothing before it has left the block.
        """
        started = time.monotonic()
        self.calls += 1
        try:
            process = subprocess.Popen(
                self._argv(argv),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
                env=self.environment(),
            )
        except FileNotFoundError:
            raise SlurmUnreachable(
                f"the command {argv[0]} is not there",
                where=str(self.bin or "PATH"),
                mend="install Slurm's client commands, or set slurm.bin in slurm-budget.toml",
            ) from None
        assert process.stdout is not None
        assert process.stderr is not None
        watch = _Watch(process, self.timeout)
        try:
            yield watch.lines(process.stdout)
            process.stdout.read()
            err = process.stderr.read()
            code = process.wait(self.timeout)
            if watch.bit:
                raise _too_slow(argv, self.timeout)
            checked(Reply(tuple(argv), code, "", err, time.monotonic() - started))
        finally:
            watch.over.set()
            if process.poll() is None:
                process.kill()
                process.wait()
            process.stdout.close()
            process.stderr.close()
            self.seconds += time.monotonic() - started
