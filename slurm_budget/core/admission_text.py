"""What a user reads at sbatch: one or two lines, in plain words, with numbers.

GPU-time comes in weighted GPU-milliseconds and is written in GPU-hours: what is left is rounded
down and what is needed is rounded up, so that "4 left, 4 needed" is never a refusal. Every line
here stands in etc/sbudget.lua too, word for word.
"""

from slurm_budget.text import gputime
from slurm_budget.text.spoken import spoken

PREFIX = "sbudget: "
LONGEST_QUOTE = 24


def gpu_hours(ms: int, *, up: bool = False) -> str:
    """As everywhere (`2,688`, `0.125`), but less than 0 is `0`: nothing is left."""
    return gputime.gpu_hours(max(ms, 0), up=up)


def quoted(text: str) -> str:
    """A user's own words, cut, and without anything that a terminal would obey."""
    data = text.encode(errors="surrogateescape")[:LONGEST_QUOTE]
    return '"' + "".join(chr(byte) if 32 <= byte < 127 else "?" for byte in data) + '"'


def funded(seconds: int, declared: int | None, label: str, left: int, budget: int) -> str:
    cut = f", the longest there is ({spoken(declared)} asked)," if declared else ""
    return (
        f"funded; protected for {spoken(seconds)}{cut} from {label}"
        f" ({gpu_hours(left)} of {gpu_hours(budget)} GPU-hours left)."
    )


def fast_lane(seconds: int, label: str, left: int) -> str:
    return (
        f"funded as a small job; protected for {spoken(seconds)} from {label}"
        f" ({gpu_hours(left)} GPU-hours left for small jobs)."
    )


def asked() -> tuple[str, ...]:
    return ("preemptible, as asked: free, on idle GPUs; makes way for funded jobs.",)


def default() -> tuple[str, ...]:
    return (
        "preemptible: free, on idle GPUs; makes way for funded jobs;"
        " to be protected, add --qos=funded and --time-min.",
    )


def no_gpus() -> str:
    return "not funded, because the job asks for no GPU and budgets are of GPUs."


def no_account(account: str | None) -> tuple[str, ...]:
    if account is None:
        return ("preemptible, because the job names no account and you have no default one.",)
    return (
        f"preemptible, because account {quoted(account)[1:-1]} has no GPU budget;"
        " its managers can ask for one.",
    )


def wrong_type(account: str, gres: str) -> tuple[str, ...]:
    return (f"preemptible, because {account}'s budget is for {gres} only.",)


def unrequeueable(batch: bool, limit: float, seconds: int, cap: int) -> tuple[str, ...]:
    what = "a job that cannot be requeued" if batch else "an interactive job"
    return (
        f"preemptible, because {what} is funded only when its whole time limit"
        f" ({spoken(limit)}) is protected, and {spoken(seconds)} would be.",
        f"to be funded: a lower --time, or a --time-min as long (at most {spoken(cap)}).",
    )


def blind() -> tuple[str, ...]:
    return (
        "preemptible for now, because the budgets cannot be read at the moment.",
        "it becomes funded while it waits, as soon as they can and allow it.",
    )


def exhausted(
    label: str, left: int, budget: int, cost: int, back_in: int | None
) -> tuple[str, ...]:
    return (
        f"preemptible for now: {out_of(label, left, budget, cost, back_in)}",
        "it may run on idle GPUs; while it waits, it becomes funded as soon as the budget allows.",
    )


def held(label: str, left: int, budget: int, cost: int, back_in: int | None) -> tuple[str, ...]:
    return (
        f"held: {out_of(label, left, budget, cost, back_in)}",
        "it is released when the budget allows; `scontrol release` runs it preemptible at once.",
    )


def rejected(label: str, left: int, budget: int, cost: int, back_in: int | None) -> tuple[str, ...]:
    return (
        f"rejected: {out_of(label, left, budget, cost, back_in)}",
        "with --qos=preemptible it would run on idle GPUs.",
    )


def out_of(label: str, left: int, budget: int, cost: int, back_in: int | None) -> str:
    """Whose budget has too little left, with the numbers; `back_in` in seconds."""
    back = "" if back_in is None else f"; more is back in {spoken(max(back_in, 0))}"
    return (
        f"{label} has {gpu_hours(left)} of {gpu_hours(budget)} GPU-hours left,"
        f" this job needs {gpu_hours(cost, up=True)}{back}."
    )


def never(word: str, label: str, budget: int, cost: int) -> tuple[str, ...]:
    return (
        f"{word}: its protection costs {gpu_hours(cost, up=True)} GPU-hours,"
        f" more than {label} of {gpu_hours(budget)}; it will never be funded so.",
        "to be funded: fewer GPUs, fewer array tasks at once (%), or a shorter --time-min.",
    )


def bad_duration(text: str) -> str:
    return (
        f"min-runtime={quoted(text)} in --comment is no time (write 4h, 90min or 4:00:00); ignored."
    )


def whole_nodes(gpus: int) -> str:
    return f"whole nodes were asked for, so all their GPUs count: {gpus:,}."
