"""Slurm's small languages (TRES, times, job ids), parsed without touching anything."""
