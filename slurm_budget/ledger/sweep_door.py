"""What sweeps keep in the ledger: intents, sentences, the lease, the brake."""

from collections.abc import Sequence

from sqlalchemy import insert

from slurm_budget.ledger import leasing, notices, sweeping
from slurm_budget.ledger.door import Door
from slurm_budget.ledger.schema import brakes
from slurm_budget.ledger.sweeping import Brake, Sweep, Totals
from slurm_budget.state.intent import Intent, Step
from slurm_budget.state.lease import Lease
from slurm_budget.state.session import Notice


class SweepDoor(Door):
    """The part of the ledger that the sweeper uses. In MariaDB none of it waits for a long import
    of runs; SQLite has one writer at a time."""

    def open_intent(
        self,
        cluster: str,
        *,
        job_id: int,
        run_start: int,
        victim_account: str,
        for_job: int | None,
        for_account: str,
        gpus: int,
        reason: str,
        now: int,
        step: Step = "planned",
        grace_until: int | None = None,
        detail: str = "",
        token: int | None = None,
    ) -> int:
        """Write down one requeue, as `plan_requeues` does many; returns the intent's id."""
        intent = Intent(
            id=0,
            cluster=cluster,
            job_id=job_id,
            run_start=run_start,
            victim_account=victim_account,
            for_job=for_job,
            for_account=for_account,
            gpus=gpus,
            step=step,
            reason=reason,
            created=now,
            updated=now,
            grace_until=grace_until,
            detail=detail,
        )
        return self.plan_requeues([intent], token=token)[0]

    def plan_requeues(self, wanted: Sequence[Intent], *, token: int | None = None) -> list[int]:
        """Write down requeues of one cluster before anything is done, all of them or none; returns
        their ids. `id` and `updated` of what is given are not looked at. With a `token` only while
        nobody took the lease over (LeaseLost), as in all that takes one."""
        with self._write(queue=False) as connection:
            if token is not None and wanted:
                leasing.demand(connection, self._names.number(connection, wanted[0].cluster), token)
            return [sweeping.open_intent(connection, self._names, intent) for intent in wanted]

    def advance_intent(
        self,
        id: int,
        step: Step,
        now: int,
        detail: str = "",
        *,
        grace_until: int | None = None,
        token: int | None = None,
    ) -> None:
        """Write down how far a requeue came. A closed intent cannot go on (BadInput)."""
        with self._write(queue=False) as connection:
            if token is not None:
                leasing.demand(connection, sweeping.cluster_of(connection, id), token)
            sweeping.advance(connection, id, step, now, detail, grace_until)

    def open_intents(self, cluster: str) -> list[Intent]:
        """Intents that are not done or left, oldest first."""
        with self._read() as connection:
            return sweeping.find_intents(connection, self._names, cluster, only_open=True)

    def intents_since(self, cluster: str, since: int) -> list[Intent]:
        """All intents made at or after an epoch second, oldest first."""
        with self._read() as connection:
            return sweeping.find_intents(connection, self._names, cluster, since=since)

    def intents_touched_since(self, cluster: str, since: int) -> list[Intent]:
        """All intents whose last step is at or after an epoch second, oldest first."""
        with self._read() as connection:
            return sweeping.find_intents(connection, self._names, cluster, touched_since=since)

    def record_sweep(self, cluster: str, at: int, sentence: str, seconds: float) -> None:
        with self._write(queue=False) as connection:
            number = self._names.number(connection, cluster)
            sweeping.record_sweep(connection, number, at, sentence, seconds)

    def last_sweeps(self, count: int, cluster: str | None = None) -> list[Sweep]:
        """The last sweeps, newest first."""
        with self._read() as connection:
            number = None if cluster is None else self._names.find(connection, cluster)
            if cluster is not None and number is None:
                return []
            return sweeping.last_sweeps(connection, self._names, count, number)

    def totals(self, cluster: str) -> Totals:
        """Sweeps and requeues since the ledger began."""
        with self._read() as connection:
            number = self._names.find(connection, cluster)
            if number is None:
                return Totals(0, {}, {})
            return sweeping.totals(connection, self._names, number)

    def record_notice(self, cluster: str, notice: Notice, at: int, outcome: str) -> None:
        """A session was told; telling it twice leaves one row."""
        with self._write(queue=False) as connection:
            number = self._names.number(connection, cluster)
            notices.record(connection, number, notice, at, outcome)

    def notices_since(self, cluster: str, moment: int) -> set[tuple[int, str, int]]:
        """Keys of the notices of moments at or after an epoch second."""
        with self._read() as connection:
            number = self._names.find(connection, cluster)
            return set() if number is None else notices.since(connection, number, moment)

    def newest_sweep(self, cluster: str) -> tuple[int | None, int | None]:
        """The highest time of any sweep, and the first time recorded after that sweep: lower where
        the clock was set back. None where there is none."""
        with self._read() as connection:
            number = self._names.find(connection, cluster)
            return (None, None) if number is None else sweeping.newest_sweep(connection, number)

    def acquire_lease(self, cluster: str, holder: str, now: int, ttl: int) -> int | None:
        """Take the lease for `ttl` seconds, if it is free: a token, higher than all before it."""
        if self.lease(cluster) is None:
            with self._write(queue=False) as connection:
                leasing.make(connection, self._names.number(connection, cluster))
        with self._write(queue=False) as connection:
            number = self._names.number(connection, cluster)
            return leasing.acquire(connection, number, holder, now, ttl)

    def renew_lease(self, cluster: str, holder: str, token: int, now: int, ttl: int) -> bool:
        """Hold one's lease for `ttl` seconds from now; False when another took it since."""
        with self._write(queue=False) as connection:
            number = self._names.number(connection, cluster)
            return leasing.renew(connection, number, holder, token, now, ttl)

    def lease(self, cluster: str) -> Lease | None:
        """The lease as it stands, run out or not; None before there ever was one."""
        with self._read() as connection:
            number = self._names.find(connection, cluster)
            return None if number is None else leasing.find(connection, number)

    def release_lease(self, cluster: str, token: int, now: int) -> None:
        """Give the lease back before it runs out; another's lease is left alone."""
        with self._write(queue=False) as connection:
            number = self._names.number(connection, cluster)
            leasing.release(connection, number, token, now)

    def set_brake(self, cluster: str, *, paused: bool, author: str, reason: str, now: int) -> None:
        """`sbudget pause` and `sbudget resume`."""
        with self._write(queue=False) as connection:
            number = self._names.number(connection, cluster)
            connection.execute(
                insert(brakes).values(
                    cluster_id=number, paused=paused, author=author, reason=reason, at=now
                )
            )

    def brake(self, cluster: str) -> Brake | None:
        """What pause or resume last said; None: neither was ever used."""
        with self._read() as connection:
            number = self._names.find(connection, cluster)
            return None if number is None else sweeping.brake(connection, number)
