"""For scripts that need this project's packages, by whatever Python they are started."""

import os
import sys
from pathlib import Path

PYTHON = Path(__file__).resolve().parent.parent / ".venv" / "bin" / "python"


def enter() -> None:
    """Start the script again by the Python of .venv, where there is one and this is none."""
    if sys.prefix == sys.base_prefix and PYTHON.exists():
        os.execv(PYTHON, [str(PYTHON), *sys.argv])
