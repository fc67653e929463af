"""Values that Slurm's commands print: its words for nothing, and node lists."""

from ClusterShell.NodeSet import NodeSet, NodeSetException

from slurm_budget.errors import BadInput

_NONE = frozenset({"", "N/A", "NONE", "UNKNOWN", "(NULL)"})


def said(value: str) -> str:
    """The value without the blanks around it; empty for Slurm's words for nothing."""
    return "" if value.strip().upper() in _NONE else value.strip()


def nodes(text: str) -> tuple[str, ...]:
    """The names in a Slurm node list such as `n[1-3,7]`. Raises BadInput for what is none."""
    value = said(text)
    if not value or value.startswith("("):
        return ()
    try:
        return tuple(NodeSet(value))
    except NodeSetException as bad:
        raise BadInput(f"{value!r} is no node list: {bad}") from None
