"""Our marker in a job's AdminComment: what was asked, what was granted, and why.

AdminComment is the one text of a job that its user cannot write and that slurmctld keeps over a
requeue. Other tools write there too, so the marker is appended, and whatever else stands there is
kept byte for byte:

    JS1:H4sIAAAA;sbudget:1:c=funded:a=funded:m=14400:w=fits

    sbudget:1   ours, in this version of the format
    c           class when the marker was written: funded or preemptible
    a           class asked for
    m           minimum runtime in seconds: what a run is protected for in a funded QOS. Also there
                while the class is preemptible, since the class may change while the job waits
    w           why, one of WHY, or another word of lower-case letters
    r=0         only there when the job cannot be requeued

A user can move a pending job out of a funded QOS, or into it where the budget allows, but Slurm
lets no hook write AdminComment in a user's name. So where `c` is not the class of the job's QOS,
the user has changed their mind since: what they ask for is the class of that QOS.

Only letters, digits and `:=-` are used, so that the marker stands in the output of `squeue -O` and
`sacct -P` as it is, and `grep sbudget:1:c=funded` finds it.

    >>> mark = Marker("funded", "funded", 14400, "fits")
    >>> merge("JS1:H4sIAAAA", mark)
    'JS1:H4sIAAAA;sbudget:1:c=funded:a=funded:m=14400:w=fits'
    >>> parse(merge("JS1:H4sIAAAA", mark)) == mark
    True
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from slurm_budget.state.jobs import Class

WHY = {
    "fits": "its protection fits every budget above it",
    "fast": "it is small, and fits the fast lane",
    "asked": "preemptible was asked for",
    "default": "nothing was asked for",
    "budget": "a budget has too little left at the moment",
    "wait": "held until a budget has enough left",
    "never": "its protection costs more than a whole budget",
    "account": "its account has no budget",
    "type": "its account's budget is for another type of GPU",
    "partition": "its partition does not allow its account's funded QOS",
    "requeue": "it cannot be requeued, and its time limit is longer than its minimum runtime",
    "blind": "the budgets could not be read",
}
"""What the hook writes after `w=`, in words."""

_ANY = re.compile(r"(?<![A-Za-z0-9_])sbudget:[0-9]+(?::[a-z]+=[a-z0-9-]*)*", re.ASCII)
_VERSION = "1"
_WHY = re.compile(r"[a-z][a-z0-9-]*", re.ASCII)


class Marker(NamedTuple):
    """`min_runtime` in seconds; `why` a key of WHY or another word of lower-case letters."""

    class_: Class
    asked: Class
    min_runtime: int
    why: str
    requeue: bool = True

    def __str__(self) -> str:
        if self.min_runtime < 0 or not _WHY.fullmatch(self.why):
            raise ValueError(f"not to be written as a marker: {self!r}")
        text = (
            f"sbudget:{_VERSION}:c={self.class_}:a={self.asked}:m={self.min_runtime}:w={self.why}"
        )
        return text if self.requeue else text + ":r=0"


@lru_cache(maxsize=32768)
def parse(text: str | None) -> Marker | None:
    """The last readable marker in `text`; None where there is none or of another version. A sweep
    asks several times for each job, and most jobs of a queue have one of a few."""
    for found in reversed(_ANY.findall(text or "")):
        _, version, *pairs = found.split(":")
        given = dict(pair.split("=", 1) for pair in pairs)
        class_, asked, seconds = given.get("c"), given.get("a"), given.get("m", "")
        if version != _VERSION or not seconds.isdigit() or not _WHY.fullmatch(given.get("w", "")):
            continue
        if class_ in ("funded", "preemptible") and asked in ("funded", "preemptible"):
            return Marker(
                "funded" if class_ == "funded" else "preemptible",
                "funded" if asked == "funded" else "preemptible",
                int(seconds),
                given["w"],
                given.get("r") != "0",
            )
    return None


def merge(existing: str | None, marker: Marker) -> str:
    """`existing` with this marker as the only one of ours, where one stood before or at the end."""
    text = existing or ""
    if not _ANY.search(text):
        return f"{text};{marker}" if text else str(marker)
    ours = iter([str(marker)])
    return _ANY.sub(lambda _: next(ours, ""), text)
