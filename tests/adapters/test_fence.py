"""Two sidecars: who was stopped and lost the lease does nothing more, on either database."""

from dataclasses import dataclass, field

import pytest

from slurm_budget.core.marker import Marker
from slurm_budget.errors import LeaseLost
from slurm_budget.ledger.store import Ledger
from slurm_budget.state.jobs import Deed, Job
from slurm_budget.state.sweep import Requeue, SweepPolicy
from slurm_budget.usecases.act import Actor
from slurm_budget.usecases.fence import Fence

POLICY = SweepPolicy(grace=10, cooldown=900)
BEAT = 30


@dataclass
class Clock:
    now: int = 100_000

    def __call__(self) -> int:
        return self.now


@dataclass
class Slurm:
    """Does every deed and notes it down."""

    deeds: list[str] = field(default_factory=list)

    def signal(self, job_id: int, name: str) -> Deed:
        self.deeds.append(f"{name} {job_id}")
        return Deed("done", "")

    def requeue(self, job_id: int) -> Deed:
        self.deeds.append(f"requeue {job_id}")
        return Deed("done", "")


@dataclass
class Site:
    """A ledger, a Slurm with one funded run past its protection, and a clock that all see."""

    ledger: Ledger
    slurm: Slurm = field(default_factory=Slurm)
    clock: Clock = field(default_factory=Clock)

    @property
    def victim(self) -> Job:
        return Job(
            id=7, label="7", user="ana", account="vision", partitions=("gpu",), qos="funded-vision",
            state="RUNNING", reason="", submit=0, eligible=0, start=5, end=None, time_limit=99999,
            gpus={"h100": 8}, nodes=("n1",), num_nodes=1, priority=1, requeue=True, batch=True,
            admin_comment=str(Marker("funded", "funded", 60, "fits")),
        )  # fmt: skip

    def fence(self, holder: str) -> Fence:
        return Fence(self.ledger, "main", holder, 2 * BEAT, 900, self.clock)

    def actor(self, fence: Fence, resumed: int = 0) -> Actor:
        return Actor(
            self.slurm,  # type: ignore[arg-type]
            self.ledger,
            POLICY,
            self.clock(),
            fence,
            resumed=resumed,
        )

    def plan(self, fence: Fence) -> None:
        self.actor(fence).open("main", [Requeue(self.victim, None, "", "its node is draining")])

    def step(self) -> str:
        (found,) = self.ledger.open_intents("main")
        return found.step


@pytest.fixture
def site(ledger: Ledger) -> Site:
    return Site(ledger)


def test_the_second_observes_and_takes_over_when_the_lease_runs_out(site: Site) -> None:
    one, two = site.fence("ctl1:11"), site.fence("ctl2:22")
    one.take()
    assert one.why == ""
    two.take()
    assert two.why.startswith("observing: ctl1:11 holds the lease until 1970-01-02 03:47:40 UTC")
    site.clock.now += 2 * BEAT
    two = site.fence("ctl2:22")
    two.take()
    assert two.why == ""
    one.take()
    assert one.why.startswith("lost the lease: ctl2:22 holds the lease until")


def test_who_was_stopped_before_the_signal_sends_none(site: Site) -> None:
    one, two = site.fence("ctl1:11"), site.fence("ctl2:22")
    one.take()
    site.plan(one)
    old = site.actor(one)
    site.clock.now += 2 * BEAT
    two.take()
    with pytest.raises(LeaseLost, match="ctl2:22"):
        old.advance("main", [site.victim])
    assert site.slurm.deeds == []
    site.actor(two).advance("main", [site.victim])
    assert site.slurm.deeds == ["CONT 7"]


def test_who_was_stopped_before_the_requeue_sends_none(site: Site) -> None:
    one, two = site.fence("ctl1:11"), site.fence("ctl2:22")
    one.take()
    site.plan(one)
    site.actor(one).advance("main", [site.victim])
    site.clock.now += 2 * BEAT
    old = site.actor(one)
    two.take()
    with pytest.raises(LeaseLost, match="ctl2:22"):
        old.advance("main", [site.victim])
    assert site.slurm.deeds == ["CONT 7"]
    assert site.step() == "signalled"


def test_a_lease_that_ran_out_is_not_enough_even_if_nobody_took_it(site: Site) -> None:
    one = site.fence("ctl1:11")
    one.take()
    site.plan(one)
    site.clock.now += 2 * BEAT + 3
    with pytest.raises(LeaseLost, match="ran out 3 s ago"):
        site.actor(one).advance("main", [site.victim])
    assert site.slurm.deeds == []
    one.take()
    site.actor(one).advance("main", [site.victim])
    assert site.slurm.deeds == ["CONT 7"]


def test_acting_for_long_renews_the_lease(site: Site) -> None:
    one = site.fence("ctl1:11")
    one.take()
    for _ in range(10):
        site.clock.now += BEAT + 5
        one.check()
    lease = site.ledger.lease("main")
    assert lease is not None
    assert lease.expires_at == site.clock() + 2 * BEAT


def test_sweeps_that_are_slow_take_the_lease_for_longer(site: Site) -> None:
    site.ledger.record_sweep("main", site.clock(), "slow", 70.0)
    one, two = site.fence("ctl1:11"), site.fence("ctl2:22")
    one.take()
    site.clock.now += 70
    two.take()
    assert two.why.startswith("observing: ctl1:11")


def test_a_lease_that_was_given_back_is_free_at_once(site: Site) -> None:
    one, two = site.fence("ctl1:11"), site.fence("ctl2:22")
    one.take()
    one.release()
    two.take()
    assert two.why == ""


def test_a_clock_that_was_set_back_holds_still_for_one_cooldown(site: Site) -> None:
    site.ledger.record_sweep("main", site.clock(), "nothing to do", 0.1)
    site.clock.now -= 86400
    noticed = site.clock()
    while site.clock() < noticed + 900:
        one = site.fence("ctl1:11")
        one.take()
        assert one.why.startswith("acted on nothing: the clock is ")
        assert one.token is None
        site.ledger.record_sweep("main", site.clock(), "held still", 0.1)
        site.clock.now += BEAT
    one = site.fence("ctl1:11")
    one.take()
    assert one.why == ""


def test_a_clock_behind_never_takes_the_lease_from_one_that_is_right(site: Site) -> None:
    """Whose clock is two hours behind would find every lease of the other void."""
    for _ in range(60):
        right = site.fence("ctl1:11")
        right.take()
        assert right.why == ""
        site.ledger.record_sweep("main", site.clock(), "nothing to do", 0.1)
        site.clock.now -= 7200
        wrong = site.fence("ctl2:22")
        wrong.take()
        assert "the clock is 7200 s behind" in wrong.why
        site.ledger.record_sweep("main", site.clock(), "held still", 0.1)
        site.clock.now += 7200 + BEAT
        right.release()


def test_a_run_warned_before_a_pause_is_warned_again_after_it(site: Site) -> None:
    one = site.fence("ctl1:11")
    one.take()
    site.plan(one)
    site.actor(one).advance("main", [site.victim])
    site.clock.now += 3000
    one.take()
    resumed = site.clock() - 1
    site.actor(one, resumed).advance("main", [site.victim])
    assert site.slurm.deeds == ["CONT 7", "CONT 7"]
    site.clock.now += 10
    site.actor(one, resumed).advance("main", [site.victim])
    assert site.slurm.deeds[2:] == ["requeue 7"]
