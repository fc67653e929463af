"""TRES and GRES texts: how many whole GPUs of which type.

Slurm spells a GPU in many ways: `gres/gpu:h100=4,gres/gpu=4` (accounting; typed and untyped both
stand there and mean the same four), `gpu:h100:4(IDX:0-3)` (node detail), `gres:gpu:8` (requests in
22.05), `gres/gpu:8` and `gres/gpu=1` (requests later). `gres/gpumem` and `gres/gpuutil` are
measurements and no GPUs. A MIG slice is a type of its own and counts as one of it.

    >>> gpus("billing=78,cpu=48,gres/gpu:a100_80=4,gres/gpu=4,mem=384G,node=1")
    {'a100_80': 4}
    >>> gpus("gres:gpu:8")
    {'': 8}
"""

import re

from slurm_budget.errors import BadInput

UNTYPED = ""
"""The type of a GPU that was not named."""

_ITEM = re.compile(
    r"""^(?:gres[:/])?gpu            # the name; gpumem and gpuutil do not match
        (?::(?P<type>[^=:,()]*[^=:,()\d][^=:,()]*      # h100, a100_3g.20gb
                   |[^=:,()]+(?=[:=])))?              # 4090:2: digits alone need a count behind
        (?:[:=](?P<count>\d+(?:\.\d+)?)(?P<suffix>[kKmM]?))?
        (?:\([^)]*\))?$""",
    re.VERBOSE | re.ASCII,
)
_SUFFIX = {"": 1, "k": 1024, "m": 1024 * 1024}


def split_items(text: str) -> list[str]:
    """Cut at commas, but not inside `(IDX:0-3,5)`."""
    return [item for item in re.split(r",(?![^(]*\))", text) if item]


def gpus(text: str | None) -> dict[str, int]:
    """GPUs by type in `text`; the key of an untyped GPU is `""`; types with 0 are left out.

    Where typed and untyped stand side by side, the untyped figure is the sum of all and adds only
    what the types do not explain. Raises BadInput for a text that was cut off (`...,node=`), since
    half an answer must not be read as a small one.
    """
    if text is None or text.strip() in ("", "N/A", "(null)", "None"):
        return {}
    if text.rstrip()[-1] in "=,:":
        raise BadInput(f"TRES text {text!r} is cut off", mend="ask Slurm for the whole field")
    typed: dict[str, int] = {}
    untyped = 0
    for item in split_items(text.strip()):
        match = _ITEM.match(item.strip())
        if match is None:
            continue
        count = int(
            float(match["count"] or 1) * _SUFFIX[match["suffix"].lower() if match["suffix"] else ""]
        )
        if match["type"]:
            typed[match["type"]] = typed.get(match["type"], 0) + count
        else:
            untyped += count
    rest = untyped - sum(typed.values())
    if rest > 0:
        typed[UNTYPED] = rest
    return {kind: count for kind, count in typed.items() if count}


def total(counts: dict[str, int]) -> int:
    """Whole GPUs of all types."""
    return sum(counts.values())


def limits(text: str) -> dict[str, str]:
    """`gres/gpu=8,node=2` as a mapping; values stay text (limits may hold `-1` or suffixes)."""
    pairs = (item.partition("=") for item in split_items(text.strip()))
    return {name.strip().lower(): value.strip() for name, _, value in pairs if name.strip()}


_MEM_MB = {"": 1, "k": 1 / 1024, "m": 1, "g": 1024, "t": 1024**2, "p": 1024**3}


def canonical(text: str) -> str:
    """One spelling for equal limits: sorted, memory in MB without suffix, `2000M` is `2000`.

    `canonical(canonical(x)) == canonical(x)`, so what we write and what Slurm answers compare.
    """
    out = []
    for name, value in sorted(limits(text).items()):
        match = re.fullmatch(r"(\d+(?:\.\d+)?)([kKmMgGtTpP]?)", value)
        if match and name in ("mem", "bb/datawarp"):
            value = f"{float(match[1]) * _MEM_MB[match[2].lower()]:g}"
        elif match and match[2].lower() in ("k", "m"):
            value = f"{int(float(match[1]) * _SUFFIX[match[2].lower()])}"
        out.append(f"{name}={value}")
    return ",".join(out)
