"""Writing files that others read while we write."""

import os
from pathlib import Path

from slurm_budget.errors import SbudgetError


def replace(path: Path, text: str, *, mode: int = 0o644) -> None:
    """Put `text` at `path` in one step: a reader sees the old file or the new one, whole.

    Raises SbudgetError that names the path (disk full, no permission); the old file stays then.
    """
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with open(draft, "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(draft, mode)
            os.replace(draft, path)
        finally:
            draft.unlink(missing_ok=True)
    except OSError as bad:
        raise SbudgetError(
            f"cannot be written: {bad.strerror or bad}",
            where=str(path),
            mend="check free space and that this user may write in that folder",
        ) from bad
