"""The daemon's loop: the beat, failures, reload, stop; with a clock and a Slurm that are made."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_budget.core.clock import TOLERANCE, behind
from slurm_budget.errors import BadInput, BadInputs, SlurmUnreachable
from slurm_budget.settings import Settings, SweepSettings
from slurm_budget.usecases.daemon import REPEAT, Daemon, Heard, Stop

DOWN = SlurmUnreachable("squeue failed", where="squeue -a", mend="start slurmctld")


@dataclass
class World:
    """Sweeps end as `ends` says (seconds taken, sentence or failure), then comes SIGTERM; `signals`
    are heard by the wait of that number."""

    ends: list[tuple[float, str | Exception]]
    signals: dict[int, Heard] = field(default_factory=dict)
    loaded: Callable[[], Settings] = Settings
    now: float = 1000.0
    at: list[float] = field(default_factory=list)
    said: list[tuple[str, str]] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    waits: Iterator[int] = field(default_factory=lambda: iter(range(10**6)))

    def sweep(self, settings: Settings) -> str:
        self.at.append(self.now - 1000)
        seconds, end = self.ends.pop(0)
        self.now += seconds
        if isinstance(end, Exception):
            raise end
        return end

    def wait(self, seconds: float) -> Heard | None:
        assert seconds > 0
        heard = self.signals.get(next(self.waits))
        if not self.ends:
            return "stop"
        if heard is None:
            self.now += seconds
        return heard

    def notify(self, *words: str) -> None:
        self.told += words

    def run(self, beat: int = 30) -> "World":
        Daemon(
            Settings(sweep=SweepSettings(beat=beat)),
            self.sweep,
            self.loaded,
            self.wait,
            lambda: self.now,
            lambda level, text: self.said.append((level, text)),
            self.notify,
        ).run()
        return self

    def lines(self, level: str) -> list[str]:
        return [text for found, text in self.said if found == level]


@given(st.lists(st.floats(0, 29), min_size=1, max_size=20))
def test_the_beat_does_not_drift(seconds: list[float]) -> None:
    world = World([(one, "swept.") for one in seconds]).run()
    assert world.at == pytest.approx([30 * n for n in range(len(seconds))])
    assert world.lines("warning") == []


def test_a_sweep_longer_than_a_beat_leaves_beats_out_and_says_so() -> None:
    world = World([(65, "swept."), (31, "swept."), (1, "swept.")]).run()
    assert world.at == [0, 90, 150]
    assert world.lines("warning") == [
        "2 beats left out: the sweep took 65 s and began 0 s late",
        "1 beat left out: the sweep took 31 s and began 0 s late",
    ]


def test_each_sweep_says_its_sentence_and_systemd_hears_it() -> None:
    world = World([(1, "swept: 3 running."), (1, "swept: 2 running.")]).run()
    assert world.lines("info") == ["swept: 3 running.", "swept: 2 running."]
    assert world.told == [
        "READY=1",
        *("STATUS=swept: 3 running.", "WATCHDOG=1"),
        *("STATUS=swept: 2 running.", "WATCHDOG=1"),
        *("STOPPING=1", "STATUS=ends"),
    ]


def test_a_failure_that_lasts_is_told_at_first_then_rarely_then_its_end() -> None:
    ends: list[tuple[float, str | Exception]] = [(1, DOWN)] * (2 * REPEAT)
    world = World([*ends, (1, "swept.")]).run()
    what = "squeue -a: squeue failed; mend: start slurmctld"
    assert world.lines("error") == [
        f"acted on nothing: {what}",
        f"acted on nothing ({REPEAT + 1} times now): {what}",
    ]
    assert world.lines("warning") == [f"works again; failed so often: {2 * REPEAT}"]
    assert world.told.count("WATCHDOG=1") == 2 * REPEAT + 1, "Slurm's absence is no fault of ours"


def test_another_failure_is_told_at_once() -> None:
    world = World([(1, DOWN), (1, SlurmUnreachable("sacct failed")), (1, DOWN)]).run()
    assert len(world.lines("error")) == 3


def test_what_nobody_expected_is_logged_in_full_and_ends_nothing() -> None:
    world = World([(1, ZeroDivisionError("oh")), (1, "swept.")]).run()
    assert world.lines("error")[0] == "acted on nothing: ZeroDivisionError: oh"
    assert "Traceback" in world.lines("error")[1]
    assert "test_daemon.py" in world.lines("error")[1]
    assert world.lines("info") == ["swept."]
    assert world.told.count("WATCHDOG=1") == 1, "systemd starts us anew when it lasts"


def test_new_settings_are_in_force_at_once() -> None:
    slow = World(
        [(1, "swept."), (1, "swept."), (1, "swept.")],
        signals={0: "reload"},
        loaded=lambda: Settings(sweep=SweepSettings(beat=10)),
    ).run(beat=3600)
    assert slow.at[1:] == [1, 10]
    assert "settings read again" in slow.lines("info")
    at = slow.told.index("RELOADING=1")
    assert slow.told[at + 1] == "MONOTONIC_USEC=1001000000"
    assert "READY=1" in slow.told[at:]


def test_broken_settings_change_nothing_and_are_named() -> None:
    def broken() -> Settings:
        raise BadInputs([BadInput("sweep.beat = 'x': no duration", where="c.toml", mend="see")])

    world = World([(1, "swept.")] * 3, signals={0: "reload"}, loaded=broken).run()
    assert world.lines("error") == [
        "settings stay as they were: c.toml: sweep.beat = 'x': no duration; mend: see"
    ]
    assert world.at == [0, 1, 30]


def test_a_stop_between_two_steps_ends_the_daemon() -> None:
    world = World([(1, Stop())]).run()
    assert world.said == []
    assert world.told[-2] == "STOPPING=1"


# -- a clock that was set back ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("now", "newest", "noticed", "seconds"),
    [
        pytest.param(1000, None, None, 0, id="the first sweep"),
        pytest.param(1000, 970, None, 0, id="a beat later"),
        pytest.param(1000, 1000 + TOLERANCE, None, 0, id="two hosts that differ a little"),
        pytest.param(1000, 4600, None, 3600, id="set back by an hour"),
        pytest.param(1899, 4600, 1000, 2701, id="less than a cooldown later"),
        pytest.param(1900, 4600, 1000, 0, id="a cooldown later"),
    ],
)
def test_how_long_a_clock_that_is_behind_holds_still(
    now: int, newest: int | None, noticed: int | None, seconds: int
) -> None:
    assert behind(now, newest, noticed, 900) == seconds
