#!/usr/bin/env python3
"""A training loop that goes on where it was: train.py CHECKPOINT STEPS

At SIGCONT (asked to make way soon) it writes its checkpoint, and again after each step from then
on. At SIGTERM (stopped now) it finishes its step, writes its checkpoint and ends.
"""

import os
import signal
import sys
from pathlib import Path

asked: set[int] = set()
for number in (signal.SIGCONT, signal.SIGTERM):
    # a handler only sets a flag; before torch, whose import takes seconds
    signal.signal(number, lambda got, frame: asked.add(got))

import torch  # noqa: E402
from torch import nn  # noqa: E402

checkpoint, steps = Path(sys.argv[1]), int(sys.argv[2])
EVERY = 1000  # steps between checkpoints while nobody asks, against crashes

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1)).to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
step = 0


def save() -> None:
    """Whole or not at all: a kill in the middle leaves the checkpoint before."""
    state = {
        "step": step,
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "random": torch.get_rng_state(),  # with dropout on GPUs, torch.cuda.get_rng_state_all() too
    }
    new = checkpoint.with_name(checkpoint.name + ".new")
    with new.open("wb") as file:
        torch.save(state, file)
        file.flush()
        os.fsync(file.fileno())
    new.replace(checkpoint)


if checkpoint.exists():
    state = torch.load(checkpoint, map_location="cpu", weights_only=True)
    step = state["step"]
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    torch.set_rng_state(state["random"])
print(f"start {os.environ.get('SLURM_RESTART_COUNT', '0')} from step {step}", flush=True)

while step < steps:
    x = torch.randn(32, 8).to(device)
    loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    step += 1
    print(f"step {step} loss {loss.item():.9f}", flush=True)
    if asked or step % EVERY == 0:
        save()
    if signal.SIGTERM in asked:
        print(f"stopped, checkpoint at step {step}", flush=True)
        sys.exit(0)
save()
print(f"finished at step {step}")
