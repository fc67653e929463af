"""A whole sweep without a Slurm: what goes on when paused, observing, or fenced off."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from slurm_budget.core.marker import Marker
from slurm_budget.core.snapshot import decode
from slurm_budget.errors import LedgerUnreachable, SlurmUnreachable
from slurm_budget.ledger.store import Ledger
from slurm_budget.settings import Settings, SlurmSettings, SnapshotSettings
from slurm_budget.state.budget import Amount, BudgetNode, BudgetTree
from slurm_budget.state.jobs import Deed, Job, Node, Queue
from slurm_budget.state.slurm import Preemption
from slurm_budget.usecases.fence import Fence
from slurm_budget.usecases.sweep import sweep
from slurm_budget.usecases.swept import Swept

NOW = 1_800_000_000
TREE = BudgetTree("main", {"vision": BudgetNode("vision", None, Amount("gpus", 32))})


def waiting(number: int) -> Job:
    """A job that was preemptible for want of budget, and is to become funded."""
    return Job(
        id=number, label=str(number), user="ana", account="vision", partitions=("gpu",),
        qos="preemptible", state="PENDING", reason="Resources", submit=NOW - 10, eligible=NOW - 10,
        start=None, end=None, time_limit=3600, gpus={"h100": 1}, nodes=(), num_nodes=1, priority=1,
        requeue=True, batch=True, admin_comment=str(Marker("preemptible", "funded", 60, "budget")),
    )  # fmt: skip


@dataclass
class Slurm:
    """Answers what it must, and calls `then` after each retag."""

    then: Callable[[], object] = lambda: None
    retagged: list[str] = field(default_factory=list)

    def config(self) -> dict[str, str]:
        return {"ClusterName": "main", "AccountingStorageTRES": "gres/gpu"}

    def preemption(self, config: Mapping[str, str]) -> Preemption:
        return Preemption()

    def queue(self, *, shares: bool = True) -> Queue:
        return Queue([waiting(1), waiting(2)], [])

    def nodes(self) -> list[Node]:
        return [Node("n1", "IDLE", frozenset(), {"h100": 8}, ("gpu",), cpus=64)]

    def accounts(self, cluster: str) -> dict[str, str]:
        return {"root": "", "vision": "root"}

    def operators(self) -> tuple[int, ...]:
        return (4711,)

    def retag(self, job: str, qos: str, admin_comment: str) -> Deed:
        self.retagged.append(job)
        self.then()
        return Deed("done", "")


@dataclass
class Site:
    ledger: Ledger
    snapshot: Path
    slurm: Slurm = field(default_factory=Slurm)
    now: int = NOW

    def fence(self, holder: str = "ctl1:11") -> Fence:
        return Fence(self.ledger, "main", holder, 60, 900, lambda: self.now)

    def take(self, holder: str = "ctl1:11") -> Fence:
        fence = self.fence(holder)
        fence.take()
        return fence

    def sweep(self, fence: Fence) -> Swept:
        settings = Settings(
            slurm=SlurmSettings(cluster="main"), snapshot=SnapshotSettings(path=self.snapshot)
        )
        return sweep(
            self.slurm,  # type: ignore[arg-type]
            self.ledger,
            lambda cluster: lambda since, until: iter(()),
            settings,
            self.now,
            fence=fence,
        )


@pytest.fixture
def site(ledger: Ledger, tmp_path: Path) -> Site:
    ledger.apply_changeset("main", TREE, "root", "root", "first", 0, NOW - 100)
    return Site(ledger, tmp_path / "snapshot")


def test_who_holds_the_lease_acts_publishes_and_is_recorded(site: Site) -> None:
    found = site.sweep(site.take())
    assert site.slurm.retagged == ["1", "2"]
    assert "retagged jobs 1, 2" in found.sentence()
    assert site.snapshot.exists()
    assert [one.sentence for one in site.ledger.last_sweeps(9)] == [found.sentence()]


def test_the_hook_knows_who_sweeps_before_the_first_deed(site: Site) -> None:
    """Else it would refuse an operator's first retag: by the snapshot alone it knows operators."""
    knew = []
    site.slurm.then = lambda: knew.append(decode(site.snapshot.read_text()))
    site.sweep(site.take())
    assert [known.policy.operators for known in knew] == [(4711,), (4711,)]
    assert all(known.accounts == {} for known in knew), "no promise from what is about to change"
    assert "vision" in decode(site.snapshot.read_text()).accounts


def test_paused_it_publishes_but_retags_nothing(site: Site) -> None:
    site.ledger.set_brake("main", paused=True, author="mara", reason="repairs", now=NOW)
    found = site.sweep(site.take())
    assert site.slurm.retagged == []
    assert "; paused: repairs (mara)" in found.sentence()
    assert site.snapshot.exists()
    assert len(site.ledger.last_sweeps(9)) == 1


def test_without_the_lease_it_publishes_but_neither_acts_nor_is_recorded(site: Site) -> None:
    site.take("ctl2:22")
    found = site.sweep(site.take())
    assert site.slurm.retagged == []
    assert "; observing: ctl2:22 holds the lease until" in found.sentence()
    assert site.snapshot.exists()
    assert site.ledger.last_sweeps(9) == []


def test_who_loses_the_lease_in_the_middle_stops_there(site: Site) -> None:
    def frozen() -> None:
        site.now += 60
        site.take("ctl2:22")

    site.slurm.then = frozen
    site.snapshot.write_text("of before")
    found = site.sweep(site.take())
    assert site.slurm.retagged == ["1"]
    assert "retagged job 1;" in found.sentence()
    assert "lost the lease, acted no further: ctl2:22 holds" in found.sentence()
    assert site.snapshot.read_text() == "of before", "who has it publishes what is newer"
    assert site.ledger.last_sweeps(9) == []


def test_who_lost_the_lease_with_nothing_left_to_do_does_not_publish_what_is_old(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    def frozen_after(fence: Fence) -> None:
        hold(fence)
        site.now += 60
        site.take("ctl2:22")

    hold = Fence.hold
    monkeypatch.setattr(Fence, "hold", frozen_after)
    monkeypatch.setattr(site.slurm, "queue", lambda: Queue([], []))
    site.snapshot.write_text("of before")
    assert "lost the lease, acted no further: ctl2:22" in site.sweep(site.take()).sentence()
    assert site.snapshot.read_text() == "of before"


def test_with_the_clock_set_back_it_publishes_says_so_and_does_nothing(site: Site) -> None:
    site.ledger.record_sweep("main", NOW + 3600, "nothing to do", 0.1)
    found = site.sweep(site.take())
    assert site.slurm.retagged == []
    assert "acted on nothing: the clock is 3600 s behind" in found.sentence()
    assert site.snapshot.exists()
    assert site.ledger.last_sweeps(1)[0].at == NOW


def test_where_slurm_stops_answering_it_says_what_was_done_and_publishes(site: Site) -> None:
    def silent() -> None:
        if len(site.slurm.retagged) == 2:
            raise SlurmUnreachable("scontrol did not answer within 60 s")

    site.slurm.then = silent
    found = site.sweep(site.take())
    assert [retag.job.id for retag in found.retagged] == [1]
    assert "acted no further: scontrol did not answer within 60 s" in found.sentence()
    assert [str(bad) for bad in found.failed] == ["scontrol did not answer within 60 s"]
    assert site.snapshot.exists()
    assert site.ledger.last_sweeps(1)[0].sentence == found.sentence()


def test_a_snapshot_that_cannot_be_written_hides_no_deed(site: Site) -> None:
    site.snapshot.mkdir()
    found = site.sweep(site.take())
    assert len(found.retagged) == 2
    assert "the snapshot stays as it was: cannot be written: Is a directory" in found.sentence()
    assert site.ledger.last_sweeps(1)[0].sentence == found.sentence()
    assert list(site.snapshot.parent.glob(".snapshot.*")) == [], "no draft is left"


def test_a_ledger_lost_behind_the_deeds_is_told_with_them(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(*_: object) -> None:
        raise LedgerUnreachable("the ledger is locked by another program")

    monkeypatch.setattr(site.ledger, "record_sweep", lost)
    with pytest.raises(LedgerUnreachable) as raised:
        site.sweep(site.take())
    assert "retagged jobs 1, 2; then failed" in raised.value.acted
    monkeypatch.setattr(site.ledger, "brake", lost)
    with pytest.raises(LedgerUnreachable) as raised:
        site.sweep(site.take())
    assert raised.value.acted == "acted on nothing"
