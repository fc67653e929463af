"""How each daemon is started, and how we know that it answers."""

import os
import subprocess

from . import procs
from .base import ClusterError, until
from .layout import Layout
from .machine import port_of
from .state import State, boot_id

# Debian keeps the daemons in sbin, which is not in everybody's PATH.
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
READY_NODES = {"idle", "mix", "alloc", "comp", "resv", "plnd"}


class Cluster:
    """A cluster's folder and state, and the ways to act on its daemons."""

    def __init__(self, layout: Layout, state: State, timeout: float = 60):
        self.layout, self.state = layout, state
        self.timeout = timeout
        self.said: list[str] = []  # what the last tool that ran wrote to stderr
        # A clean environment: SLURM_*, SQUEUE_FORMAT and the like change what the tools do.
        self.env = {"PATH": PATH, "LANG": "C.UTF-8", "SLURM_CONF": str(layout.slurm_conf)}

    # -- commands ------------------------------------------------------------------------------

    def run(self, *argv: str, timeout: float = 30) -> subprocess.CompletedProcess[str]:
        """Run one of Slurm's tools against this cluster.  A hanging tool counts as failed (124)."""
        try:
            done = subprocess.run(
                argv,
                env=self.env,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=timeout,
                check=False,
            )
        except subprocess.TimeoutExpired:
            done = subprocess.CompletedProcess(argv, 124, "", f"no answer in {timeout:.0f} s")
        self.said = done.stderr.strip().splitlines()
        return done

    def must(self, *argv: str) -> str:
        done = self.run(*argv)
        if done.returncode:
            said = (done.stderr or done.stdout).strip()
            raise ClusterError(f"{argv[0]} failed: {said}", where=" ".join(argv))
        return done.stdout

    # -- start and stop ------------------------------------------------------------------------

    def command(self, name: str) -> procs.Command:
        """The command line of a daemon.  All stay in the foreground: the pid we know is theirs."""
        there, ports = self.layout, self.state.ports
        conf = str(there.slurm_conf)
        kind, _, node = name.partition(":")
        argv = {
            "munged": [
                "munged",
                "--foreground",
                "--force",  # it would rather not run as root
                "--num-threads=8",
                f"--key-file={there.munge_key}",
                f"--socket={there.munge_socket}",
                f"--pid-file={there.run}/munged.pid",
                f"--seed-file={there.run}/munge.seed",
                f"--log-file={there.log}/munged.log",
            ],
            "mariadb": [
                "mariadbd",
                "--no-defaults",
                "--user=root",
                f"--datadir={there.mysql}",
                f"--socket={there.mysql_socket}",
                f"--pid-file={there.run}/mariadb.pid",
                f"--log-error={there.log}/mariadb.log",
                f"--init-file={there.etc}/mariadb.sql",
                "--bind-address=127.0.0.1",
                f"--port={ports['mariadb']}",
                "--skip-name-resolve",
                "--skip-log-bin",
                # What slurmdbd asks for ...
                "--innodb-lock-wait-timeout=900",
                "--max-allowed-packet=16M",
                "--loose-innodb-snapshot-isolation=OFF",
                # ... and what keeps it small and quick: it need not survive a power cut.
                "--innodb-buffer-pool-size=64M",
                "--innodb-log-file-size=32M",
                "--innodb-flush-log-at-trx-commit=2",
                "--innodb-use-native-aio=OFF",
                "--performance-schema=OFF",
            ],
            "slurmdbd": ["slurmdbd", "-D"],
            "slurmctld": ["slurmctld", "-D", "-f", conf],
            "slurmd": ["slurmd", "-D", "-f", conf, "-N", node],
        }[kind]
        if kind == "slurmctld" and self._usage_lost():
            argv.append("-i")
        return procs.Command(name, argv, there.log / f"{name.replace(':', '-')}.out")

    def _usage_lost(self) -> bool:
        """Whether slurmctld was killed before it first saved its usage file.

        From 26.05 on it does not start again then, unless told (-i) to put up with it.
        """
        save = self.layout.save
        return (save / "job_state").exists() and not (save / "assoc_usage").exists()

    def start(self, names: list[str]) -> None:
        """Start daemons that do not run, all at once."""
        commands = [self.command(name) for name in names if not self.state.alive(name)]
        self.launch(commands)

    def launch(self, commands: list[procs.Command]) -> None:
        def record(started: dict[str, procs.Proc]) -> None:
            if self.state.boot != boot_id():
                self.state.boot, self.state.procs = boot_id(), {}
            self.state.procs |= started
            self.state.save(self.layout)

        procs.launch(commands, self.env, record)

    # -- readiness -----------------------------------------------------------------------------

    def answers(self, name: str) -> bool:
        """Whether a daemon does its work, asked once."""
        port = port_of(name, self.state.spec, self.state.ports)
        if not self.state.alive(name) or (port and not procs.listening(port)):
            return False
        match name:
            case "munged":
                return self.run("munge", "-n", "-S", str(self.layout.munge_socket)).returncode == 0
            case "mariadb":
                return self.sql("SELECT 1") == 0
            case "slurmdbd":
                return self.run("sacctmgr", "-nP", "show", "cluster").returncode == 0
            case "slurmctld":
                return "is UP" in self.run("scontrol", "ping").stdout
            case _:  # a slurmd: slurmctld speaks for it
                node = name.removeprefix("slurmd:")
                return (
                    not self.state.alive("slurmctld") or self.node_states().get(node) in READY_NODES
                )

    def await_answer(self, name: str) -> None:
        """Wait until a daemon answers; stop early when it has died."""

        def done() -> bool:
            return not self.state.alive(name) or self.answers(name)

        if not until(done, self.timeout) or not self.state.alive(name):
            raise self.failure(name)

    def failure(self, name: str) -> ClusterError:
        """What to say about a daemon that does not come up: its log, and the last lines of it."""
        waited = f"does not answer after {self.timeout:.0f} s"
        stem = name.replace(":", "-")
        tails = []
        for path in (self.layout.log / f"{stem}.log", self.layout.log / f"{stem}.out"):
            text = path.read_text(errors="replace") if path.exists() else ""
            if text.strip():
                tails = [str(path), *text.strip().splitlines()[-8:]]
                break
        # A fault in slurm.conf, for one, is told by the tool that asked and not in the log.
        asked = "\nasked, it said:\n" + "\n".join(self.said[-4:]) if self.said else ""
        return ClusterError(
            f"{name} {waited if self.state.alive(name) else 'has ended'}",
            where="\n".join(tails or [str(self.layout.log)]) + asked,
            mend="read the log; then `scripts/cluster down` and `up` again "
            "(--timeout gives a slow machine more time)",
        )

    def node_states(self) -> dict[str, str]:
        """Node name -> state as sinfo has it (`idle`, `mix`, `down*`, ...)."""
        lines = self.run("sinfo", "-h", "-N", "-o", "%N %t").stdout.splitlines()
        # A `-` at the end: backfill has plans for the node.  It is no less ready for that.
        return dict(line.rstrip("-").split()[:2] for line in lines if " " in line)

    def sql(self, statement: str) -> int:
        """Run SQL as MariaDB's root, who is let in by being root on the socket."""
        client = ["mariadb", "--no-defaults", f"--socket={self.layout.mysql_socket}", "-u", "root"]
        return self.run(*client, "-e", statement).returncode


def slurm_version() -> tuple[str, tuple[int, ...]]:
    """("22.05.8", (22, 5, 8)), from slurmctld itself."""
    env = {**os.environ, "PATH": PATH}
    try:
        text = subprocess.run(
            ["slurmctld", "-V"], env=env, capture_output=True, text=True, check=False
        ).stdout
    except FileNotFoundError:
        text = ""
    word = (text.split() or ["none"])[-1]
    numbers = tuple(int(part) for part in word.split(".") if part.isdigit())
    if len(numbers) < 2:
        raise ClusterError(
            f"`slurmctld -V` gives no version: {text.strip() or 'no output'}",
            mend="scripts/cluster install",
        )
    return word, numbers
