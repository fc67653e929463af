"""Linux users for a cluster.

A user that we create says so in its comment field, with the folders of the clusters that use it:

    ana:x:1001:1001:sbudget-cluster /var/lib/sbudget-cluster/demo /tmp/t1:...

So two clusters can share a user, the last one to go removes it, and `down` knows what `up`
created even when `up` was killed before it could write it down.  Users that were there before
carry no such comment and are never touched.
"""

import os
import pwd
import subprocess

from .base import ClusterError, say, until, warn
from .layout import Layout
from .machine import machine_lock
from .procs import read_stat
from .state import State

PREFIX = "sbudget-cluster"


def create(layout: Layout, state: State) -> None:
    """Make the missing users, and for every user a working folder in DIR/home."""
    new = []
    for name in state.spec.users:
        home = layout.home / name
        with machine_lock():
            entry = _entry(name)
            if entry is None:
                who = ["--home-dir", str(home), "--comment", f"{PREFIX} {layout.root}"]
                _run(["useradd", "--no-create-home", "--shell", "/bin/sh", *who, name])
                new.append(name)
            elif entry.pw_gecos.startswith(PREFIX + " ") and not _used_by(entry, layout):
                _run(["usermod", "--comment", f"{entry.pw_gecos} {layout.root}", name])
        # Before a mended `up` returns, the list is complete again: it is read from the system.
        state.users_created = created_here(layout)
        state.save(layout)
        entry = pwd.getpwnam(name)
        home.mkdir(mode=0o755, exist_ok=True)
        os.chown(home, entry.pw_uid, entry.pw_gid)
    if state.spec.users:
        old = [name for name in state.spec.users if name not in new]
        say(
            "users: "
            + "; ".join(
                f"{verb} {', '.join(names)}"
                for verb, names in (("created", new), ("were there:", old))
                if names
            )
        )


def remove(layout: Layout) -> list[str]:
    """Remove the users that only this cluster needed.  Returns those that could not be removed."""
    removed, kept = [], []
    for name in created_here(layout):
        with machine_lock():
            entry = pwd.getpwnam(name)
            others = [path for path in entry.pw_gecos.split()[1:] if path != str(layout.root)]
            others = [path for path in others if os.path.isdir(path)]
            if others:
                comment = " ".join([PREFIX, *others])
                home = os.path.join(others[0], "home", name)
                # The home folder is about to go; a busy user keeps the old entry, no harm done.
                if not _ok(["usermod", "--comment", comment, "--home", home, name]):
                    _run(["usermod", "--comment", comment, name])
                say(f"user {name} stays: {others[0]} uses it")
                continue
            # A process that has just been killed may take a moment to go.
            if not until(lambda uid=entry.pw_uid: not _busy(uid), 5):  # type: ignore[misc]
                pids = " ".join(map(str, _busy(entry.pw_uid)))
                warn(f"user {name} is in use by process {pids}: not removed; later: userdel {name}")
                kept.append(name)
                continue
            # --force because userdel counts zombies, which in a container may stay for ever.
            _run(["userdel", "--force", name])
            removed.append(name)
    if removed:
        say("users removed: " + ", ".join(removed))
    return kept


def created_here(layout: Layout) -> list[str]:
    """Users that we made and that this cluster uses, as the system's user list has it."""
    return [entry.pw_name for entry in pwd.getpwall() if _used_by(entry, layout)]


def _used_by(entry: pwd.struct_passwd, layout: Layout) -> bool:
    word, _, folders = entry.pw_gecos.partition(" ")
    return word == PREFIX and str(layout.root) in folders.split()


def _entry(name: str) -> pwd.struct_passwd | None:
    try:
        return pwd.getpwnam(name)
    except KeyError:
        return None


def _busy(uid: int) -> list[int]:
    """Living processes of a user."""
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            owner = os.stat(f"/proc/{entry}").st_uid
        except OSError:
            continue
        stat = read_stat(int(entry)) if owner == uid else None
        if stat and not stat.dead:
            found.append(int(entry))
    return found


def _ok(argv: list[str]) -> bool:
    return subprocess.run(argv, capture_output=True, check=False).returncode == 0


def _run(argv: list[str]) -> None:
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode:
        said = (done.stderr or done.stdout).strip()
        raise ClusterError(f"{argv[0]} failed: {said}", where=" ".join(argv))
