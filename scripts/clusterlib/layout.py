"""Where everything of one cluster lies.

    DIR/etc    slurm.conf, gres.conf, cgroup.conf, job_submit.lua (all readable);
               slurmdbd.conf, mariadb.cnf, munge.key (0600)
    DIR/log    one log per daemon, and NAME.out with what it said before it had a log
    DIR/run    sockets and pid files (the munge socket is open to all users)
    DIR/save   slurmctld's StateSaveLocation
    DIR/spool  one folder per node
    DIR/mysql  MariaDB's datadir
    DIR/dev    the device files that stand for GPUs
    DIR/home   a working folder for each user
    DIR/state.json

The longest path in it is a socket's: that bounds the length of DIR.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .base import EXIT_USAGE, ClusterError

BASE = Path("/var/lib/sbudget-cluster")
MARKER = ".sbudget-cluster"  # in every folder that is ours to delete
# A socket's path has room for 107 characters; the longest is spool/n9999/n9999_99999999.4294967291
MAX_DIR = 65


class Layout:
    """The paths in a cluster's folder."""

    def __init__(self, root: Path):
        if len(str(root)) > MAX_DIR or not str(root).isprintable() or " " in str(root):
            raise ClusterError(
                f"the folder {root} cannot hold a cluster",
                mend=f"take a path of at most {MAX_DIR} characters without spaces: "
                "Slurm's sockets lie below it",
                code=EXIT_USAGE,
            )
        self.root = root
        self.etc = root / "etc"
        self.log = root / "log"
        self.run = root / "run"
        self.save = root / "save"
        self.spool = root / "spool"
        self.mysql = root / "mysql"
        self.dev = root / "dev"
        self.home = root / "home"

        self.marker = root / MARKER
        self.state_file = root / "state.json"
        self.slurm_conf = self.etc / "slurm.conf"
        self.hook = self.etc / "job_submit.lua"
        self.munge_key = self.etc / "munge.key"
        self.munge_socket = self.run / "munge.socket"
        self.mysql_socket = self.run / "mysql.socket"
        # Client options for MariaDB: host, port, user and the random password.
        self.mysql_secret = self.etc / "mariadb.cnf"

    @property
    def is_ours(self) -> bool:
        return self.marker.exists()

    def node_spool(self, node: str) -> Path:
        return self.spool / node


def known_clusters() -> list[str]:
    """Names of the clusters in the default place, for error messages."""
    return sorted(path.parent.name for path in BASE.glob(f"*/{MARKER}"))


@contextmanager
def locked(layout: Layout) -> Iterator[None]:
    """Let one command at a time change a cluster.  The kernel drops the lock if we are killed."""
    handle = os.open(layout.root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        raise ClusterError(
            "another scripts/cluster is at work on this cluster",
            where=str(layout.root),
            mend="wait for it to end, or end it",
        ) from None
    try:
        yield
    finally:
        os.close(handle)
