"""Writing files that others read while we write."""

import os
import shutil
import time
import zlib
from pathlib import Path

from slurm_budget.errors import SbudgetError


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
            with open(draft, "wb") as file:
                file.write(blob)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(draft, mode)
            if owner is not None:
                os.chown(draft, *owner)
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
