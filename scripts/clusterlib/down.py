"""`down`: end what `up` began, and remove the folder.

It trusts nothing to be complete: daemons may be dead, hung or half started, the folder half made.
"""

import shutil
from contextlib import suppress

from . import procs, steps, users
from .base import ClusterError, say, until
from .daemons import Cluster
from .layout import BASE, Layout, locked
from .machine import unregister
from .state import State, boot_id, load


def down(layout: Layout, *, keep_logs: bool) -> None:
    if not layout.root.exists():
        kept = users.remove(layout)  # the folder may have been removed by hand
        unregister(layout)
        say(f"nothing is there ({layout.root})")
        _complain(kept)
        return
    if not layout.is_ours:
        raise ClusterError(
            f"the folder {layout.root} was not made by scripts/cluster: it stays",
            mend="check --dir and --name",
            code=2,
        )
    with locked(layout):
        state = load(layout)
        if state:
            _end_processes(Cluster(layout, state))
        kept = users.remove(layout)
        _remove_folder(layout, keep_logs)
    unregister(layout)
    say(f"cluster is down; {'logs are in ' + str(layout.log) if keep_logs else 'folder removed'}")
    _complain(kept)


def _complain(kept: list[str]) -> None:
    if kept:
        raise ClusterError("users that are in use were not removed: " + ", ".join(kept))


def _end_processes(cluster: Cluster) -> None:
    there, state = cluster.layout, cluster.state
    if steps.stepds(there) and state.alive("slurmctld"):
        _cancel_jobs(cluster)
    daemons = _living(state)
    # slurmds may be about to start a step: what hangs below them belongs to us as well.
    below = procs.descendants(daemons)
    launched = {proc.pid for proc in state.procs.values()}
    jobs = steps.all_of(there, launched)
    stuck = procs.end(daemons, patience=5)
    # A step that came up in the meantime is found now; after that nothing can start another.
    jobs = (jobs | below | steps.all_of(there, launched)) - set(daemons)
    stuck += procs.end(jobs, patience=0)
    if stuck:
        raise ClusterError(
            "processes cannot be ended: " + " ".join(str(proc.pid) for proc in stuck),
            where=str(there.root),
            mend="look at them (ps); then `scripts/cluster down` again",
        )
    say(f"{len(daemons)} daemons and {len(jobs)} other processes ended")


def _cancel_jobs(cluster: Cluster) -> None:
    """Ask for it politely, once.  What does not end is ended as processes afterwards."""
    # Pending ones first, or they would start as soon as the running ones end.
    for condition in ("PENDING", "RUNNING", "SUSPENDED"):
        if cluster.run("scancel", f"--state={condition}", timeout=10).returncode == 124:
            say("slurmctld does not answer: jobs are ended without it")
            return
    gone = until(lambda: not steps.stepds(cluster.layout), 10, every=0.2)
    say("jobs cancelled" if gone else "some jobs did not end when asked to")


def _living(state: State) -> list[procs.Proc]:
    """All that we started and that still lives, also what `stop` or the spec no longer names."""
    if state.boot != boot_id():
        return []
    return [proc for proc in state.procs.values() if proc.alive]


def _remove_folder(layout: Layout, keep_logs: bool) -> None:
    """Remove the folder; the marker last, so that a killed `down` can be run again."""
    for path in layout.root.iterdir():
        if path == layout.marker or (keep_logs and path == layout.log):
            continue
        if path.is_dir() and not path.is_symlink():
            # A dying process may still write: what appears meanwhile is removed at the second go.
            if not until(lambda path=path: _gone(path), 5):  # type: ignore[misc]
                raise ClusterError(f"cannot remove {path}", mend="see what writes there (lsof)")
        else:
            path.unlink(missing_ok=True)
    if not keep_logs:
        layout.marker.unlink(missing_ok=True)
        layout.root.rmdir()
        with suppress(OSError):  # others live there
            BASE.rmdir()


def _gone(path) -> bool:  # type: ignore[no-untyped-def]
    shutil.rmtree(path, ignore_errors=True)
    return not path.exists()
