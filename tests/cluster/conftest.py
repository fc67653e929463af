"""One real Slurm for all tests of this ring: daemons from Debian's packages, jobs of real users."""

import os
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "unit"))

import lawful
from playground import Playground
from story import ANA, BEN, CLEO, SETTINGS, SIDECAR, open_site, tidy

NEEDED = ("slurmctld", "slurmdbd", "slurmd", "munged", "mariadbd", "sbatch")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    missing = [name for name in NEEDED if shutil.which(name) is None]
    reason = ""
    if os.geteuid() != 0:
        reason = "needs root: Slurm's daemons and Linux users"
    elif missing:
        reason = f"not installed: {', '.join(missing)}; run scripts/cluster install"
    for item in items:
        if "cluster" in Path(item.fspath).parts:
            item.add_marker(pytest.mark.cluster)
            if reason:
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session")
def playground() -> Iterator[Playground]:
    """The cluster, up, with budgets loaded and synced and a snapshot published."""
    play = Playground(f"sbtest{os.getpid()}", (ANA, BEN, CLEO, SIDECAR), settings=SETTINGS)
    try:
        open_site(play)
        yield play
    finally:
        play.down()


@pytest.fixture
def site(playground: Playground, request: pytest.FixtureRequest) -> Iterator[Playground]:
    """The same, with no job left over from the test before, and daemons up again.

    Behind each test the accounting is held against the laws of requeueing.
    """
    began = int(time.time())
    yield playground
    tidy(playground)
    if request.node.get_closest_marker("requeued_by_hand") is None:
        lawful.check(playground, began)
