"""All settings: one model with type, default and meaning. `etc/slurm-budget.toml` shows them all.

Every duration is a setting (so that a test can play a week in minutes) and may be written as
`7d`, `8h`, `20min` or whole seconds. A key we do not know is an error that names the nearest one.
"""

import os
import stat
import tomllib
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from slurm_budget.errors import BadInput, BadInputs
from slurm_budget.text import durations
from slurm_budget.text.nearest import meant

DEFAULT_PATH = Path("/etc/slurm-budget/slurm-budget.toml")
ENVIRONMENT = "SBUDGET_CONFIG"


def _duration(value: object) -> object:
    if isinstance(value, str):
        try:
            return durations.human(value)
        except BadInput as bad:
            raise ValueError(bad.what) from bad
    return value


LONGEST = 100 * 366 * 86400
"""A hundred years: more is a slip of the hand, and no date."""
Seconds = Annotated[int, BeforeValidator(_duration), Field(ge=0, le=LONGEST)]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class LedgerSettings(_Section):
    """Where budgets and runs are kept."""

    url: str = Field("sqlite:////var/lib/slurm-budget/ledger.db", description="SQLAlchemy URL")
    password_file: Path | None = Field(
        None, description="file of mode 0600 with the database password; or SBUDGET_DB_PASSWORD"
    )
    admins: tuple[str, ...] = Field((), description="Unix users who may act for any manager")
    across: tuple[str, ...] = Field(
        (), description="accounts with one budget for all clusters of this ledger"
    )


class SlurmSettings(_Section):
    """How to reach Slurm."""

    cluster: str = Field("", description="ClusterName; empty: ask slurmctld")
    conf: Path | None = Field(None, description="slurm.conf, where SLURM_CONF is not set")
    bin: Path | None = Field(None, description="folder of Slurm's commands; empty: PATH")
    timeout: Seconds = Field(60, description="how long one command may take")
    backend: Literal["commands", "pyslurm"] = Field(
        "commands", description="what reads the queue; pyslurm must be of Slurm's version"
    )
    source: Literal["sacct", "slurmdbd-sql"] = Field("sacct", description="where runs come from")


class WindowSettings(_Section):
    """The time over which use is counted."""

    kind: Literal["sliding", "decay"] = Field(
        "sliding", description="weight 1 inside the window, or halved with age"
    )
    length: Seconds = Field(604800, description="seconds of epoch time in the window")
    half_life: Seconds = Field(604800, description="for kind = 'decay'")
    charge: Literal["protected", "run"] = Field(
        "protected", description="charge the protected part of a funded run, or all of it"
    )


class JobSettings(_Section):
    """What a job gets that says nothing, and what nobody gets more than."""

    default_class: Literal["funded", "preemptible"] = Field(
        "preemptible", description="class of a job that asks for none"
    )
    min_runtime: Seconds = Field(3600, description="minimum runtime when none is declared, at most")
    min_runtime_cap: Seconds = Field(28800, description="the longest minimum runtime")
    on_exhausted: Literal["preemptible", "wait", "reject"] = Field(
        "preemptible", description="what becomes of a funded request that fits no budget"
    )
    messages: bool = Field(True, description="tell the user the verdict at sbatch")
    gpu_weights: dict[str, float] = Field(
        default_factory=dict, description="weight by GPU type or MIG slice; 1 where not named"
    )


class QosSettings(_Section):
    """Fields of the QOS that sync writes."""

    preempt_exempt_time: Seconds = Field(
        1200, description="preemptible runs are left alone so long"
    )
    grace_time: Seconds = Field(60, description="between the signal and the kill at preemption")
    usage_factor: float = Field(0.1, ge=0, description="what preemptible use costs in fairshare")
    burst: float = Field(6.0, gt=0, description="GrpTRES of a funded QOS, times the budget")
    backstop: float = Field(0.0, ge=0, description="GrpTRESMins, times the budget; 0: none")
    funded_priority: int = Field(1000, description="QOS priority of funded jobs")
    preemptible_priority: int = Field(0, description="QOS priority of preemptible jobs")


class SyncSettings(_Section):
    """The guard of `sync`."""

    max_change: float = Field(0.3, ge=0, le=1, description="share of what exists that may change")


class SweepSettings(_Section):
    """When and how far the sweeper acts."""

    beat: Seconds = Field(30, ge=1, description="seconds between sweeps of the daemon")
    patience: Seconds = Field(60, description="how long an owed job waits before anyone yields")
    grace: Seconds = Field(60, description="between the signal and the requeue")
    signal: str = Field("CONT", description="the warning; CONT harms no job that does not know it")
    session_warning: Seconds = Field(
        600, description="jobs that cannot be requeued hear of their end so long before; 0: never"
    )
    margin: float = Field(
        0.05, ge=0, description="how much further over its share a victim must be"
    )
    cooldown: Seconds = Field(900, description="a job is requeued at most once in this time")
    max_gpus: int = Field(64, ge=0, description="GPUs that one sweep may free, repairs apart")
    max_updates: int = Field(200, ge=0, description="pending jobs that one sweep may retag")
    requeue: Literal["owed", "always", "never"] = Field(
        "owed", description="when a run past its protection is requeued"
    )
    fast_lane: float = Field(0.05, ge=0, le=1, description="share of a budget kept for small jobs")
    fast_lane_gpu_time: Seconds = Field(
        7200, description="GPU-seconds by time limit of a small job"
    )
    overlap: Seconds = Field(86400, description="accounting is read again from so far back")


class SnapshotSettings(_Section):
    """The file of decided facts that the submit hook reads."""

    path: Path = Field(
        Path("/var/lib/slurm-budget/snapshot"), description="`sbudget hook install` tells the hook"
    )
    max_age: Seconds = Field(900, description="older than this, the hook decides nothing")


class HookSettings(_Section):
    """The submit hook, as `sbudget hook install` puts it in place."""

    folder: Path = Field(
        Path("/etc/slurm-budget"), description="where sbudget.lua goes, on the controller"
    )


class Settings(_Section):
    """Everything in slurm-budget.toml."""

    ledger: LedgerSettings = LedgerSettings()
    slurm: SlurmSettings = SlurmSettings()
    window: WindowSettings = WindowSettings()
    jobs: JobSettings = JobSettings()
    qos: QosSettings = QosSettings()
    sync: SyncSettings = SyncSettings()
    sweep: SweepSettings = SweepSettings()
    snapshot: SnapshotSettings = SnapshotSettings()
    hook: HookSettings = HookSettings()


def path_in_force(explicit: Path | None) -> Path | None:
    """The file to read: the one asked for, $SBUDGET_CONFIG, or /etc's if it is there."""
    if explicit is not None:
        return explicit
    if os.environ.get(ENVIRONMENT):
        return Path(os.environ[ENVIRONMENT])
    return DEFAULT_PATH if DEFAULT_PATH.exists() else None


def load(explicit: Path | None = None) -> Settings:
    """Read the settings. Raises BadInput that names file, line or key, the value and the fix."""
    path = path_in_force(explicit)
    if path is None:
        return Settings()
    try:
        _not_for_all(path)
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise BadInput(
            "the configuration file is not there",
            where=str(path),
            mend="create it, or unset --config",
        ) from None
    except (OSError, UnicodeDecodeError) as bad:
        raise BadInput(f"cannot be read: {bad}", where=str(path), mend="check its mode") from bad
    except (ValueError, RecursionError) as bad:
        raise BadInput(f"is not TOML: {bad}", where=str(path), mend="correct that line") from bad
    try:
        return Settings.model_validate(raw)
    except ValidationError as bad:
        raise BadInputs([_fault(path, error) for error in bad.errors()]) from None


def _not_for_all(path: Path) -> None:
    """slurm.bin says what root runs, ledger.admins who may change every budget."""
    if path.stat().st_mode & stat.S_IWOTH:
        raise BadInput(
            "everybody may write the configuration file",
            where=str(path),
            mend=f"look at what stands in it, then chmod o-w {path}",
        )


def _fault(path: Path, error: object) -> BadInput:
    assert isinstance(error, dict)
    keys = [str(part) for part in error["loc"]]
    name = ".".join(keys)
    if error["type"] == "extra_forbidden":
        model: type[BaseModel] = Settings
        for key in keys[:-1]:
            annotation = model.model_fields[key].annotation
            assert isinstance(annotation, type)
            model = annotation
        mend = meant(keys[-1], model.model_fields, f"known: {', '.join(model.model_fields)}")
        return BadInput(f"unknown setting {name}", where=str(path), mend=mend)
    return BadInput(
        f"{name} = {error['input']!r}: {str(error['msg']).removeprefix('Value error, ')}",
        where=str(path),
        mend="see etc/slurm-budget.toml for its type and default",
    )
