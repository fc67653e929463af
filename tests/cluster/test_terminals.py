"""What somebody at a session reads on the terminal, and that it is said once."""

import os
import pwd
import selectors
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pty import fork

from playground import Playground
from story import ANA


class Terminal:
    """A program on a terminal of its own, run by a Linux user."""

    def __init__(self, site: Playground, user: str, *argv: str) -> None:
        self.text = ""
        self.pid, self.file = fork()
        if self.pid == 0:
            who = pwd.getpwnam(user)
            os.initgroups(user, who.pw_gid)
            os.setgid(who.pw_gid)
            os.setuid(who.pw_uid)
            os.chdir(site.home(user))
            os.execvpe(argv[0], argv, site.env() | {"HOME": str(site.home(user))})

    def shows(self, text: str) -> bool:
        """Whether it has shown `text` by now."""
        with selectors.DefaultSelector() as ready:
            ready.register(self.file, selectors.EVENT_READ)
            while ready.select(0):
                self.text += os.read(self.file, 4096).decode(errors="replace")
        return text in self.text

    def close(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        os.close(self.file)
        os.waitpid(self.pid, 0)


@contextmanager
def terminal(site: Playground, *argv: str) -> Iterator[Terminal]:
    opened = Terminal(site, ANA, *argv)
    try:
        yield opened
    finally:
        opened.close()


def test_sessions_hear_once_that_they_may_be_ended(site: Playground) -> None:
    asked = ("--gres=gpu:1", "--time=10")
    with (
        terminal(site, "srun", *asked, "--pty", "sh") as srun,
        terminal(site, "salloc", *asked, "sh") as salloc,
    ):
        batch, _ = site.sbatch(ANA, "-Jbatch", *asked, "--no-requeue", "60")
        log = site.home(ANA) / f"batch-{batch}.log"
        said = []

        def all_have_heard() -> bool:
            said.append(site.sbudget("sweep").out)
            read = srun.shows("may be ended") and salloc.shows("may be ended")
            return read and "may be ended" in log.read_text()

        site.wait("all have read it", all_have_heard)
        sessions = site.slurm("squeue", "-h", "-a", "-o", "%i").split()
        assert len(sessions) == 3
        assert all(f"({job}) may be ended at any moment" in
                   srun.text + salloc.text + log.read_text() for job in sessions)  # fmt: skip
        assert any("warned the session of job" in sentence for sentence in said)
        assert "warned" not in site.sbudget("sweep").out, "once is enough"
        assert "warned" not in site.sbudget("sweep", "--dry-run").out
        # as Slurm writes it on a terminal
        assert "srun: sbudget: " in srun.text
        assert "salloc: sbudget: " in salloc.text
        site.slurm("scancel", *sessions)
