"""The examples for researchers: what docs/checkpointing.md shows is what runs, and it resumes."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
EXAMPLES = DOCS / "examples"
TRAIN = EXAMPLES / "train.py"
STEPS = 2000
PIPE = 4096
"""Bytes, some 150 steps: a run is never far ahead of what was read of it, and cannot end alone."""


@pytest.mark.parametrize("file", sorted(EXAMPLES.iterdir()), ids=lambda file: file.name)
def test_the_guide_shows_each_example_as_it_is(file: Path) -> None:
    shown = re.findall(r"^```\w+\n(.*?)^```$", (DOCS / "checkpointing.md").read_text(), re.S | re.M)
    assert file.read_text() in shown


class Training:
    """docs/examples/train.py as a process whose output is read line by line."""

    def __init__(self, checkpoint: Path, restart: int = 0) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(TRAIN), str(checkpoint), str(STEPS)],
            env=os.environ | {"SLURM_RESTART_COUNT": str(restart), "OMP_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            pipesize=PIPE,
            text=True,
        )
        self.lines: list[str] = []

    def read_until(self, text: str) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line.strip())
            if line.startswith(text):
                return
        raise AssertionError(f"ended without {text!r}: {self.lines[-3:]}")

    def end(self) -> list[str]:
        """Every line, when it has ended."""
        out, _ = self.process.communicate(timeout=120)
        self.lines += out.splitlines()
        return self.lines

    @property
    def steps(self) -> list[str]:
        return [line for line in self.lines if line.startswith("step ")]


@pytest.fixture(scope="module")
def straight(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str], Path]:
    """Steps and last checkpoint of a run that nobody disturbs."""
    pytest.importorskip("torch", reason="PyTorch is not there: pip install -e '.[dev,torch]'")
    checkpoint = tmp_path_factory.mktemp("straight") / "checkpoint.pt"
    run = Training(checkpoint)
    assert run.end()[-1] == f"finished at step {STEPS}"
    return run.steps, checkpoint


def same_weights(one: Path, other: Path) -> bool:
    import torch

    saved = [torch.load(path, weights_only=True) for path in (one, other)]
    return saved[0]["step"] == saved[1]["step"] and all(
        torch.equal(tensor, saved[1]["model"][name]) for name, tensor in saved[0]["model"].items()
    )


def test_a_warned_and_stopped_training_repeats_and_skips_no_step(
    straight: tuple[list[str], Path], tmp_path: Path
) -> None:
    checkpoint = tmp_path / "checkpoint.pt"
    first = Training(checkpoint)
    first.read_until("step 50 ")
    assert not checkpoint.exists()
    first.process.send_signal(signal.SIGCONT)
    while not checkpoint.exists():
        first.read_until("step ")
    first.process.send_signal(signal.SIGTERM)
    assert first.end()[-1].startswith("stopped, checkpoint at step ")
    assert first.process.returncode == 0
    second = Training(checkpoint, restart=1)
    said = second.end()
    assert said[0] == f"start 1 from step {len(first.steps)}"
    assert said[-1] == f"finished at step {STEPS}"
    steps, final = straight
    assert 50 <= len(first.steps) < STEPS
    assert first.steps + second.steps == steps, "the same steps with the same losses, each once"
    assert same_weights(checkpoint, final)


def test_a_training_that_is_killed_loses_steps_and_comes_to_the_same_end(
    straight: tuple[list[str], Path], tmp_path: Path
) -> None:
    checkpoint = tmp_path / "checkpoint.pt"
    first = Training(checkpoint)
    first.read_until("step 1100 ")
    first.process.kill()
    first.end()
    assert len(first.steps) < STEPS
    second = Training(checkpoint, restart=1)
    assert second.end()[0] == "start 1 from step 1000"
    steps, final = straight
    assert second.steps == steps[-len(second.steps) :], "from the last checkpoint on, as before"
    assert same_weights(checkpoint, final)
