"""The right of one sidecar to act, asked for anew before every deed.

Of several daemons and cron's sweeps one holds the lease in the ledger. Each take-over gives a
higher token. A sweep takes or renews the lease at its start and before it acts; then, before each
signal, requeue and retag, `check` looks whether the token is still the newest and time is left, and
each step of an intent is only written when it is, in the same transaction. So one that was stopped
anywhere (SIGSTOP, a frozen VM, swapping) and wakes after another took over finds out before it
does anything.

What remains: slurmctld knows no tokens. One that is stopped between `check` and the start of
scontrol, for longer than the rest of its lease (half of it at least), does this one deed late. A
second signal is harmless, and so are a second `requeue Incomplete` of a job that waits and a retag
of one that has started: Slurm refuses them. Only a job that was requeued by the new holder and is
running again by then would lose what it has done since; Slurm holds a requeued job back for
AuthInfo's cred_expire (120 s by default) first.
"""

from collections.abc import Callable
from dataclasses import dataclass

from slurm_budget.core.clock import behind
from slurm_budget.errors import LeaseLost
from slurm_budget.ledger.store import Ledger
from slurm_budget.state.lease import Lease

SLOWEST = 300
"""Twice the time of the last sweep is what a lease is for, if that is longer than asked for and
not longer than these seconds."""


@dataclass(slots=True)
class Fence:
    """The lease from one sidecar's side. `holder` is HOST:PID, `ttl` the seconds that the lease is
    taken for, `clock` reads epoch seconds afresh. `other` has it where we could not get it; `why`
    says in words why we may not act."""

    ledger: Ledger
    cluster: str
    holder: str
    ttl: int
    cooldown: int
    clock: Callable[[], int]
    token: int | None = None
    other: Lease | None = None
    why: str = ""

    def take(self) -> None:
        """Take the lease, or renew it; else `why` says who has it or what is wrong."""
        now = self.clock()
        late = behind(now, *self.ledger.newest_sweep(self.cluster), self.cooldown)
        if late:
            self.release()
            self.why = f"acted on nothing: the clock is {late} s behind the newest sweep on record"
            return
        # else two whose sweeps are slow would take the lease from each other for ever
        for last in self.ledger.last_sweeps(1, self.cluster):
            self.ttl = max(self.ttl, min(SLOWEST, round(2 * last.seconds)))
        had = self.token
        if had is not None and self._renew(now):
            return
        self.token = self.ledger.acquire_lease(self.cluster, self.holder, now, self.ttl)
        if self.token is None:
            self.other = self.ledger.lease(self.cluster)
            self.why = ("lost the lease: " if had else "observing: ") + str(self.other)

    def hold(self) -> None:
        """Renew before acting; raises LeaseLost when another took over."""
        if not self._renew(self.clock()):
            self._lost()

    def check(self) -> None:
        """Directly before a deed; raises LeaseLost."""
        lease = self.ledger.lease(self.cluster)
        now = self.clock()
        if lease is None or lease.token != self.token:
            self._lost()
        elif lease.expires_at <= now:
            raise LeaseLost(f"the lease ran out {now - lease.expires_at} s ago")
        elif 2 * (lease.expires_at - now) < self.ttl:
            self.hold()

    def release(self) -> None:
        """Give the lease back, if we have it."""
        if self.token is not None:
            self.ledger.release_lease(self.cluster, self.token, self.clock())
            self.token = None

    def _renew(self, now: int) -> bool:
        return self.token is not None and self.ledger.renew_lease(
            self.cluster, self.holder, self.token, now, self.ttl
        )

    def _lost(self) -> None:
        self.other = self.ledger.lease(self.cluster)
        raise LeaseLost(str(self.other))
