"""What a job asks for, read from the fields that job_submit.lua is handed.

The same fields reach us from Lua's job_desc and, as JSON, in `sbudget-admit`. Slurm says "not set"
in many ways (nil, 65534, 4294967294, 18446744073709551614, an empty text) and hands every number as
a float to newer Luas; all of that ends here. etc/sbudget.lua reads the same fields by the same
rules, and one table of cases runs through both.

GPUs of one array task, where N is the number of nodes (the most of a range, for a job given a
range takes as many as it gets) and T that of tasks (one a node where not said):

    --gpus=8                        tres_per_job     8, whatever else is said
    --gres=gpu:8, --gpus-per-node   tres_per_node    8 x N
    --gpus-per-task=2               tres_per_task    2 x T
    --gpus-per-socket=2             tres_per_socket  2 x sockets_per_node x N
    --ntasks-per-gpu=2              ntasks_per_tres  T / 2, where nothing above says it

Where several are given without `--gpus` they describe the same GPUs, and the largest counts. Shards
(`gres/shard`) are no GPUs: a budget is of whole ones or of MIG slices, which are types.

    >>> read({"tres_per_node": "gres/gpu:h100:4", "min_nodes": 2.0, "script": "#!"}).gpus
    {'h100': 8}
    >>> duration("1h30m"), duration("90"), duration("4:00:00"), duration("soon")
    (5400, 5400, 14400, None)
"""

import math
import re
from collections.abc import Mapping
from typing import NamedTuple

from slurm_budget.errors import BadInput
from slurm_budget.text import tres

UNLIMITED = math.inf
NO_VAL = 4294967294
_INFINITE = 4294967295
_NO_VAL16 = (65534, 65535, UNLIMITED)
MOST = 1_000_000_000
"""Counts above this are a mistake or an attack, and no request."""

_UNIT = {"s": 1, "sec": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}
_PIECE = re.compile(r"([0-9]{1,9})(?:\.([0-9]{1,3}))?([a-z]+)")
_CLOCK = re.compile(r"(?:([0-9]{1,9})-)?([0-9]{1,9})(?::([0-9]{1,9}))?(?::([0-9]{1,9}))?")
_DECLARED = re.compile(r"(?:^|[\s,;])min-runtime=([^\s,;]*)", re.ASCII)
_LONG_NUMBER = re.compile(r"[0-9]{10}")


class Request(NamedTuple):
    """One job as asked for. Times in seconds; names in lower case; None where nothing was said.

    `gpus` by type for one array task, `""` the type of those not named. `declared` is the minimum
    runtime, 0 for none wanted; `bad_declared` a text in its place that is no duration. `time_limit`
    is the partition's own where the job has none. `qos_given` is the QOS as it was spelled.
    """

    user: str
    account: str | None
    qos: str
    qos_given: str
    partitions: tuple[str, ...]
    gpus: Mapping[str, int]
    nodes: int
    multi_node: bool
    exclusive: bool
    at_once: int
    time_limit: float | None
    declared: int | None
    bad_declared: str | None
    has_time_min: bool
    requeue: bool | None
    batch: bool
    held: bool
    admin_comment: str
    one_node_possible: bool
    switch_given: bool


def read(job_desc: Mapping[str, object]) -> Request:
    """Raises BadInput where a text about GPUs or the array cannot be understood.

    Beside job_desc's own fields: `default_partition` (its partition when it names none),
    `default_time` and `max_time` of the partition in minutes, `batch` where `script` does not say.
    """
    field = _Fields(job_desc)
    min_nodes, max_nodes = field.count("min_nodes"), field.count("max_nodes")
    tasks, per_node = field.count("num_tasks"), field.count16("ntasks_per_node")
    nodes = max(min_nodes or 0, max_nodes or 0)
    if nodes == 0:
        nodes = -(-tasks // per_node) if tasks and per_node else 1
    comment_says, bad = _declared(field.text("comment"))
    minutes = field.minutes("time_min")
    declared = comment_says
    if declared is None and minutes is not None:
        # `--time-min=0` arrives as INFINITE: sbatch turns the 0 of every time option into that.
        declared = 0 if minutes == UNLIMITED else int(minutes) * 60
    qos, requeue = field.text("qos"), field.number16("requeue")
    return Request(
        user=field.text("user_name"),
        account=(field.text("account") or field.text("default_account")).lower() or None,
        qos=qos.lower(),
        qos_given=qos,
        partitions=tuple(
            name
            for name in (field.text("partition") or field.text("default_partition")).split(",")
            if name
        ),
        gpus=_gpus(field, nodes, tasks, per_node),
        nodes=nodes,
        multi_node=(min_nodes or nodes) > 1,
        exclusive=field.number("shared") == 0,
        at_once=_at_once(field.text("array_inx")),
        time_limit=_time_limit(field),
        declared=declared,
        bad_declared=bad,
        has_time_min=minutes is not None,
        requeue=None if requeue is None else requeue != 0,
        batch=_is_batch(field),
        held=field.number("priority") == 0,
        admin_comment=field.text("admin_comment"),
        one_node_possible=_one_node_possible(field, min_nodes, max_nodes, tasks),
        switch_given=bool(field.count("req_switch")),
    )


def duration(text: str) -> int | None:
    """Seconds of a minimum runtime: `90s`, `30m`, `30min`, `4h`, `1h30m`, `1.5h`, `1d`; a plain
    number is minutes and colons are as in `--time`, as everywhere in sbatch. None: it is none."""
    pieces = _PIECE.findall(text)
    if pieces and "".join(_PIECE.sub("", text).split()) == "":
        milli = 0
        for whole, part, unit in pieces:
            if unit not in _UNIT:
                return None
            milli += (int(whole) * 1000 + int(part.ljust(3, "0"))) * _UNIT[unit]
        return milli // 1000
    clock = _CLOCK.fullmatch(text)
    if clock is None:
        return None
    days, first, second, third = clock.groups()
    if days is not None:
        return int(days) * 86400 + int(first) * 3600 + int(second or 0) * 60 + int(third or 0)
    if third is not None:
        return int(first) * 3600 + int(second or 0) * 60 + int(third)
    return int(first) * 60 + int(second or 0)


def _declared(comment: str) -> tuple[int | None, str | None]:
    found = _DECLARED.search(comment)
    if found is None:
        return None, None
    seconds = duration(found[1].lower())
    return (seconds, None) if seconds is not None else (None, found[1])


class _Fields:
    """Reads fields so that every way of saying "not set" becomes None or an empty text."""

    def __init__(self, job_desc: Mapping[str, object]) -> None:
        self._desc = job_desc

    def text(self, name: str) -> str:
        value = self._desc.get(name)
        return value if isinstance(value, str) else ""

    def number(self, name: str) -> float | None:
        """A number of a 32-bit field, 0 or more; whole, or UNLIMITED."""
        value = self._desc.get(name)
        if not isinstance(value, int | float) or isinstance(value, bool):
            return None
        if not 0 <= value <= _INFINITE or value == NO_VAL:
            return None
        return UNLIMITED if value == _INFINITE else math.floor(value)

    def number16(self, name: str) -> float | None:
        """The same of a 16-bit field, whose "not set" is another number."""
        value = self.number(name)
        return None if value in _NO_VAL16 else value

    def count(self, name: str) -> int | None:
        """How many of something: 0, unlimited and absurd numbers are as good as not set."""
        value = self.number(name)
        return int(value) if value and value <= MOST else None

    def count16(self, name: str) -> int | None:
        return None if self.number16(name) is None else self.count(name)

    def minutes(self, name: str) -> float | None:
        return self.number(name)


def _gpus(field: _Fields, nodes: int, tasks: int | None, per_node: int | None) -> Mapping[str, int]:
    all_tasks = tasks or nodes * (per_node or 1)
    per_job = _spelled(field.text("tres_per_job"))
    if per_job:
        return per_job
    ways = (
        _times(_spelled(field.text("tres_per_task")), all_tasks),
        _times(_spelled(field.text("tres_per_node") or field.text("gres")), nodes),
        _times(
            _spelled(field.text("tres_per_socket")),
            nodes * (field.count16("sockets_per_node") or 1),
        ),
    )
    most = max(ways, key=tres.total)
    if most:
        return most
    per_gpu = field.count16("ntasks_per_tres") or field.count16("ntasks_per_gpu")
    return {tres.UNTYPED: -(-all_tasks // per_gpu)} if per_gpu else {}


def _spelled(text: str) -> dict[str, int]:
    if not text:
        return {}
    if _LONG_NUMBER.search(text):
        raise BadInput(f"GPU request {text!r} holds an absurd number", mend="ask for fewer GPUs")
    return tres.gpus(text)


def _times(counts: dict[str, int], factor: int) -> dict[str, int]:
    out = {kind: count * factor for kind, count in counts.items()}
    if tres.total(out) > MOST:
        raise BadInput(f"{tres.total(out)} GPUs are no request", mend="ask for fewer GPUs")
    return out


def _at_once(array: str) -> int:
    if not array:
        return 1
    if _LONG_NUMBER.search(array):
        raise BadInput(f"array {array!r} holds an absurd number", mend="write it like 0-9%4")
    from slurm_budget.text import jobids  # only for arrays: `sbudget-admit` must start fast

    at_once = jobids.array_tasks(array)[1]
    if at_once > MOST:
        raise BadInput(f"array {array!r} has too many tasks", mend="write it like 0-9%4")
    return max(at_once, 1)


def _time_limit(field: _Fields) -> float | None:
    """A job without `--time` gets its partition's DefaultTime, or else its MaxTime."""
    for name in ("time_limit", "default_time", "max_time"):
        minutes = field.minutes(name)
        if minutes is not None:
            return minutes * 60
    return None


def _is_batch(field: _Fields) -> bool:
    if isinstance(field._desc.get("batch"), bool):
        return field._desc["batch"] is True
    # Only the first component of a het job brings the script.
    return bool(field.text("script")) or bool(field.count("het_job_offset"))


def _one_node_possible(
    field: _Fields, min_nodes: int | None, max_nodes: int | None, tasks: int | None
) -> bool:
    """Whether only `--gpus` says what is needed, so that one node can hold it if it has the GPUs.

    With CPUs or memory per GPU, several tasks or named nodes it might not, and a job that was kept
    on one node would be refused where it could have run on two.
    """
    others = ("tres_per_node", "tres_per_task", "tres_per_socket", "cpus_per_tres", "mem_per_tres")
    return (
        bool(field.text("tres_per_job"))
        and not any(field.text(name) for name in (*others, "req_nodes"))
        and min_nodes is None
        and max_nodes is None
        and (tasks or 1) == 1
    )
