"""From a row of the accounting, wherever it was read, to a run or the reason why it is none."""

from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache

from slurm_budget.core import marker
from slurm_budget.errors import BadInput
from slurm_budget.state.jobs import Class, GpuCounts
from slurm_budget.text import durations, tres

FUNDED_QOS = "funded"
"""The QOS `funded`, and `funded-<account>`."""

STATES = frozenset(
    (
        *("BOOT_FAIL", "CANCELLED", "COMPLETED", "COMPLETING", "CONFIGURING", "DEADLINE"),
        *("EXPEDITING", "FAILED", "LAUNCH_FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "PENDING"),
        *("POWER_UP_NODE", "PREEMPTED", "RECONFIG_FAIL", "REQUEUED", "REQUEUE_FED"),
        *("REQUEUE_HOLD", "RESIZING", "RESV_DEL_HOLD", "REVOKED", "RUNNING", "SIGNALING"),
        *("SPECIAL_EXIT", "STAGE_OUT", "STOPPED", "SUSPENDED", "TIMEOUT", "UPDATE_DB"),
    )
)
_PLAIN = len("2026-03-15T12:00:00")
_NO_TIME = frozenset({"", "None", "Unknown", "N/A", "0"})


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that is none: its line (from 1; 0: there are no lines), why, and what stood there."""

    line: int
    reason: str
    text: str = ""

    def __str__(self) -> str:
        shown = self.text.replace("\x1f", "|")
        return f"line {self.line}: {self.reason}" + (f": {shown[:100]!r}" if shown else "")


class Unusable(Exception):
    """Why a row cannot be a run."""


UNNAMED_QOS = frozenset({"", "Unknown"})
"""How sacct names a QOS that slurmdbd has not been told yet: the end of a short run may reach it
before its start does, and for a moment the row has no QOS."""


def class_of(qos: str, admin_comment: str = "") -> Class:
    """The class of a run is that of the QOS that it ran in; until that is known, the marker's."""
    if qos in UNNAMED_QOS:
        found = _marker(admin_comment)
        return "preemptible" if found is None else found.class_
    return "funded" if qos == FUNDED_QOS or qos.startswith(FUNDED_QOS + "-") else "preemptible"


@lru_cache(maxsize=65536)
def gpus(alloc_tres: str) -> GpuCounts:
    """GPUs by type; the same object for the same text. Raises Unusable for a text cut short."""
    try:
        return tres.gpus(alloc_tres)
    except BadInput as bad:
        raise Unusable(bad.what) from None


@lru_cache(maxsize=65536)
def _marker(admin_comment: str) -> marker.Marker | None:
    return marker.parse(admin_comment)


def min_runtime(admin_comment: str) -> int | None:
    """What our marker says; None where there is no marker."""
    found = _marker(admin_comment)
    return None if found is None else found.min_runtime


@lru_cache(maxsize=4096)
def state(text: str) -> str:
    """`CANCELLED by 1000` is CANCELLED; Unusable for a state that Slurm does not have."""
    word = text.split(" ", 1)[0].rstrip("+")
    if word not in STATES:
        raise Unusable(f"the state {text!r} is not one of Slurm's")
    return word


def moment(text: str, name: str) -> int | None:
    """Epoch seconds from those, or from Slurm's text in UTC; None where Slurm has no time."""
    if text in _NO_TIME:
        return None
    if text.isdigit():
        return int(text)
    try:
        # a zone in the text is read far more quickly than it is put in later
        if len(text) == _PLAIN:
            return int(datetime.fromisoformat(text + "+00:00").timestamp())
        parsed = datetime.fromisoformat(text)
    except ValueError:
        raise Unusable(f"{name} {text!r} is not a time") from None
    return int((parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp())


def seconds(text: str, name: str) -> int:
    """A time that has passed, in whole seconds."""
    return int(text) if text.isdigit() else _elapsed(text, name)


@lru_cache(maxsize=4096)
def _elapsed(text: str, name: str) -> int:
    try:
        return int(text) if text.lstrip("-").isdigit() else int(durations.elapsed(text))
    except BadInput as bad:
        raise Unusable(f"{name}: {bad.what}") from None


def minutes(text: str) -> int | None:
    """A time limit in seconds, from whole minutes; None for UNLIMITED and for what is not set."""
    return int(text) * 60 if text.isascii() and text.isdigit() else None


def number(text: str, name: str) -> int:
    if text.isascii() and text.isdigit():
        return int(text)
    raise Unusable(f"{name} {text!r} is not a number")
