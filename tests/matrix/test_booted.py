"""The units under a real systemd, which boots in a container of its own."""

import re
from collections.abc import Iterator

import pytest
from docker.models.containers import Container
from rings import ROOT
from testcontainers.core.container import DockerContainer


@pytest.fixture
def booted(with_systemd: str) -> Iterator[Container]:
    """Not privileged; skips where the engine does not let systemd make its cgroup."""
    container = (
        DockerContainer(with_systemd)
        .with_command("/src/docker/booted")
        .with_volume_mapping(str(ROOT), "/src", "ro")
        .with_env("container", "docker")
        .with_env("SBUDGET_DISPOSABLE", "1")
        .with_env("SBUDGET_PATIENCE", "3")
        .with_tmpfs_mount("/run")
        .with_kwargs(
            hostname="localhost",
            cap_add=["SYS_ADMIN"],
            security_opt=["apparmor=unconfined"],
            cgroupns="private",
        )
    )
    with container:
        wrapped = container.get_wrapped_container()
        wait = (
            "until test -S /run/systemd/private; do sleep 0.1; done; systemctl start basic.target"
        )
        code, said = wrapped.exec_run(["timeout", "60", "sh", "-c", wait])
        if code:
            wrapped.reload()
            logs = wrapped.logs().decode(errors="replace")[-400:]
            pytest.skip(f"systemd does not boot here: {said.decode()} {logs}")
        yield wrapped


@pytest.mark.matrix
def test_the_daemon_works_under_systemd(booted: Container) -> None:
    ring = ["/src/docker/inside", "python", "-m", "pytest", "-q", "--tb=short"]
    code, said = booted.exec_run([*ring, "tests/cluster/test_systemd.py"])
    assert code == 0, said.decode(errors="replace")[-20000:]
    assert re.search(r"^1 passed in ", said.decode(), re.MULTILINE), "and none was skipped"
