"""The Slurm port by Slurm's own commands; the queue also by pyslurm, where a site asks for it.
Version differences live in versions.py, alone."""
