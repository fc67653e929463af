"""The rings that need Slurm and MariaDB, in containers of three Slurm versions, side by side."""

import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest
from rings import ROOT, VERSIONS, Ring, play

IMAGES = [sys.executable, str(ROOT / "scripts" / "images")]
FOUND: dict[str, Ring] = {}
SKIPPED: list[str] = []


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The last lines: what passed on each version, or why nothing was run."""
    for version, ring in FOUND.items():
        terminalreporter.write_line(f"matrix: Slurm {version}: {ring.figures}")
        for failed in ring.failed_at_first:
            terminalreporter.write_line(f"matrix: Slurm {version}: at first: {failed}")
    for reason in SKIPPED:
        terminalreporter.write_line(f"matrix: skipped: {reason}")


@pytest.fixture(scope="session")
def engine() -> None:
    """A Docker engine that answers; skips with the reason where none can be had."""
    asked = subprocess.run([*IMAGES, "engine"], capture_output=True, text=True, check=False)
    if asked.returncode:
        reason = asked.stderr.strip().removeprefix("images: ")
        SKIPPED.append(reason)
        pytest.skip(reason)


@pytest.fixture(scope="session")
def images(engine: None) -> None:
    """What compose.yaml runs."""
    build("build", "24.11")


@pytest.fixture(scope="session")
def with_systemd(engine: None) -> str:
    """An image of the tests that has systemd in it; the oldest one has none."""
    build("test", "24.11")
    return "slurm-budget-test:24.11"


@pytest.fixture(scope="session")
def rings(engine: None) -> Iterator[dict[str, Ring]]:
    """All versions, started together."""
    build("test", *VERSIONS)
    FOUND.update({version: Ring(version) for version in VERSIONS})
    threads = [threading.Thread(target=play, args=(ring,), daemon=True) for ring in FOUND.values()]
    for thread in threads:
        thread.start()
    yield FOUND
    for thread in threads:
        thread.join(timeout=60)


def build(*args: str) -> None:
    built = subprocess.run([*IMAGES, *args], capture_output=True, text=True, check=False)
    if built.returncode:
        pytest.fail(f"scripts/images {args[0]} failed: {built.stderr}")
