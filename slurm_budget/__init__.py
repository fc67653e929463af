"""slurm-budget: GPU-time budgets that Slurm delivers."""

__version__ = "0.1.0"
