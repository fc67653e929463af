"""Job ids: arrays, het jobs and steps, and how many tasks an id stands for.

>>> parse("57_[5-100%4]").tasks, parse("57_[5-100%4]").at_once
(96, 4)
>>> parse("123.extern").step
'extern'
"""

import re
from dataclasses import dataclass

from slurm_budget.errors import BadInput

_ID = re.compile(
    r"(?P<base>\d+)(?:_(?:\[(?P<set>[^\]]*)\]?|(?P<task>\d+)))?(?:\+(?P<het>\d+))?(?:\.(?P<step>[\w]+))?",
    re.ASCII,
)
_RANGE = re.compile(r"(\d+)(?:-(\d+)(?::(\d+))?)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class JobId:
    """One id as Slurm prints it. `tasks` is how many jobs it stands for; a step stands for none."""

    base: int
    array: str | None
    het: int | None
    step: str | None
    tasks: int
    at_once: int


def array_tasks(text: str) -> tuple[int, int]:
    """(tasks, how many may run at once) of an array expression such as `0-15:4%2`.

    An expression that Slurm cut short (`1,3,...`) counts what is there.
    """
    body, _, throttle = text.partition("%")
    count = 0
    for piece in body.split(","):
        if piece in ("", "..."):
            continue
        match = _RANGE.fullmatch(piece.strip())
        if match is None:
            raise BadInput(
                f"array expression {text!r} has a bad part {piece!r}", mend="write it like 0-9%4"
            )
        first, last, step = int(match[1]), int(match[2] or match[1]), int(match[3] or 1)
        if last < first or step == 0:
            raise BadInput(
                f"array expression {text!r} has a bad part {piece!r}", mend="write it like 0-9%4"
            )
        count += (last - first) // step + 1
    limit = int(throttle) if re.fullmatch(r"0*[1-9]\d*", throttle, re.ASCII) else count
    return count, min(limit, count)


def holds(tasks: str, task: JobId) -> bool:
    """Whether an array expression such as `3-9:2%4` has the task of an id such as `57_5`. One that
    Slurm cut short (`1,3,...`) has whatever it does not show."""
    if task.array is None or not task.array.isdigit():
        return tasks == task.array
    number = int(task.array)
    for piece in tasks.partition("%")[0].split(","):
        match = _RANGE.fullmatch(piece.strip())
        if match is None:
            if piece.strip() == "...":
                return True
            continue
        first, last, step = int(match[1]), int(match[2] or match[1]), int(match[3] or 1)
        if first <= number <= last and (number - first) % max(step, 1) == 0:
            return True
    return False


def parse(text: str) -> JobId:
    """Read one id; raises BadInput when it is none."""
    match = _ID.fullmatch(text.strip())
    if match is None:
        raise BadInput(
            f"{text!r} is not a Slurm job id", mend="expected 123, 123_4, 123_[0-9], 123+1"
        )
    tasks = at_once = 1
    if match["set"] is not None:
        tasks, at_once = array_tasks(match["set"])
    if match["step"] is not None:
        tasks = at_once = 0
    return JobId(
        base=int(match["base"]),
        array=match["set"] if match["set"] is not None else match["task"],
        het=int(match["het"]) if match["het"] is not None else None,
        step=match["step"],
        tasks=tasks,
        at_once=at_once,
    )
