"""A warning to whoever sits at a session, before it ends or may be ended."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Notice:
    """`kind` says what is coming and `at` when (epoch seconds): `end` of the time limit, `preempt`
    the end of the time in which preemptible runs are left alone. Both with the job's id are its
    key: it is said once, and again only when the moment itself has moved."""

    job_id: int
    kind: Literal["end", "preempt"]
    at: int
    text: str

    @property
    def key(self) -> tuple[int, str, int]:
        return self.job_id, self.kind, self.at
