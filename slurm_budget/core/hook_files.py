"""The files of the submit hook: what is to stand where, from what stands there now. Pure.

slurmctld loads one file, job_submit.lua beside slurm.conf. Where a site has none, our loader stands
there ("alone"). Where it has one, that stays, gets one line that loads our loader from our folder
("chained"), and loses that line again without a trace. Files are bytes that nobody promised to be
UTF-8, so they are text with surrogates here (`text_of`, `bytes_of`).
"""

import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from slurm_budget.errors import BadInput

LOADER, LOGIC = "job_submit.lua", "sbudget.lua"
Mode = Literal["none", "alone", "chained", "site"]
"""What job_submit.lua beside slurm.conf is: not there, ours, a site's with ours, a site's alone."""

PASS = """\
-- slurm-budget's submit hook was removed. While slurm.conf has JobSubmitPlugins=lua, slurmctld does
-- not start without this file; it lets every job pass.
function slurm_job_submit() return slurm.SUCCESS end
function slurm_job_modify() return slurm.SUCCESS end
return slurm.SUCCESS
"""
_HEAD = "-- slurm-budget's submit hook"
_MARK = "-- slurm-budget"
_BLOCK = re.compile(r"(^local settings = \{\n)(.*?)(^\})", re.MULTILINE | re.DOTALL)
_SETTING = re.compile(r"""(\s*)(\w+) = ("[^"]*"|\{[^{}]*\}|[^\s,"{}]+),?\s*(--.*)?""")


@dataclass(frozen=True, slots=True)
class Places:
    """`slurm` is job_submit.lua beside slurm.conf, `folder` where our own files go."""

    slurm: Path
    folder: Path

    @property
    def logic(self) -> Path:
        return self.folder / LOGIC

    @property
    def loader(self) -> Path:
        return self.folder / LOADER


@dataclass(frozen=True, slots=True)
class Sources:
    """Our two files as they were shipped."""

    logic: bytes
    loader: bytes


@dataclass(frozen=True, slots=True)
class Found:
    """What stands in the places now; None: nothing."""

    slurm: bytes | None = None
    loader: bytes | None = None
    logic: bytes | None = None


@dataclass(frozen=True, slots=True)
class Layout:
    """What is to stand where (None: nothing), in the order of writing."""

    mode: Mode
    files: Mapping[Path, bytes | None]


def text_of(blob: bytes) -> str:
    return blob.decode("utf-8", "surrogateescape")


def bytes_of(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def checksum(blob: bytes) -> str:
    """Adler-32, as the loader counts it."""
    return f"{zlib.adler32(blob):08x}"


def version(logic: bytes) -> str:
    """The VERSION of sbudget.lua; `nil` where it has none, which is what its loader logs."""
    found = re.search(r'^M\.VERSION = "([^"]*)"', text_of(logic), re.MULTILINE)
    return found[1] if found else "nil"


def mode(slurm: bytes | None, places: Places) -> Mode:
    if slurm is None or slurm == PASS.encode():
        return "none"
    text = text_of(slurm)
    if text.startswith(_HEAD):
        return "alone"
    return "chained" if any(_ours(line, places.loader) for line in text.split("\n")) else "site"


def installed(sources: Sources, found: Found, places: Places, snapshot: Path) -> Layout:
    """The files with our hook. What a site set in its loader stays, but for the two paths.
    job_submit.lua beside slurm.conf comes last, since slurmctld looks at nothing else.

    Raises BadInput for paths and settings that cannot be written into the loader.
    """
    given = {"logic": _quoted(places.logic), "snapshot": _quoted(snapshot)}
    if mode(found.slurm, places) in ("none", "alone"):
        kept = kept_settings(found.slurm, places.slurm)
        loader = with_settings(sources.loader, kept | given)
        return Layout("alone", {places.logic: sources.logic, places.slurm: loader})
    if places.loader == places.slurm:
        raise BadInput(
            "the site's own job_submit.lua stands where our loader would",
            where=str(places.slurm),
            mend="name another folder with --folder or hook.folder",
        )
    assert found.slurm is not None
    kept = kept_settings(found.loader, places.loader)
    files: dict[Path, bytes | None] = {
        places.logic: sources.logic,
        places.loader: with_settings(sources.loader, kept | given),
        places.slurm: bytes_of(chain(text_of(found.slurm), places.loader)),
    }
    return Layout("chained", files)


def removed(found: Found, places: Places, *, needed: bool) -> Layout:
    """The files without our hook. `needed`: slurm.conf names the Lua plugin, so that slurmctld does
    not start without a job_submit.lua."""
    now = mode(found.slurm, places)
    files: dict[Path, bytes | None] = {}
    if now in ("none", "alone"):
        files[places.slurm] = PASS.encode() if needed and found.slurm is not None else None
    elif now == "chained":
        assert found.slurm is not None
        files[places.slurm] = bytes_of(unchain(text_of(found.slurm), places.loader))
    if places.loader != places.slurm:
        files[places.loader] = None
    files[places.logic] = None
    return Layout("none" if now in ("none", "alone") else "site", files)


def chain(text: str, loader: Path) -> str:
    """A site's script with our line: its last but one, or its last where it returns nothing."""
    wanted = f"dofile({_quoted(loader)}) {_MARK}"
    lines = text.split("\n")
    if any(_ours(line, loader) and f"{loader}" in line for line in lines):
        return text
    lines = [line for line in lines if not _ours(line, loader)]
    code = [at for at, line in enumerate(lines) if line.strip() and not line.startswith("--")]
    if code and re.match(r"return\b", lines[code[-1]]):
        lines.insert(code[-1], wanted)
    elif lines[-1] == "":
        lines.insert(len(lines) - 1, wanted)
    else:
        lines.append(wanted)
    return "\n".join(lines)


def unchain(text: str, loader: Path) -> str:
    """The script without our line; `unchain(chain(text)) == text`."""
    return "\n".join(line for line in text.split("\n") if not _ours(line, loader))


def _ours(line: str, loader: Path) -> bool:
    code = line.strip()
    named = f'"{loader}"' in code or f"'{loader}'" in code
    return re.match(r"dofile\b", code) is not None and (named or code.endswith(" " + _MARK))


def kept_settings(loader: bytes | None, where: Path) -> dict[str, str]:
    """Lua values by name of a loader's table; empty where there is no loader. Raises BadInput."""
    block = _BLOCK.search(text_of(loader)) if loader is not None else None
    out = {}
    for line in block[2].split("\n") if block else ():
        if not line.strip() or line.strip().startswith("--"):
            continue
        found = _SETTING.fullmatch(line)
        if found is None:
            raise BadInput(
                f"this setting cannot be taken over: {line.strip()!r}",
                where=str(where),
                mend="write each setting as `name = value,` on one line of its own",
            )
        out[found[2]] = found[3]
    return out


def with_settings(loader: bytes, values: Mapping[str, str]) -> bytes:
    """A loader with these Lua values in its table; names that it does not know are left out."""

    def line(text: str) -> str:
        found = _SETTING.fullmatch(text)
        if found is None or text.strip().startswith("--") or found[2] not in values:
            return text
        return f"{found[1]}{found[2]} = {values[found[2]]},"

    def block(found: re.Match[str]) -> str:
        return found[1] + "\n".join(map(line, found[2].split("\n"))) + found[3]

    return bytes_of(_BLOCK.sub(block, text_of(loader), count=1))


def _quoted(path: Path) -> str:
    text = str(path)
    if not path.is_absolute() or any(char in text for char in "\"'\\\n\r\0"):
        raise BadInput(
            f"{text!r} cannot be named in a Lua file",
            mend="give an absolute path without quotes and backslashes",
        )
    return f'"{text}"'
