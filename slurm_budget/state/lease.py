"""Which of several sidecars may act."""

from dataclasses import dataclass
from datetime import UTC, datetime


@dataclass(frozen=True, slots=True)
class Lease:
    """The lease as the ledger has it. `holder` is HOST:PID, for people; who holds it is known by
    `token`, which rises whenever it changes hands. `expires_at` in epoch seconds."""

    holder: str
    token: int
    expires_at: int

    def __str__(self) -> str:
        until = datetime.fromtimestamp(self.expires_at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        return f"{self.holder} holds the lease until {until}"
