"""This machine's users, services and folders, by its own programs; no shell. Each failure is a
SbudgetError with the program's own words."""

import os
import pwd
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from slurm_budget.errors import SbudgetError

_ADMIN_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
LONGEST = 600
"""Seconds that one program may take; the first import reads a week of accounting."""


def account(name: str) -> pwd.struct_passwd | None:
    """The Linux user of that name."""
    try:
        return pwd.getpwnam(name)
    except KeyError:
        return None


def run(
    *argv: str,
    user: pwd.struct_passwd | None = None,
    env: Mapping[str, str] | None = None,
    fine: Sequence[int] = (0,),
) -> str:
    """Run to its end, as `user` where one is given; its output. Exit codes but `fine` raise."""
    program = shutil.which(argv[0], path=_ADMIN_PATH) or argv[0]
    who = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": ()} if user else {}
    try:
        done = subprocess.run(
            [program, *argv[1:]],
            capture_output=True,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            env={"PATH": _ADMIN_PATH, "LC_ALL": "C.UTF-8", **(env or {})},
            cwd="/",
            timeout=LONGEST,
            check=False,
            **who,  # type: ignore[call-overload]
        )
    except PermissionError:
        raise SbudgetError(
            f"{user.pw_name if user else 'this user'} may not run it",
            where=program,
            mend="install it where every user may read it, such as /opt (pipx: --global)",
        ) from None
    except (OSError, subprocess.TimeoutExpired) as bad:
        raise SbudgetError(
            f"{argv[0]} did not run: {bad}",
            mend="install it, or do this step by hand and --skip it",
        ) from None
    if done.returncode not in fine:
        said = (done.stderr or done.stdout).strip().splitlines() or [f"exit {done.returncode}"]
        told = [line.strip().removeprefix("sbudget: ") for line in said]
        mends = [line.removeprefix("mend: ") for line in told if line.startswith("mend: ")]
        as_whom = f"as {user.pw_name}: " if user else ""
        raise SbudgetError(
            told[0],
            where=as_whom + " ".join((Path(argv[0]).name, *argv[1:])),
            mend=mends[0] if mends else "do this step by hand, or mend that and run setup again",
        )
    return str(done.stdout).strip()


def add_user(name: str, home: Path) -> None:
    """A system user with a group of its own, no password, no shell and no home made."""
    run(
        "useradd", "--system", "--user-group", "--no-create-home", "--home-dir", str(home),
        "--shell", "/usr/sbin/nologin", name,
    )  # fmt: skip


def delete_user(name: str) -> None:
    run("userdel", name)


def has_systemd() -> bool:
    """Whether systemd runs this machine, and not only lies on it."""
    return Path("/run/systemd/system").is_dir()


def unit_state(name: str) -> dict[str, str]:
    """ActiveState, UnitFileState and NeedDaemonReload of a unit, in systemctl's words; it has some
    for a unit that is not there, too."""
    fields = "ActiveState,UnitFileState,NeedDaemonReload"
    lines = run("systemctl", "show", "-p", fields, name).splitlines()
    return dict(line.split("=", 1) for line in lines)


def make_folder(path: Path, mode: int, owner: pwd.struct_passwd | None) -> None:
    """The folder, with those above it; raises SbudgetError where it cannot be."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        path.chmod(mode)
        if owner is not None:
            os.chown(path, owner.pw_uid, owner.pw_gid)
    except OSError as bad:
        raise SbudgetError(
            f"cannot be made: {bad.strerror}", where=str(path), mend="run setup as root"
        ) from None


def remove_folder(path: Path) -> str:
    """Remove it where it is empty; else what it still holds, for people."""
    try:
        path.rmdir()
    except FileNotFoundError:
        return ""
    except OSError:
        return f"{path} stays: it holds {', '.join(sorted(p.name for p in path.iterdir())[:4])}"
    return ""


def not_there(path: Path) -> list[str]:
    """The folders above `path` that are still to be made, the lowest first."""
    return [str(place) for place in path.parents if not place.exists()]


def remove_empty(folders: Sequence[str]) -> None:
    """Folders that were made on the way, the lowest first; one that is in use now stays."""
    for folder in folders:
        remove_folder(Path(folder))
