"""For scripts that need this project's packages, by whatever Python they are started."""

import compileall
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTHON = ROOT / ".venv" / "bin" / "python"


def enter() -> None:
    """Start the script again by the Python of .venv, where there is one and this is none.

    Our modules are compiled first, as pip leaves them when it installs: where Python is kept from
    writing bytecode, every start of ours would be timed with its compiler.
    """
    if sys.prefix == sys.base_prefix and PYTHON.exists():
        os.execv(PYTHON, [str(PYTHON), *sys.argv])
    compileall.compile_dir(ROOT / "slurm_budget", quiet=1)
