"""The Slurm port by Slurm's own commands; where a site asks for it, the queue by pyslurm. What differs
between versions lives in versions.py, alone."""
