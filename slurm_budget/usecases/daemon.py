"""The sidecar: one sweep at each beat, for ever, whatever fails.

Beats lie at fixed distances on a monotonic clock, so they do not drift, and a clock that is set
does not move them. A sweep that takes longer than a beat leaves out the beats that it missed. A
sweep that fails is told and tried again at the next beat. The loop keeps the settings, and nothing
else that matters: it may be killed anywhere.
"""

import gc
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from slurm_budget.errors import BadInput, SbudgetError
from slurm_budget.settings import Settings

Level = Literal["info", "warning", "error"]
Heard = Literal["stop", "reload"]
REPEAT = 20
"""A failure that lasts is told once in so many beats: every 10 minutes at 30 s."""


class Stop(Exception):
    """Raised between two steps of a sweep, when the daemon shall end."""


@dataclass(slots=True)
class Daemon:
    """Everything of the world that the loop needs. `sweep` sweeps once and returns its sentence;
    `load` reads the settings; `wait` sleeps for seconds or until it hears something; `monotonic`
    is a clock in seconds; `say` is for people; `notify` is for systemd (sd_notify's words)."""

    settings: Settings
    sweep: Callable[[Settings], str]
    load: Callable[[], Settings]
    wait: Callable[[float], Heard | None]
    monotonic: Callable[[], float]
    say: Callable[[Level, str], None]
    notify: Callable[..., None]
    _failing: str = ""
    _failures: int = 0
    _frozen: bool = False

    def run(self) -> None:
        """Until told to stop."""
        self.notify("READY=1")
        due = self.monotonic()
        try:
            while True:
                started = self.monotonic()
                late = max(0, started - due)
                self._sweep_once()
                beat = self.settings.sweep.beat
                missed = int((self.monotonic() - due) // beat)
                due += beat * (missed + 1)
                if missed > 0:
                    took = self.monotonic() - started
                    what = f"the sweep took {took:.0f} s and began {late:.0f} s late"
                    self.say("warning", f"{_beats(missed)} left out: {what}")
                self._idle_until(due)
        except Stop:
            self.notify("STOPPING=1", "STATUS=ends")

    def _idle_until(self, due: float) -> None:
        """Wait; settings that were read again come into force at once."""
        while (left := due - self.monotonic()) > 0:
            heard = self.wait(left)
            if heard == "stop":
                raise Stop
            if heard == "reload":
                self._reload()
                return

    def _sweep_once(self) -> None:
        try:
            sentence = self.sweep(self.settings)
        except SbudgetError as bad:
            self._failed(line(bad), "", bad.acted)
        except Stop:
            raise
        except Exception as bad:
            # systemd is not told that all is well, and starts us anew when it lasts
            self._failed(f"{type(bad).__name__}: {bad}", traceback.format_exc())
            return
        else:
            self._worked(sentence)
        self.notify("WATCHDOG=1")

    def _failed(self, what: str, details: str, acted: str = SbudgetError.acted) -> None:
        """Tell a failure when it is new, and then once in a while."""
        self._failures = self._failures + 1 if what == self._failing else 1
        self._failing = what
        if self._failures % REPEAT == 1:
            again = f" ({self._failures} times now)" if self._failures > 1 else ""
            self.say("error", f"{acted}{again}: {what}")
            if details and not again:
                self.say("error", details)
        self.notify(f"STATUS={acted}: {what}")

    def _worked(self, sentence: str) -> None:
        if self._failures:
            self.say("warning", f"works again; failed so often: {self._failures}")
        self._failing, self._failures = "", 0
        self.say("info", sentence)
        self.notify(f"STATUS={sentence}")
        if not self._frozen:
            # all modules are loaded: no need to look through them again
            gc.freeze()
            self._frozen = True

    def _reload(self) -> None:
        self.notify("RELOADING=1", f"MONOTONIC_USEC={int(self.monotonic() * 1_000_000)}")
        try:
            self.settings = self.load()
            self.say("info", "settings read again")
        except BadInput as bad:
            self.say("error", f"settings stay as they were: {line(bad)}")
        self.notify("READY=1")


def line(bad: SbudgetError) -> str:
    """An error in one line, for a log."""
    return "; ".join(str(bad).replace("\n  mend: ", "; mend: ").splitlines())


def _beats(count: int) -> str:
    return "1 beat" if count == 1 else f"{count} beats"
