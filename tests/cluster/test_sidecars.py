"""`sbudget run` beside a real Slurm: daemons as processes, with settings of their own.

Tested: acting by itself, SIGHUP, SIGTERM, pause and resume, two daemons and take-over, cron's sweep
beside them, a sweep stopped in the middle, slurmctld down at the start.
Untested: two hosts, real clocks that are set.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from disturb import DRIVER, FUNDED, requeued, vision_runs
from playground import Playground
from story import BEN

PROGRAM = Path(sys.executable).parent / "sbudget"


class Sidecar:
    """One `sbudget run`, with a beat of a second and what `changes` replace in the settings."""

    def __init__(self, site: Playground, name: str, changes: dict[str, str]) -> None:
        self.config = site.site / f"{name}.toml"
        self.write(site, changes)
        self.files = site.site / f"{name}.out", site.site / f"{name}.err"
        with self.files[0].open("w") as out, self.files[1].open("w") as err:
            self.process = subprocess.Popen(
                [str(PROGRAM), "--config", str(self.config), "run"],
                env=site.env(),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
            )

    def write(self, site: Playground, changes: dict[str, str]) -> None:
        text = site.config.read_text()
        for old, new in changes.items():
            assert old in text
            text = text.replace(old, new)
        self.config.write_text(text)

    @property
    def out(self) -> str:
        return self.files[0].read_text()

    @property
    def err(self) -> str:
        """All but that beats were left out, as on a busy machine."""
        lines = self.files[1].read_text().splitlines(keepends=True)
        return "".join(line for line in lines if " left out: " not in line)

    @property
    def sentences(self) -> list[str]:
        return [line for line in self.out.splitlines() if line.startswith("swept: ")]

    def tell(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def end(self) -> int:
        self.tell(signal.SIGTERM)
        return self.process.wait(30)


Start = Callable[..., Sidecar]


@pytest.fixture
def start(site: Playground) -> Iterator[Start]:
    started: list[Sidecar] = []

    def run(name: str = "one", **changes: str) -> Sidecar:
        started.append(Sidecar(site, name, {CHANGES[k]: v for k, v in changes.items()}))
        return started[-1]

    yield run
    for sidecar in started:
        sidecar.process.kill()
        sidecar.process.wait()
    site.sbudget("resume")


CHANGES = {"grace": 'grace = "2s"', "beat": 'beat = "1s"', "slurm": "[slurm]"}


def test_the_daemon_acts_alone_and_ends_when_told(site: Playground, start: Start) -> None:
    victims = vision_runs(site)
    # A lease is for two beats: one that outlives a slow moment of the machine, or cron's sweep
    # rightly takes it.
    slower = 'beat = "4s"'
    one = start(grace='grace = "0s"', beat=slower)
    site.wait("the first sweep", lambda: one.sentences)
    two = start("two", beat=slower)
    owed, _ = site.sbatch(BEN, "-Jgang", *FUNDED, "5")

    def runs() -> bool:
        # cron's sweep beside both
        assert "nothing done" in site.sbudget("sweep").out
        return site.state(owed) in ("RUNNING", "COMPLETED")

    site.wait("the owed job runs", runs)
    site.wait("the other has seen it", lambda: "observing: " in two.out)
    assert "requeued" not in two.out
    owing = [line for line in one.sentences if "1 owed" in line and "nobody" not in line]
    assert "requeued job" in owing[0], "in the first sweep that finds who makes way"
    assert len(requeued(site, victims)) == 1
    assert one.end() == 0
    assert one.out.endswith("stopped\n")
    # a busy machine may miss a beat, and then says so
    assert [line for line in one.err.splitlines() if "left out" not in line] == []
    assert two.end() == 0
    assert "swept" in site.sbudget("sweep").out, "the lease was given back"


def test_settings_are_read_again_at_sighup(site: Playground, start: Start) -> None:
    one = start()
    site.wait("the first sweep", lambda: one.sentences)
    one.config.write_text(one.config.read_text().replace('beat = "1s"', 'beat = "soon"'))
    one.tell(signal.SIGHUP)
    site.wait("the fault is named", lambda: "settings stay as they were" in one.err)
    assert "sweep.beat = 'soon'" in one.err
    seen = len(one.sentences)
    site.wait("it goes on", lambda: len(one.sentences) > seen)
    one.config.write_text(one.config.read_text().replace('beat = "soon"', 'beat = "1h"'))
    one.tell(signal.SIGHUP)
    site.wait("they are read", lambda: "settings read again" in one.out)
    assert one.end() == 0, "from the middle of an hour's wait"


def test_a_pause_holds_what_is_half_done_until_it_is_resumed(
    site: Playground, start: Start
) -> None:
    grace = 4
    victims = vision_runs(site)
    one = start(grace=f'grace = "{grace}s"')
    owed, _ = site.sbatch(BEN, "-Jgang", *FUNDED, "5")
    site.wait("a run is warned", lambda: "signalled job" in one.out)
    warned = time.time()
    assert "Missing option" in site.sbudget("pause", code=2).err
    site.sbudget("pause", "-m", "repairs")
    site.wait("the grace is over", lambda: time.time() > warned + grace + 2)
    seen = len(one.sentences)
    site.wait("more sweeps", lambda: len(one.sentences) >= seen + 2)
    assert "paused: repairs (" in one.sentences[-1]
    assert requeued(site, victims) == []
    assert "already paused by " in site.sbudget("pause", "-m", "again").out
    site.sbudget("resume", "-m", "all is well")
    site.wait("the owed job runs", lambda: site.state(owed) in ("RUNNING", "COMPLETED"), 30)
    assert one.out.count("signalled job") == 2, "warned again: it has worked on since"
    assert len(requeued(site, victims)) == 1
    assert "not paused" in site.sbudget("resume").out


def test_of_two_daemons_the_other_takes_over(site: Playground, start: Start) -> None:
    one = start("one", beat='beat = "2s"')
    site.wait("the first acts", lambda: one.sentences)
    two = start("two", beat='beat = "2s"')
    held_by = f"observing: {os.uname().nodename}:{one.process.pid} holds the lease until"
    site.wait("the second observes", lambda: held_by in two.out)
    beside = site.sbudget("sweep").out
    assert f":{one.process.pid} holds the lease until" in beside
    assert "nothing done" in beside
    at = len(one.sentences)
    # between two sweeps: in the middle of a write it would take SQLite's lock along
    site.wait("a sweep ends", lambda: len(one.sentences) > at, every=0.02)
    one.tell(signal.SIGSTOP)
    seen = two.out.count("observing:")
    site.wait("the second takes over", lambda: "observing:" not in two.sentences[-1], 30)
    assert two.err == ""
    assert two.out.count("observing:") - seen <= 3, "within three beats"
    one.tell(signal.SIGCONT)
    lost = f"lost the lease: {os.uname().nodename}:{two.process.pid} holds the lease until"
    site.wait("the first has noticed", lambda: lost in one.out)
    at = len(one.sentences)
    site.wait("both go on", lambda: len(one.sentences) > at)
    assert "observing:" in one.sentences[-1]
    assert two.end() == 0
    site.wait("the first acts again", lambda: "observing:" not in one.sentences[-1])
    assert one.end() == 0


def test_a_sweep_stopped_in_the_middle_of_acting_does_nothing_more(site: Playground) -> None:
    victims = vision_runs(site)
    owed, _ = site.sbatch(BEN, "-Jgang", *FUNDED, "5")
    stopped: list[subprocess.Popen[str]] = []

    def planned() -> bool:
        argv = [sys.executable, str(DRIVER), "planned", "STOP"]
        process = subprocess.Popen(argv, env=site.env(), stdout=subprocess.PIPE, text=True)
        _, status = os.waitpid(process.pid, os.WUNTRACED)
        if os.WIFSTOPPED(status):
            stopped.append(process)
        return bool(stopped)

    site.wait("a sweep stops in the middle", planned)
    try:
        site.wait("another sweep acts", lambda: "signalled" in site.sbudget("sweep").out)
        stopped[0].send_signal(signal.SIGCONT)
        said, _ = stopped[0].communicate(timeout=30)
    finally:
        stopped[0].kill()
    assert "lost the lease, acted no further" in said
    assert "signalled" not in said

    def runs() -> bool:
        site.sbudget("sweep")
        return site.state(owed) in ("RUNNING", "COMPLETED")

    site.wait("the owed job runs", runs, 30)
    assert len(requeued(site, victims)) == 1


def test_a_daemon_started_before_slurmctld_recovers(site: Playground, start: Start) -> None:
    site.cluster("stop", "slurmctld")
    # Slurm's own commands would try for 30 s
    one = start(slurm='[slurm]\ntimeout = "3s"')
    site.wait("it says so", lambda: "acted on nothing" in one.err)
    site.cluster("start", "slurmctld")
    site.wait("it sweeps", lambda: one.sentences)
    assert "works again" in one.err
    assert one.err.count("acted on nothing") <= 3, "once for each kind of failure on the way"
    assert one.end() == 0
