"""The Slurm port by Slurm's own commands. Version differences live in versions.py, alone."""
