"""What `sbudget setup` puts on a machine, as data: steps of parts, each of which can be looked at,
made and taken away again. Pure; usecases/setup does it.

A part that is there already is left alone. What was made is written down, so that undoing takes
away that and nothing else.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from slurm_budget.errors import BadInput

USER = "slurm-budget"
PROGRAM = "/opt/slurm-budget/bin/sbudget"
"""As the shipped files name it, and the user above and the folders below."""
CONFIG, STATE, LOGS = "/etc/slurm-budget", "/var/lib/slurm-budget", "/var/log/slurm-budget"
NEEDED = (
    "slurm-budget.toml",
    "slurm-budget.service",
    "cron.d/slurm-budget",
    "logrotate.d/slurm-budget",
    "sysusers.d/slurm-budget.conf",
    "tmpfiles.d/slurm-budget.conf",
)
"""Shipped files that a plan is made from, as in etc/."""


@dataclass(frozen=True, slots=True)
class LinuxUser:
    name: str
    home: Path


@dataclass(frozen=True, slots=True)
class Folder:
    """`owner` empty: whoever makes it. `leavings`: patterns of what may go with it, since it can be
    made again."""

    path: Path
    mode: int
    owner: str
    leavings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class File:
    """Root's, mode 0644. `keep`: one that is there is the site's, whatever stands in it. `unit`:
    systemd is told when it is gone."""

    path: Path
    text: str
    keep: bool = False
    unit: bool = False


@dataclass(frozen=True, slots=True)
class Service:
    """A unit of systemd, by its whole name: it runs as its file says, now and after a boot."""

    name: str


@dataclass(frozen=True, slots=True)
class Administrator:
    """`user` as an administrator of Slurm."""

    user: str


@dataclass(frozen=True, slots=True)
class LedgerPart:
    """The ledger of slurm-budget.toml, with the schema of this program, made by its user."""


@dataclass(frozen=True, slots=True)
class HookPart:
    """The submit hook, as `sbudget hook install` has it."""


@dataclass(frozen=True, slots=True)
class Accounting:
    """The runs of the last window in the ledger."""


@dataclass(frozen=True, slots=True)
class Doctor:
    """What is left to mend; changes nothing."""


MachinePart = LinuxUser | Folder | File | Service
Part = MachinePart | Administrator | LedgerPart | HookPart | Accounting | Doctor


@dataclass(frozen=True, slots=True)
class Step:
    """`name` is the word for --skip and --only; `skip` says why it is not for this machine."""

    name: str
    why: str
    parts: tuple[Part, ...]
    skip: str = ""


@dataclass(frozen=True, slots=True)
class Target:
    """The machine. `user` sweeps; `program` is our own, by its whole path; `config` the settings'
    file; `folders` where ledger and snapshot lie, the latter as a file of the name `snapshot`.
    `root` is not `/` where only files are wanted there. `texts`: the shipped files, by their names
    in NEEDED. `slurm_conf`: as SLURM_CONF names it, where the settings do not."""

    user: str
    program: Path
    config: Path
    folders: tuple[Path, ...]
    snapshot: str
    texts: Mapping[str, str]
    systemd: bool
    cron: bool
    logrotate: bool
    root: Path = Path("/")
    slurm_conf: Path | None = None

    def under(self, path: str | Path) -> Path:
        return self.root / Path(path).relative_to("/")

    @property
    def whole(self) -> bool:
        """Whether it is this machine itself, and not a folder of files for another."""
        return self.root == Path("/")


def text_for(target: Target, name: str) -> str:
    """A shipped file with this machine's user, program, settings, folders and slurm.conf in it."""
    program = str(target.program)
    if target.config != Path(CONFIG) / "slurm-budget.toml":
        program += f" --config {target.config}"
    text = target.texts[name].replace(PROGRAM, program)
    folders = [str(folder) for folder in target.folders]
    text = text.replace(f"ReadWritePaths={STATE}", f"ReadWritePaths={' '.join(folders)}")
    if Path(STATE) not in target.folders:
        # systemd would make it, and nobody would take it away
        text = re.sub(r"^StateDirectory.*\n", "", text, flags=re.MULTILINE)
    if target.slurm_conf:
        line = f"SLURM_CONF={target.slurm_conf}"
        text = text.replace("\nExecStart=", f"\nEnvironment={line}\nExecStart=")
        text = text.replace("\nSHELL=", f"\n{line}\nSHELL=")
    made = re.search(rf"^d {STATE} (.*)$", text, re.MULTILINE)
    if made:
        lines = "\n".join(f"d {folder} {made[1]}" for folder in folders)
        text = text.replace(made[0], lines)
    text = re.sub(rf"^(User=|u |[* ]+ ){USER}\b", rf"\g<1>{target.user}", text, flags=re.MULTILINE)
    return text.replace(f" {USER} {USER}", f" {target.user} {target.user}")


def plan(target: Target) -> tuple[Step, ...]:
    """All steps, in the order in which they are done."""
    on = target.under

    def file(place: str, name: str, *, unit: bool = False) -> File:
        return File(on(place), text_for(target, name), unit=unit)

    def folder(path: str | Path, mode: int, *leavings: str) -> Folder:
        return Folder(on(path), mode, target.user if target.whole else "", leavings)

    name = "slurm-budget.service"
    unit = file(f"/etc/systemd/system/{name}", name, unit=target.whole)
    elsewhere = "" if target.whole else "only files, with --root"
    # the line of any other user is somebody else's: SlurmUser's, with its uid, is Slurm's package's
    for_user = [file("/etc/sysusers.d/slurm-budget.conf", "sysusers.d/slurm-budget.conf")]
    for_folders = file("/etc/tmpfiles.d/slurm-budget.conf", "tmpfiles.d/slurm-budget.conf")
    no_systemd = "" if target.systemd else "cron sweeps here"
    no_cron = "systemd runs the daemon" if target.systemd else ""
    if not target.systemd and not target.cron:
        no_cron = "no /etc/cron.d: have whatever starts your daemons start `sbudget run`"
    return (
        Step(
            "user",
            "sweeps need none of root's rights",
            (LinuxUser(target.user, target.folders[0]),),
            elsewhere,
        ),
        Step(
            "folders",
            "ledger and snapshot are the user's; slurmctld's user reads the snapshot, hence 0755",
            tuple(
                folder(path, 0o755, target.snapshot, f"{target.snapshot}.told")
                for path in target.folders
            ),
        ),
        Step(
            "config",
            "every setting with its default; yours is never overwritten",
            (File(on(target.config), target.texts["slurm-budget.toml"], keep=True),),
        ),
        Step("ledger", "budgets and runs are kept there", (LedgerPart(),), elsewhere),
        Step(
            "slurm",
            "to requeue, signal and retag the jobs of others; AdminComment takes an administrator",
            (Administrator(target.user),),
            elsewhere,
        ),
        Step(
            "import", "charges of the last window count from the start", (Accounting(),), elsewhere
        ),
        Step("hook", "funded or preemptible is decided at sbatch", (HookPart(),), elsewhere),
        Step(
            "sysusers",
            "images that boot with an empty /etc or /var get user and folder again",
            (*(for_user if target.user == USER else ()), for_folders),
            no_systemd,
        ),
        Step(
            "systemd",
            "the daemon, which sweeps every sweep.beat",
            (unit, Service(unit.path.name)) if target.whole else (unit,),
            no_systemd,
        ),
        Step(
            "cron",
            "a sweep every minute",
            (
                folder(LOGS, 0o750, "sweep.log*"),
                file("/etc/cron.d/slurm-budget", "cron.d/slurm-budget"),
            ),
            no_cron,
        ),
        Step(
            "logrotate",
            "cron's log ends somewhere",
            (file("/etc/logrotate.d/slurm-budget", "logrotate.d/slurm-budget"),),
            no_cron or ("" if target.logrotate else "no /etc/logrotate.d here"),
        ),
        Step("doctor", "says what is left to mend", (Doctor(),), elsewhere),
    )


def chosen(
    steps: Sequence[Step], skip: Collection[str], only: Collection[str]
) -> tuple[tuple[Step, str], ...]:
    """Each step with why it is left out; empty for one to be done. Raises BadInput for a name that
    no step has."""
    known = [step.name for step in steps]
    for name in (*skip, *only):
        if name not in known:
            raise BadInput(f"there is no step {name!r}", mend=f"steps are {', '.join(known)}")

    def why(step: Step) -> str:
        if only and step.name not in only:
            return "not in --only"
        return "--skip" if step.name in skip else step.skip

    return tuple((step, why(step)) for step in steps)
