"""Debian's packages of Slurm, munge and MariaDB.

Their postinst scripts start system services.  We want the programs only, so a policy-rc.d denies
it while apt-get runs, and what was newly installed is disabled, so that it does not start at the
next boot either.  Services that were there before keep running.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .base import EXIT_USAGE, ClusterError, say

PACKAGES = (
    "slurmctld",
    "slurmd",
    "slurmdbd",
    "slurm-client",
    "slurm-wlm-basic-plugins",
    "slurm-wlm-mysql-plugin",
    "munge",
    "mariadb-server-core",
    "mariadb-client-core",
)
PROGRAMS = ("slurmctld", "slurmd", "slurmdbd", "sacctmgr", "munged", "mariadbd", "mariadb")
SERVICES = {"slurmctld", "slurmd", "slurmdbd", "munge"}  # unit names equal package names
POLICY = Path("/usr/sbin/policy-rc.d")


def ensure(assume_yes: bool) -> bool:
    """Install what is missing.  True when something was installed."""
    if not shutil.which("dpkg-query"):
        return _without_dpkg()
    missing = missing_packages()
    if not missing:
        return False
    command = ["apt-get", "install", "--no-install-recommends", "-y", *missing]
    say("to install: " + " ".join(missing))
    say("  with: " + " ".join(command))
    if not assume_yes:
        if not sys.stdin.isatty():
            raise ClusterError(
                "packages are missing, and nobody can be asked", mend="add --yes", code=EXIT_USAGE
            )
        if input("install them? [y/N] ").strip().lower() not in ("y", "yes"):
            raise ClusterError("not installed, as you said")
    with _no_services():
        if any(not _has_candidate(package) for package in missing):
            _apt(["update"])
        try:
            _apt(command[1:])
        except ClusterError:
            # The lists may be older than the mirror: fetch them once, and try again.
            _apt(["update"])
            _apt(command[1:])
    _disable_services([package for package in missing if package in SERVICES])
    say("packages installed")
    return True


def missing_packages() -> list[str]:
    listing = subprocess.run(
        ["dpkg-query", "-W", "-f", "${Package} ${db:Status-Status}\n", *PACKAGES],
        capture_output=True,
        text=True,
        check=False,  # it fails when one of them is unknown; the others are listed all the same
    ).stdout
    there = {line.split()[0] for line in listing.splitlines() if line.endswith(" installed")}
    return [package for package in PACKAGES if package not in there]


def _without_dpkg() -> bool:
    """Not Debian: take the programs that are there."""
    missing = [program for program in PROGRAMS if not shutil.which(program)]
    if missing:
        raise ClusterError(
            "programs are missing: " + ", ".join(missing),
            where="PATH",
            mend="this is no Debian: install Slurm, munge and MariaDB by hand, "
            "or use a container with Debian 12 or 13",
        )
    return False


def _has_candidate(package: str) -> bool:
    policy = subprocess.run(
        ["apt-cache", "policy", package], capture_output=True, text=True, check=False
    ).stdout
    return "Candidate:" in policy and "Candidate: (none)" not in policy


def _apt(arguments: list[str]) -> None:
    say("apt-get " + arguments[0] + " ...")
    done = subprocess.run(
        ["apt-get", "-q", "-o", "DPkg::Lock::Timeout=300", *arguments],
        env={**os.environ, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        tail = (done.stdout + done.stderr).strip().splitlines()[-8:]
        raise ClusterError(
            "apt-get " + arguments[0] + " failed",
            where="\n".join(tail),
            mend="see that this machine reaches a Debian mirror (/etc/apt/sources.list*)",
        )


@contextmanager
def _no_services() -> Iterator[None]:
    """Deny the start of services, unless the machine has a policy of its own."""
    if POLICY.exists():
        yield
        return
    POLICY.write_text("#!/bin/sh\n# scripts/cluster, while apt-get runs\nexit 101\n")
    POLICY.chmod(0o755)
    try:
        yield
    finally:
        POLICY.unlink(missing_ok=True)


def _disable_services(units: list[str]) -> None:
    if units and Path("/run/systemd/system").is_dir():
        subprocess.run(["systemctl", "disable", "--now", *units], capture_output=True, check=False)
        say("system services left off: " + ", ".join(units))
