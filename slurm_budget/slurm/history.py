"""What the accounting knows of one job: every start of it, and jobs that never started too."""

import pwd
from collections.abc import Iterator
from datetime import UTC, datetime

from slurm_budget.slurm import rows, sacct
from slurm_budget.slurm.command import Commands, checked
from slurm_budget.state.answers import Past

FIELDS = (
    *("JobIDRaw", "JobID", "User", "Account", "QOS", "State", "Submit", "Start", "End"),
    *("AllocTRES", "NodeList", "ExitCode", "AdminComment"),
)


def of_job(commands: Commands, job: str, since: int, until: int) -> list[Past]:
    """Rows of a job as sacct names it (123, 123_4, 123+1), oldest first.

    Raises SlurmUnreachable. A user to whom sacct does not show the job has no rows.
    """
    ends = [datetime.fromtimestamp(t, UTC).strftime("%Y-%m-%dT%H:%M:%S") for t in (since, until)]
    reply = commands.run(
        "sacct", "-a", "-D", "-X", "-P", "-n", f"--delimiter={sacct.SEPARATOR}",
        "-j", job, "-S", ends[0], "-E", ends[1], "-o", ",".join(FIELDS),
    )  # fmt: skip
    return sorted(parse(checked(reply)), key=lambda row: (row.submit, row.start or row.submit))


def parse(text: str) -> Iterator[Past]:
    """Rows of a reply; what is no row of a job is passed over."""
    for _, line in sacct.joined(text.splitlines(keepends=True)):
        cells = dict(zip(FIELDS, line.rstrip("\n").split(sacct.SEPARATOR), strict=False))
        if len(cells) < len(FIELDS):
            continue
        try:
            word = rows.state(cells["State"])
            yield Past(
                id=rows.number(cells["JobIDRaw"], "JobIDRaw"),
                label=cells["JobID"],
                user=cells["User"],
                account=cells["Account"].lower(),
                qos=cells["QOS"],
                state=word,
                submit=rows.moment(cells["Submit"], "Submit") or 0,
                start=rows.moment(cells["Start"], "Start") if word != "PENDING" else None,
                end=rows.moment(cells["End"], "End"),
                gpus=rows.gpus(cells["AllocTRES"]),
                nodes="" if cells["NodeList"] == "None assigned" else cells["NodeList"],
                exit_code=cells["ExitCode"],
                by=_user(cells["State"].partition(" by ")[2]),
                admin_comment=cells["AdminComment"],
            )
        except rows.Unusable:
            continue


def _user(uid: str) -> str:
    """The name of `1000` in `CANCELLED by 1000`."""
    try:
        return pwd.getpwuid(int(uid)).pw_name if uid.isdigit() else ""
    except (KeyError, OverflowError):
        return f"uid {uid}"
