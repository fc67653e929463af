"""What differs between Slurm versions, each with the fact; nothing else asks for a version.

Measured on Debian's packages 22.05.8, 24.11.5 and 26.05.5. Where a reply itself tells its
spelling, its reader takes all of them and no version is asked for:

- GPUs asked for are `gres:gpu:8` in 22.05, and `gres/gpu:8` or `gres/gpu=8` later (text.tres);
- a node tells of its topology from 25.05 on (nodes, usecases.observe);
- slurmdbd's tables have `restart_cnt` since some version after 22.05, and uids without a name are
  numbers in sacct since then (slurmdbd_sql).
"""

import re

Version = tuple[int, int]
UNKNOWN: Version = (0, 0)


def parse(text: str) -> Version:
    """`slurm 22.05.8` -> (22, 5); UNKNOWN for what is none."""
    match = re.search(r"(\d{2})\.(\d{2})", text)
    return (int(match[1]), int(match[2])) if match else UNKNOWN


def rows_worth_a_call(version: Version) -> int:
    """From how many rows with the same new value one `sacctmgr modify` is faster than their lines
    in a `sacctmgr load`. Before 24.11 every message to slurmdbd waits some 40 ms for the network's
    delayed acknowledgements (two writes a message): a call takes 0.28 s, a line of a load 0.09 s.
    Since then it is 0.05 s and 0.003 s."""
    return 4 if version < (24, 11) else 16


def parallel_loads(version: Version) -> int:
    """How many `sacctmgr load` that only modify may run at once. The wait described above is spent
    idle, so several share it; since 24.11 there is nothing to gain."""
    return 6 if version < (24, 11) else 1


def says_exclusive(version: Version) -> bool:
    """Whether `squeue -O Exclusive` tells which jobs want whole nodes (NODE). So in 26.05, where
    OverSubscribe is NO for every job of a partition that shares nothing. 24.11 and 22.05 know no
    such field; there OverSubscribe is NO for those jobs and OK for the others."""
    return version >= (26, 5)


def pyslurm(text: str) -> Version:
    """The Slurm that a release of pyslurm is for: `25.11.2` -> (25, 11), `25.5.0` -> (25, 5). It is
    compiled against that Slurm's structures, and no other's do; its third number is its own."""
    match = re.match(r"(\d+)\.(\d+)", text)
    return (int(match[1]), int(match[2])) if match else UNKNOWN


def spelled(version: Version) -> str:
    """(25, 5) -> `25.05`, as Slurm says it."""
    return f"{version[0]}.{version[1]:02}"
