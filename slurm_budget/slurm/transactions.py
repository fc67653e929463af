"""slurmdbd's transaction log by `sacctmgr show transaction`: who changed what when."""

from datetime import UTC, datetime

from slurm_budget.slurm.command import Commands, checked
from slurm_budget.state.slurm import Transaction

FORMAT = "time,action,actor,where,info"


def parse(text: str) -> list[Transaction]:
    """Lines that are none are left out: `where` and `info` are SQL and may hold anything, so the
    last value takes what is over."""
    out = []
    for line in text.splitlines():
        parts = [part.strip() for part in line.split("|", 4)]
        if len(parts) < 5:
            continue
        at = _moment(parts[0])
        if at is not None:
            out.append(Transaction(at, parts[1], parts[2], parts[3], parts[4]))
    return sorted(out, key=lambda item: item.at)


def _moment(text: str) -> int | None:
    if text.isdigit():
        return int(text)
    try:
        return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())
    except ValueError:
        return None


def read(commands: Commands, since: int) -> list[Transaction]:
    """Since an epoch second, oldest first. Times go both ways in UTC, which Commands sets."""
    start = datetime.fromtimestamp(since, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    reply = commands.run(
        "sacctmgr", "-nP", "show", "transaction", "where", f"start={start}", f"format={FORMAT}"
    )
    return parse(checked(reply))
