"""What a YAML file must not hold, whoever wrote it: looked at before anything is made of it.

Tags make no objects here: ruamel's round-trip reader keeps them as text.
"""

from typing import Any

from ruamel.yaml import YAML

from slurm_budget.errors import BadInput

MOST_NODES = 1_000_000
"""Values in a file, aliases written out; 10,000 users with all they may have are a tenth of it."""
LONGEST_NUMBER = 100


def check(root: Any, where: str) -> None:
    """Refuse an alias that points to something it stands in, a few aliases of aliases that stand
    for billions of values, dates and numbers that are none. `root` is what `compose` gives."""
    sizes: dict[int, int] = {}

    def size(node: Any) -> int:
        """Values that it stands for, each alias counted as what it means."""
        if isinstance(node.value, str):
            _scalar(node, where)
            return 1
        if id(node) not in sizes:
            sizes[id(node)] = 0  # while it is being counted
            parts = [p for i in node.value for p in (i if isinstance(i, tuple) else (i,))]
            sizes[id(node)] = 1 + sum(map(size, parts))
        if sizes[id(node)] == 0:
            raise BadInput(
                "the account that starts here contains itself (a cycle)",
                where=_at(node, where),
                mend="remove the YAML alias that points back to it",
            )
        if sizes[id(node)] > MOST_NODES:
            raise BadInput(
                f"what starts here stands for more than {MOST_NODES:,} values",
                where=_at(node, where),
                mend="write names out in place of aliases of aliases",
            )
        return sizes[id(node)]

    if root is not None:
        size(root)


def _at(node: Any, where: str) -> str:
    return f"{where}:{node.start_mark.line + 1}:{node.start_mark.column + 1}"


def _scalar(node: Any, where: str) -> None:
    """Refuse 2027-13-01 and a number of 5,000 digits here, where their place is known; the reader
    knows no place."""
    tag = str(node.tag or "")
    if tag.endswith((":int", ":float")) and len(node.value) > LONGEST_NUMBER:
        raise BadInput(
            f"{node.value[:40]}... is a number of {len(node.value)} digits",
            where=_at(node, where),
            mend="write a smaller whole number",
        )
    if not tag.endswith(":timestamp"):
        return
    try:
        YAML(typ="safe").load(node.value)
    except ValueError as bad:
        raise BadInput(
            f"{node.value} is no date: {bad}",
            where=_at(node, where),
            mend="write it like 2026-03-01 or 2026-03-01T12:00:00Z",
        ) from None
