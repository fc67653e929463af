"""Writing files that others read while we write.

What is written goes into a new file of ours (never through a link that somebody laid there) and
takes its place by a rename, which replaces a link or a device and does not follow it.
"""

import os
import shutil
import stat
import time
import zlib
from pathlib import Path

from slurm_budget.errors import BadInput, SbudgetError

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
NOT_THEIRS = stat.S_IWGRP | stat.S_IWOTH


def open_to_others(folder: Path) -> Path | None:
    """The folder, or one above it, in which others than its owner may put, move and remove files;
    None where there is none. Above, a sticky bit (as /tmp has) is enough, and the owner must be
    root, we, or the folder's owner. Raises OSError."""
    folder = folder.absolute()
    trusted = {0, os.geteuid()}
    for place in (folder, *folder.parents):
        try:
            found = place.stat()
        except FileNotFoundError:
            continue
        sticky = found.st_mode & stat.S_ISVTX and place != folder
        if found.st_mode & NOT_THEIRS and not sticky:
            return place
        if place == folder:
            trusted.add(found.st_uid)
        if found.st_uid not in trusted:
            return place
    return None


def kind(path: Path) -> str:
    """What stands there, in a word: `file`, `folder`, `fifo`, `socket`, `device` or `nothing`; it
    is not opened, for a FIFO would not come back. Raises OSError where one may not look."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return "nothing"
    for is_it, word in _KINDS:
        if is_it(mode):
            return word
    return "device"


_KINDS = (
    (stat.S_ISREG, "file"),
    (stat.S_ISDIR, "folder"),
    (stat.S_ISFIFO, "fifo"),
    (stat.S_ISSOCK, "socket"),
)


def need_folder(path: Path) -> Path:
    """`path`, whose folder must be there: what somebody mistyped is not to become a new one."""
    if not path.parent.is_dir():
        raise BadInput(
            f"the folder {path.parent} is not there",
            where=str(path),
            mend=f"correct the path, or mkdir -p {path.parent}",
        )
    return path


def replace(path: Path, text: str, *, mode: int = 0o644) -> None:
    """Put `text` at `path` in one step: a reader sees the old file or the new one, whole.

    Raises SbudgetError that names the path (disk full, no permission); the old file stays then.
    """
    put(path, text.encode(), mode=mode)


def put(
    path: Path, blob: bytes, *, mode: int = 0o644, owner: tuple[int, int] | None = None
) -> None:
    """The same for bytes; `owner` is (uid, gid)."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            draft.unlink(missing_ok=True)  # of a writer that was killed, or a trap
            with open(os.open(draft, _NEW, 0o600), "wb") as file:
                file.write(blob)
                file.flush()
                os.fsync(file.fileno())
                os.fchmod(file.fileno(), mode)
                if owner is not None:
                    os.fchown(file.fileno(), *owner)
            os.replace(draft, path)
        finally:
            draft.unlink(missing_ok=True)
    except OSError as bad:
        raise _unwritable(path, bad) from bad


def change(path: Path, blob: bytes | None) -> None:
    """Put `blob` at `path` with the mode and owner of the file that it replaces; None removes it.

    Its time of change grows by a whole second at least, which is how slurmctld notices; no more,
    for an edit by hand must be later again.
    """
    try:
        before = path.stat() if path.exists() else None
        if blob is None:
            path.unlink(missing_ok=True)
            return
        if before is None:
            put(path, blob)
        else:
            put(path, blob, mode=before.st_mode & 0o7777, owner=(before.st_uid, before.st_gid))
        later = max(int(time.time()), int(before.st_mtime) + 1 if before else 0)
        os.utime(path, (later, later))
    except OSError as bad:
        raise _unwritable(path, bad) from bad


def read(path: Path) -> bytes | None:
    """What stands there, None where nothing does. Raises SbudgetError where it cannot be read."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as bad:
        raise SbudgetError(
            f"cannot be read: {bad.strerror or bad}",
            where=str(path),
            mend="run this as a user who may read it, such as root",
        ) from bad


def back_up(path: Path) -> Path | None:
    """Keep a copy beside the file, named after what is in it, so that the same is kept once. None
    where there is no file."""
    blob = read(path)
    if blob is None:
        return None
    copy = path.with_name(f"{path.name}.{zlib.adler32(blob):08x}.bak")
    try:
        if not copy.exists():
            shutil.copy2(path, copy)
    except OSError as bad:
        raise _unwritable(copy, bad) from bad
    return copy


def _unwritable(path: Path, bad: OSError) -> SbudgetError:
    return SbudgetError(
        f"cannot be written: {bad.strerror or bad}",
        where=str(path),
        mend="check free space and that this user may write in that folder",
    )
