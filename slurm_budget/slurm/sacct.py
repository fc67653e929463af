"""Runs from sacct, live or from a dump in a file, as a stream in bounded memory.

Every start of a job is a row of its own (`-D`; without it a requeued job shows only its last), rows
are asked for with both ends of time, and no text that a user can write is asked for. AdminComment
comes last, so that whatever stands in it cannot shift a column.

A dump may be any output of `sacct -P` with the columns of NEEDED in its header, in any order, with
any separator; without a header it must have the columns of FIELDS. Rows of steps and of jobs that
never ran are passed over. A row that cannot be right becomes a BadRow; the others go on.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime

from slurm_budget.errors import BadInput
from slurm_budget.slurm import rows
from slurm_budget.slurm.command import Commands
from slurm_budget.slurm.rows import BadRow, Unusable
from slurm_budget.state.jobs import Run

SEPARATOR = "\x1f"
FIELDS = (
    *("JobIDRaw", "JobID", "Cluster", "User", "Account", "QOS", "Partition", "Submit", "Start"),
    *("End", "ElapsedRaw", "Suspended", "State", "AllocTRES", "NNodes", "Eligible", "TimelimitRaw"),
    "AdminComment",
)
NEEDED = ("JobIDRaw", "User", "Account", "QOS", "Start", "End", "State", "AllocTRES")
_FREE_TEXT = frozenset({"AdminComment", "Comment", "JobName", "SubmitLine", "WorkDir"})


def argv(since: int, until: int) -> tuple[str, ...]:
    """The command for all runs that were there between two epoch seconds."""
    ends = [datetime.fromtimestamp(t, UTC).strftime("%Y-%m-%dT%H:%M:%S") for t in (since, until)]
    return (
        *("sacct", "-a", "-D", "-X", "-P", "-n", f"--delimiter={SEPARATOR}"),
        *("-S", ends[0], "-E", ends[1], "-o", ",".join(FIELDS)),
    )


def runs(commands: Commands, cluster: str, since: int, until: int) -> Iterator[Run | BadRow]:
    """Runs of one cluster between two epoch seconds, as sacct tells them.

    Raises SlurmUnreachable at the end when sacct failed: nothing of what came may be kept then, so
    hand the iterator to one transaction.
    """
    with commands.stream(*argv(since, until)) as lines:
        for row in Reader(FIELDS, SEPARATOR).read(joined(lines)):
            if isinstance(row, BadRow) or row.cluster == cluster:
                yield row


def joined(lines: Iterable[str]) -> Iterator[tuple[int, str]]:
    """(line number, record): a line without any separator goes on with an AdminComment."""
    held, start = "", 0
    for number, line in enumerate(lines, 1):
        if SEPARATOR in line or not held:
            if held:
                yield start, held
            held, start = line, number
        else:
            held += line
    if held:
        yield start, held


def dump(lines: Iterable[str], where: str, cluster: str = "") -> Iterator[Run | BadRow]:
    """Runs from a dump; `cluster` is for dumps without that column.

    Raises BadInput when the first line shows that it is no dump of sacct that can be used.
    """
    source = enumerate(lines, 1)
    first = next((one for one in source if not _passed_over(one[1])), None)
    if first is None:
        return
    header = _header(first[1])
    if header is not None:
        yield from Reader(*header, cluster=cluster, where=where).read(source)
        return
    separator = next((s for s in (SEPARATOR, ";|;", "|") if s in first[1]), None)
    if separator is None:
        raise BadInput(
            "this is no dump of sacct: its first line has no columns",
            where=f"{where}:{first[0]}",
            mend="make one with `sacct -a -D -X -P -o " + ",".join(FIELDS) + "`",
        )
    reader = Reader(FIELDS, separator, cluster=cluster, where=where)
    yield from reader.read(_again(first, source))


def _passed_over(line: str) -> bool:
    return not line.strip() or line.startswith("#")


def _again(first: tuple[int, str], rest: Iterator[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    yield first
    yield from rest


def _header(line: str) -> tuple[tuple[str, ...], str] | None:
    """(columns, separator) of a header line; None where the line is none."""
    found = re.search(r"\bJobIDRaw\b", line)
    if found is None:
        return None
    parts = re.split(r"([^A-Za-z0-9/_%]+)", line.strip())
    separator = parts[1] if len(parts) > 1 else "|"
    return tuple(name.split("%")[0] for name in line.strip().split(separator)), separator


class Reader:
    """Reads rows of given columns. Made once for a dump: finding columns by name is done here."""

    def __init__(
        self, columns: Sequence[str], separator: str, *, cluster: str = "", where: str = "sacct"
    ) -> None:
        places = {name.lower(): place for place, name in enumerate(columns)}
        missing = [name for name in NEEDED if name.lower() not in places]
        if not cluster and "cluster" not in places:
            missing.append("Cluster")
        if missing:
            raise BadInput(
                f"the dump has no column {', '.join(missing)}",
                where=f"{where}:1",
                mend="make it with `sacct -a -D -X -P -o " + ",".join(FIELDS) + "`",
            )
        self.separator = separator
        self.width = len(columns)
        # a separator in the only column in which people write freely, if it is the last, does no
        # harm; anywhere else nobody can tell which cell it is in
        self._free = [name for name in columns if name in _FREE_TEXT]
        self.cuts = self.width - 1 if self._free == [columns[-1]] else -1
        self._cluster = cluster
        self._place = places

    def read(self, numbered: Iterable[tuple[int, str]]) -> Iterator[Run | BadRow]:
        """Runs and bad rows, in the order of the lines; nothing for steps and for jobs that never
        ran."""
        make = self._maker()
        separator, cuts, width = self.separator, self.cuts, self.width
        for number, line in numbered:
            text = line.rstrip("\r\n")
            cells = text.split(separator, cuts)
            if len(cells) != width:
                if _passed_over(text):
                    continue
                yield BadRow(number, self._miscounted(len(cells)), text)
                continue
            try:
                run = make(cells)
            except Unusable as bad:
                yield BadRow(number, str(bad), text)
                continue
            if run is not None:
                yield run

    def _miscounted(self, count: int) -> str:
        guess = " (torn?)" if count < self.width else ""
        if not guess and self._free:
            guess = f" (a {self.separator!r} in {' or '.join(self._free)}?)"
        return f"{count} columns instead of {self.width}{guess}"

    def _maker(self) -> Callable[[list[str]], Run | None]:
        place = self._place
        always = {name: place[name.lower()] for name in NEEDED}
        raw, user, account, qos = (always[n] for n in ("JobIDRaw", "User", "Account", "QOS"))
        start, end, state, alloc = (always[n] for n in ("Start", "End", "State", "AllocTRES"))
        cluster, partition, submit, elapsed, suspended, nodes, eligible, limit, comment = (
            place.get(name)
            for name in (
                *("cluster", "partition", "submit", "elapsedraw", "suspended", "nnodes"),
                *("eligible", "timelimitraw", "admincomment"),
            )
        )

        def make(cells: list[str]) -> Run | None:
            began = rows.moment(cells[start], "Start")
            word = rows.state(cells[state])
            if began is None or "." in cells[raw] or word == "PENDING":
                return None
            job_id = rows.number(cells[raw], "JobIDRaw")
            ended = rows.moment(cells[end], "End")
            if ended is not None and ended < began:
                raise Unusable(f"it ends {began - ended} s before it starts")
            took = None if elapsed is None else rows.seconds(cells[elapsed], "ElapsedRaw")
            if took is not None and took < 0:
                raise Unusable(f"ElapsedRaw {took} is below zero")
            if suspended is not None:
                idle = rows.seconds(cells[suspended], "Suspended")
            else:
                idle = 0 if took is None or ended is None else max(ended - began - took, 0)
            if idle < 0:
                raise Unusable(f"Suspended {idle} is below zero")
            asked = None if submit is None else rows.moment(cells[submit], "Submit")
            in_qos = cells[qos]
            return Run(
                cells[cluster] if cluster is not None else self._cluster,
                job_id,
                began,
                ended,
                began if asked is None else asked,
                cells[user],
                cells[account].lower(),
                in_qos,
                "" if partition is None else cells[partition],
                word,
                rows.gpus(cells[alloc]),
                0 if nodes is None else rows.number(cells[nodes] or "0", "NNodes"),
                idle,
                rows.class_of(in_qos, "" if comment is None else cells[comment]),
                None if comment is None else rows.min_runtime(cells[comment]),
                None if eligible is None else rows.moment(cells[eligible], "Eligible"),
                None if limit is None else rows.minutes(cells[limit]),
            )

        return make


def good(found: Iterable[Run | BadRow], bad: list[BadRow]) -> Iterator[Run]:
    """The runs; bad rows are put into `bad`."""
    for row in found:
        if isinstance(row, Run):
            yield row
        else:
            bad.append(row)
