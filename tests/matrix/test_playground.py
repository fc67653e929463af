"""The README's five minutes, word for word, in the playground of docker/compose.yaml."""

import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from rings import ROOT

COMPOSE = ROOT / "docker" / "compose.yaml"


def compose_command() -> list[str] | None:
    """Compose v2, or Debian's docker-compose."""
    if shutil.which("docker-compose"):
        return ["docker-compose"]
    asked = subprocess.run(["docker", "compose", "version"], capture_output=True, check=False)
    return ["docker", "compose"] if asked.returncode == 0 else None


def tour() -> list[str]:
    """The commands of the section, as they stand there, without what brings the demo up."""
    section = (ROOT / "README.md").read_text().split("## Five minutes")[1].split("\n## ")[0]
    lines = re.findall(r"^    (\S.*)$", section, re.M)
    return [
        line.partition("  #")[0].strip() for line in lines if line.startswith(("sbudget", "su "))
    ]


@pytest.fixture(scope="module")
def login(images: None) -> Iterator[list[str]]:
    """argv that runs a command where users log in, of a playground that is up."""
    command = compose_command()
    if command is None:
        pytest.skip("neither `docker compose` nor docker-compose is there")
    compose = [*command, "-p", "sbudget-test", "-f", str(COMPOSE)]
    down = [*compose, "down", "-v", "--timeout", "5"]
    subprocess.run(down, capture_output=True, check=False)
    try:
        up = subprocess.run([*compose, "up", "-d"], capture_output=True, text=True, check=False)
        assert up.returncode == 0, up.stdout[-3000:] + up.stderr[-3000:]
        yield [*compose, "exec", "-T", "login"]
    finally:
        subprocess.run(down, capture_output=True, check=False)


def run(login: list[str], line: str) -> "subprocess.CompletedProcess[str]":
    argv = [*login, "sh", "-c", line]
    return subprocess.run(argv, input="y\n", capture_output=True, text=True, check=False)


@pytest.mark.matrix
def test_the_tour_works_word_for_word(login: list[str]) -> None:
    lines = tour()
    assert [line for line in lines if line.startswith("sbudget sync")], lines
    said = {}
    for line in lines:
        done = run(login, line)
        assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"
        said[line] = done.stdout + done.stderr
    everything = "\n".join(said.values())
    assert "vision: amount 16 GPUs -> 12 GPUs" in everything
    assert "changes applied and seen in Slurm" in everything
    assert "sbudget: funded; protected for 20 s from vision's budget" in everything
    # no stopwatch: a minute is far more than the job's 20 protected seconds of start-up need
    for _ in range(120):
        if "funded-vision" in run(login, "squeue -h -t R -O QOS:40").stdout:
            break
        time.sleep(0.5)
    else:
        pytest.fail(run(login, "squeue; scontrol show job").stdout)


@pytest.mark.matrix
def test_no_container_is_privileged() -> None:
    text = COMPOSE.read_text()
    assert "image: slurm-budget" in text
    assert "privileged: true" not in text
    assert "cap_add" not in text
    assert Path(ROOT / "docker" / "role").stat().st_mode & 0o111
