"""What scripts/bench-hook is made of.

site        three clusters side by side, their submissions, and what sdiag says of them
facts       1,000 accounts and 10,000 users: as a snapshot, in Slurm, in SQLite
admit       how long sbudget-admit takes
*.lua       hooks to compare with ours
"""
