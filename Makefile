# Two commands: `make demo` and `make test`. Both do all set-up (Debian's packages, .venv).
PY := .venv/bin/python

.PHONY: help setup torch demo test unit adapters cluster check generate clean

help:
	@echo "make demo      the main job on a real one-machine Slurm, about two minutes"
	@echo "make test      all tests: unit, adapters, cluster (real Slurm)"
	@echo "make check     ruff, mypy --strict, import contract"
	@echo "make unit | adapters | cluster    one ring of tests"

setup:
	@scripts/setup

# For the test of docs/examples/train.py, which is skipped without it. 0.9 GB, and PyPI's has
# gigabytes of CUDA on top: PIP_INDEX_URL=https://download.pytorch.org/whl/cpu make torch
torch: setup
	@$(PY) -c 'import torch' 2>/dev/null || $(PY) -m pip install --quiet -e '.[torch]' || \
		echo "torch: not installed, its test will be skipped"

# Where there is no apt-get, the story is played in a Docker container with Debian in it.
demo: setup
	@if command -v apt-get >/dev/null; then scripts/cluster install --yes && $(PY) scripts/demo; \
	else $(PY) scripts/images demo; fi

test: check torch
	@scripts/cluster install --yes
	@scripts/setup-browser
	@$(PY) -m pytest

unit: setup
	@$(PY) -m pytest tests/unit

adapters: setup
	@scripts/cluster install --yes
	@scripts/setup-browser
	@$(PY) -m pytest tests/adapters

cluster: setup
	@scripts/cluster install --yes
	@$(PY) -m pytest tests/cluster

check: setup
	.venv/bin/ruff check .
	.venv/bin/ruff format --check slurm_budget tests
	.venv/bin/mypy --strict slurm_budget
	.venv/bin/mypy --scripts-are-modules --ignore-missing-imports scripts/bench-* scripts/*lib scripts/hookbench
	.venv/bin/lint-imports

generate: setup
	@$(PY) scripts/generate

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis
