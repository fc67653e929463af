"""A real Slurm with slurm-budget on it, for the demo and for the tests: one object, real commands.

Everything is done as a user would: `scripts/cluster` makes the cluster, `sbudget` is called as a
program, jobs are submitted by Linux users with `sbatch`. Waiting is for a condition, never for a
time, and stops early with what was seen.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = Path(sys.executable).parent / "sbudget"
JOB = ROOT / "docs" / "examples" / "checkpoint.sh"


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    argv: tuple[str, ...]
    code: int
    out: str
    err: str

    def __str__(self) -> str:
        return f"$ {' '.join(self.argv)}\n{self.out}{self.err}(exit {self.code})"


class Failed(Exception):
    """Something that had to happen did not."""


@dataclass
class Playground:
    """A cluster called `name` with `nodes` x `gpus`, and a site folder with ledger and settings."""

    name: str
    users: Sequence[str] = ()
    nodes: int = 4
    gpus: int = 8
    settings: str = ""
    slurm_conf: Sequence[str] = ()
    hook: bool = True
    files: Sequence[Path] = ()
    """Copied beside slurm.conf, such as topology.conf."""
    folder: Path = field(init=False)

    def __post_init__(self) -> None:
        self.folder = Path("/var/lib/sbudget-cluster") / self.name
        self.site = Path("/var/lib/sbudget-cluster") / f"{self.name}-site"
        self.conf = self.folder / "etc" / "slurm.conf"
        self.config = self.site / "slurm-budget.toml"
        self.ledger = self.site / "ledger.db"
        self.snapshot = self.site / "snapshot"

    # -- up and down -----------------------------------------------------------------------------

    def up(self, say: Callable[[str], None] = lambda line: None) -> None:
        """Bring the cluster up with our hook in it; what an earlier run left is removed first."""
        self.down()
        self.site.mkdir(parents=True)
        self.site.chmod(0o755)
        shutil.copy(ROOT / "etc" / "sbudget.lua", self.site / "sbudget.lua")
        loader = self.site / "job_submit.lua"
        loader.write_text(self._loader())
        self.config.write_text(self.site_settings())
        argv = [
            *(str(ROOT / "scripts" / "cluster"), "up", "--yes", "--name", self.name),
            *("--nodes", str(self.nodes), "--gpus", str(self.gpus), "--type", "h100"),
        ]
        if self.users:
            argv += ["--users", ",".join(self.users)]
        if self.hook:
            argv += ["--hook", str(loader)]
        for line in self.slurm_conf:
            argv += ["--set", line]
        for file in self.files:
            argv += ["--file", str(file)]
        with subprocess.Popen(
            argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as process:
            assert process.stdout is not None
            seen = []
            for line in process.stdout:
                seen.append(line)
                say(line.rstrip())
        if process.returncode:
            raise Failed(f"scripts/cluster up failed:\n{''.join(seen[-20:])}")

    def down(self) -> None:
        """Take down what was started, and remove the site folder."""
        argv = [str(ROOT / "scripts" / "cluster"), "down", "--name", self.name]
        subprocess.run(argv, capture_output=True, check=False, timeout=120)
        shutil.rmtree(self.site, ignore_errors=True)

    def cluster(self, *args: str) -> Done:
        """`scripts/cluster ARGS` for this cluster, e.g. ("stop", "slurmctld")."""
        return self._run([str(ROOT / "scripts" / "cluster"), *args, "--name", self.name])

    def _loader(self) -> str:
        text = (ROOT / "etc" / "job_submit.lua").read_text()
        for key, path in (("logic", self.site / "sbudget.lua"), ("snapshot", self.snapshot)):
            text = re.sub(rf'(\b{key} = )"[^"]*"', rf'\1"{path}"', text, count=1)
        return text

    def site_settings(self) -> str:
        return textwrap.dedent(f"""\
            [ledger]
            url = "sqlite:///{self.ledger}"
            [slurm]
            conf = "{self.conf}"
            [snapshot]
            path = "{self.snapshot}"
            """) + textwrap.dedent(self.settings)

    # -- commands --------------------------------------------------------------------------------

    def command(self, *argv: str) -> str:
        """`sbudget ARGV` for this cluster, as a line that works in any shell and any folder."""
        sudo = ["sudo"] if os.environ.get("SUDO_USER") else []
        where = [f"SLURM_CONF={self.conf}", f"SBUDGET_CONFIG={self.config}"]
        return shlex.join([*sudo, "env", *where, str(PROGRAM), *argv])

    def env(self) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "HOME": os.environ.get("HOME", "/root"),
            "SLURM_CONF": str(self.conf),
            "SBUDGET_CONFIG": str(self.config),
            "LC_ALL": "C.UTF-8",
            "TZ": "UTC",
            "SLURM_TIME_FORMAT": "%s",
        }

    def _run(self, argv: Sequence[str], *, env: dict[str, str] | None = None) -> Done:
        done = subprocess.run(
            list(argv),
            env=self.env() | (env or {}),
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            check=False,
            timeout=120,
        )
        return Done(tuple(argv), done.returncode, done.stdout, done.stderr)

    def sbudget(self, *args: str, code: int | None = 0, env: dict[str, str] | None = None) -> Done:
        """Our own program, as a program; an exit code other than `code` raises (None: any)."""
        done = self._run([str(PROGRAM), *args], env=env)
        if code is not None and done.code != code:
            raise Failed(f"expected exit {code}:\n{done}")
        return done

    def slurm(self, *argv: str, code: int | None = 0) -> str:
        """One of Slurm's commands, as root."""
        done = self._run(argv)
        if code is not None and done.code != code:
            raise Failed(str(done))
        return done.out

    def sbatch(self, user: str, *args: str, command: str = "") -> "tuple[int, str]":
        """Submit as `user` from their home; (job id, what sbatch said to the user).

        Without `command` the job is docs/examples/checkpoint.sh with the arguments behind `--`.
        """
        done = self.try_sbatch(user, *args, command=command)
        found = re.search(r"Submitted batch job (\d+)", done.out)
        if done.code or not found:
            raise Failed(str(done))
        said = [line.removeprefix("sbatch: ") for line in done.err.splitlines()]
        return int(found[1]), "\n".join(said)

    def try_sbatch(self, user: str, *args: str, command: str = "") -> Done:
        """The same, whatever comes of it."""
        home = self.home(user)
        job = home / "job"
        if not job.exists():
            shutil.copy(JOB, job)
            job.chmod(0o755)
        options = [arg for arg in args if arg.startswith("-")]
        rest = [arg for arg in args if not arg.startswith("-")]
        argv = ["sbatch", "--chdir", str(home), "--output", str(home / "%x-%j.log"), *options]
        argv += ["--open-mode=append"]
        argv += [f"--wrap={command}"] if command else [str(job), *rest]
        return self.as_user(user, *argv)

    def as_user(self, user: str, *argv: str) -> Done:
        """A command as a Linux user, through su as they would have it."""
        line = " ".join("'" + arg.replace("'", "'\\''") + "'" for arg in argv)
        line = f"cd {self.home(user)} && SLURM_CONF={self.conf} {line}"
        return self._run(["su", user, "-s", "/bin/sh", "-c", line])

    def home(self, user: str) -> Path:
        return self.folder / "home" / user

    # -- looking ---------------------------------------------------------------------------------

    def job(self, job: int) -> dict[str, str]:
        """State, QOS, nodes and restarts of a job; empty when slurmctld has forgotten it."""
        fields = ("State", "QOS", "NodeList", "RestartCnt", "Reason", "NumNodes", "admin_comment")
        out = self.slurm(
            "squeue", "-h", "-a", "-t", "all", "-j", str(job), "-O",
            ",".join(f"{name}:;" for name in fields), code=None,
        )  # fmt: skip
        lines = [line for line in out.splitlines() if line.count(";") >= len(fields)]
        return dict(zip(fields, lines[0].split(";"), strict=False)) if lines else {}

    def state(self, job: int) -> str:
        return self.job(job).get("State", "GONE")

    def rows(self, *jobs: int) -> list[list[str]]:
        """Accounting rows (JobIDRaw, State, QOS, Start, End, NodeList), each start its own."""
        out = self.slurm(
            "sacct", "-D", "-X", "-n", "-P", "-S", "now-1hour", "-j", ",".join(map(str, jobs)),
            "-o", "JobIDRaw,State,QOS,Start,End,NodeList",
        )  # fmt: skip
        return [line.split("|") for line in out.splitlines()]

    def last(self, job: int) -> str:
        """State of a job's last start as the accounting has it; empty while it has none."""
        found = self.rows(job)
        return found[-1][1] if found else ""

    def wait(
        self, what: str, condition: Callable[[], object], seconds: float = 60, every: float = 0.3
    ) -> None:
        """Until `condition()` is true; Failed with the queue as it stands when it does not come.

        SBUDGET_PATIENCE multiplies the time, for machines that do several things at once.
        """
        seconds *= float(os.environ.get("SBUDGET_PATIENCE", "1"))
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end:
                raise Failed(f"waited {seconds:g} s for: {what}\n{self.slurm('squeue', '-a')}")
            time.sleep(every)
