"""What `sbudget setup` made on a machine, written down behind each part.

It is root's own file in root's own folder, since undoing takes away what stands in it. A setup that
was killed can be undone by it, or run again.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from slurm_budget import files, machine
from slurm_budget.errors import BadInput

RECORD = "setup.json"
_FOLDER = "the record's folders"


@dataclass(slots=True)
class Record:
    """What setup made on this machine: by the key of each part what undoing it must know."""

    path: Path
    made: dict[str, Any]
    options: dict[str, str]
    """Of the setup that made it: user, by."""

    @classmethod
    def read(cls, folder: Path) -> "Record":
        path = folder / RECORD
        blob = files.read(path)
        if blob is None:
            return cls(path, {}, {})
        try:
            found = json.loads(blob)
            return cls(path, dict(found["made"]), dict(found["options"]))
        except (ValueError, KeyError, TypeError):
            raise BadInput(
                "is not what setup wrote", where=str(path), mend="restore it, or remove it"
            ) from None

    def keep(self, key: str, made: Any) -> None:
        above = machine.not_there(self.path)
        if above:
            machine.make_folder(self.path.parent, 0o755, None)
            self.made[_FOLDER] = above
        self.made[key] = made
        self._write()

    def drop(self, key: str) -> None:
        """The last one takes the record with it, and its folder if that was made for it."""
        del self.made[key]
        if set(self.made) - {_FOLDER}:
            self._write()
            return
        self.path.unlink(missing_ok=True)
        machine.remove_empty(self.made.pop(_FOLDER, ()))

    def _write(self) -> None:
        whole = {"format": 1, "options": self.options, "made": self.made}
        files.replace(self.path, json.dumps(whole, indent=1) + "\n")
