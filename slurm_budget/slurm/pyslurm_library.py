"""Loads pyslurm, once it is certain that it fits the Slurm of this machine.

It is C code that knows the layout of libslurm's structures: with another version it would not fail
but read nonsense or crash. So the version is compared before the first import, by what pip has
written down, and nothing falls back to the commands in silence.
"""

import importlib
import os
from importlib.metadata import PackageNotFoundError, version
from types import ModuleType

from slurm_budget.errors import BadInput
from slurm_budget.slurm import versions
from slurm_budget.slurm.command import Commands, checked

_WHERE = "slurm.backend"
_OR = 'or set slurm.backend = "commands"'


def load(commands: Commands) -> ModuleType:
    """The module `pyslurm`, reading the same slurm.conf as the commands do. Raises BadInput where
    it is not there, is of another version, or cannot be loaded."""
    answer = checked(commands.run("scontrol", "-V"), silent_ok=False).strip()
    installed = _installed(versions.parse(answer))
    _check(answer, installed)
    conf = commands.conf_in_force()
    if not conf.exists():
        # libslurm would end this process
        raise BadInput("pyslurm needs slurm.conf", where=str(conf), mend=f"set slurm.conf, {_OR}")
    os.environ["SLURM_CONF"] = str(conf)
    os.environ["SLURM_BITSTR_LEN"] = commands.environment()["SLURM_BITSTR_LEN"]
    try:
        library = importlib.import_module("pyslurm")
    except ImportError as bad:
        raise BadInput(
            f"pyslurm cannot be loaded: {bad}",
            where=_WHERE,
            mend=f"build it again on this machine (pip install --no-binary pyslurm), {_OR}",
        ) from bad
    if versions.pyslurm(library.__version__) != versions.pyslurm(installed):
        raise BadInput(
            f"pyslurm {library.__version__} is loaded, and {installed} is installed now",
            where=_WHERE,
            mend="restart this program",
        )
    return library


def _installed(slurm: versions.Version) -> str:
    try:
        return version("pyslurm")
    except PackageNotFoundError:
        raise BadInput(
            "pyslurm is not installed",
            where=_WHERE,
            mend=f"install pyslurm {slurm[0]}.{slurm[1]}, which is for Slurm"
            f" {versions.spelled(slurm)} (docs/operations.md), {_OR}",
        ) from None


def _check(slurm: str, installed: str) -> None:
    here, made_for = versions.parse(slurm), versions.pyslurm(installed)
    if here != made_for or here == versions.UNKNOWN:
        raise BadInput(
            f"pyslurm {installed} is for Slurm {versions.spelled(made_for)},"
            f" and this machine has {slurm}",
            where=_WHERE,
            mend=f"install pyslurm {here[0]}.{here[1]}, {_OR}",
        )
