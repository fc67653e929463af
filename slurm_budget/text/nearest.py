"""The name that somebody meant who mistyped one."""

import difflib
from collections.abc import Iterable


def meant(word: str, names: Iterable[str], otherwise: str) -> str:
    """`did you mean vision?`, or `otherwise` where no name is near; in any case.

    >>> meant("Visoin", ["vision", "language"], "see `sbudget budget tree`")
    'did you mean vision?'
    """
    folded = {name.lower(): name for name in names}
    near = difflib.get_close_matches(word.lower(), folded, n=1)
    return f"did you mean {folded[near[0]]}?" if near else otherwise


def listed(names: Iterable[str], most: int = 10) -> str:
    """Names in order, the first `most` of them; `none` where there is none."""
    every = sorted(names)
    more = f" and {len(every) - most} more" if len(every) > most else ""
    return (", ".join(every[:most]) or "none") + more
