"""Where the files lie that come with the code: sql/ and etc/.

In a checkout they stand beside the package. In an installed wheel they are data files of the
distribution (share/slurm-budget/sql, share/slurm-budget/etc).
"""

from functools import cache
from importlib import metadata
from pathlib import Path

from slurm_budget.errors import SbudgetError


@cache
def folder(name: str, sign: str) -> Path:
    """The folder `name`, known by the file `sign` (a path within it).

    Raises SbudgetError where it was not installed.
    """
    above = Path(__file__).parents[1]
    # a checkout; beside the package (`pip install --target`); where the wheel's record says
    places = [above / name, above / "share" / "slurm-budget" / name]
    parts = ("slurm-budget", name, *Path(sign).parts)
    for file in metadata.files("slurm-budget") or ():
        if file.parts[-len(parts) :] == parts:
            places.append(Path(str(file.locate())).resolve().parents[len(parts) - 3])
    for place in places:
        if (place / sign).exists():
            return place
    raise SbudgetError(
        f"{name}/{sign} was not installed with this program",
        mend="install slurm-budget again from its wheel or its checkout",
    )
