"""Setup's parts that are this machine's own: the user, folders, files and the service."""

import hashlib
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from slurm_budget import files, machine
from slurm_budget.core.setup import File, Folder, LinuxUser, Service
from slurm_budget.errors import SbudgetError


@dataclass(frozen=True, slots=True)
class UserDeed:
    part: LinuxUser

    @property
    def key(self) -> str:
        return f"user {self.part.name}"

    def missing(self) -> str:
        return "" if machine.account(self.part.name) else f"add the user {self.part.name}"

    def do(self, before: Any) -> tuple[Any, str]:
        machine.add_user(self.part.name, self.part.home)
        return True, f"added the user {self.part.name}"

    def undo(self, made: Any, *, purge: bool) -> str:
        if self.part.home.exists():
            return f"the user {self.part.name} stays: {self.part.home} is theirs"
        if machine.account(self.part.name):
            machine.delete_user(self.part.name)
        return ""


@dataclass(frozen=True, slots=True)
class FolderDeed:
    part: Folder

    @property
    def key(self) -> str:
        return f"folder {self.part.path}"

    def missing(self) -> str:
        path, owner = self.part.path, machine.account(self.part.owner)
        if not path.exists():
            return f"make {path} ({self.part.owner or 'yours'}, {self.part.mode:04o})"
        if owner is None or path.stat().st_uid == owner.pw_uid:
            return ""
        return f"{path} is not {self.part.owner}'s"

    def do(self, before: Any) -> tuple[Any, str]:
        path, name = self.part.path, self.part.owner
        if path.exists():
            raise SbudgetError(
                f"is not {name}'s, who sweeps",
                where=str(path),
                mend=f"stop what sweeps, chown -R {name} {path}, and run setup again",
            )
        owner = machine.account(name)
        if name and owner is None:
            raise SbudgetError(
                f"there is no user {name} to give it to",
                where=str(path),
                mend="do the step `user` too, or name one who is there with --user",
            )
        above = machine.not_there(path)
        machine.make_folder(path, self.part.mode, owner)
        return above, f"made {path}"

    def undo(self, made: Any, *, purge: bool) -> str:
        for pattern in self.part.leavings:
            for leaving in self.part.path.glob(pattern):
                leaving.unlink()
        left = machine.remove_folder(self.part.path)
        if not left:
            machine.remove_empty(made)
        return left


@dataclass(frozen=True, slots=True)
class FileDeed:
    """One that was changed by hand since is left alone; the record has the sum of what we wrote."""

    part: File

    @property
    def key(self) -> str:
        return f"file {self.part.path}"

    def missing(self) -> str:
        path, there = self.part.path, files.read(self.part.path)
        if there is None:
            return f"write {path}"
        if self.part.keep or there == self.part.text.encode():
            return ""
        return f"bring {path} up to date"

    def do(self, before: Any) -> tuple[Any, str]:
        path, there = self.part.path, files.read(self.part.path)
        if there is not None and (before is None or before["sum"] != _sum(there)):
            raise SbudgetError(
                "is not as setup wrote it; it was left alone",
                where=str(path),
                mend="--skip this step, or move that file away and run setup again",
            )
        above = machine.not_there(path)
        files.put(path, self.part.text.encode())
        made = {"sum": _sum(self.part.text.encode()), "above": before["above"] if before else above}
        return made, f"wrote {path}"

    def undo(self, made: Any, *, purge: bool) -> str:
        path, there = self.part.path, files.read(self.part.path)
        if there is not None and _sum(there) != made["sum"] and not purge:
            return f"{path} stays: it was changed since (--purge takes it too)"
        path.unlink(missing_ok=True)
        if self.part.unit and machine.has_systemd():
            machine.run("systemctl", "daemon-reload")
        machine.remove_empty(made["above"])
        return ""


@dataclass(frozen=True, slots=True)
class ServiceDeed:
    """One that does not start is not left enabled: the next setup tries again."""

    part: Service

    @property
    def key(self) -> str:
        return f"service {self.part.name}"

    def missing(self) -> str:
        name = self.part.name
        if not machine.has_systemd() or machine.unit_state(name) == _AS_IT_SHALL_BE:
            return ""
        return f"systemctl enable --now {name}"

    def do(self, before: Any) -> tuple[Any, str]:
        name = self.part.name
        machine.run("systemctl", "daemon-reload")
        try:
            machine.run("systemctl", "enable", name)
            # also where it runs: its file has changed since it was started
            machine.run("systemctl", "restart", name)
        except SbudgetError as bad:
            self._stop()
            raise SbudgetError(
                bad.what,
                where=bad.where,
                mend=f"`journalctl -u {name}` says why; mend that, and run setup again",
            ) from None
        return True, f"started {name}"

    def undo(self, made: Any, *, purge: bool) -> str:
        if machine.has_systemd():
            self._stop()
        return ""

    def _stop(self) -> None:
        name = self.part.name
        if machine.unit_state(name)["UnitFileState"]:
            machine.run("systemctl", "disable", "--now", name)
        with suppress(SbudgetError):  # one that has not failed needs none
            machine.run("systemctl", "reset-failed", name)


_AS_IT_SHALL_BE = {"ActiveState": "active", "UnitFileState": "enabled", "NeedDaemonReload": "no"}


def _sum(blob: bytes) -> str:
    return hashlib.sha256(blob).hexdigest()
