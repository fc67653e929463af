"""slurmdbd's transaction log by `sacctmgr show transaction`: who changed what when.

Its `where` and `info` are fragments of the SQL that slurmdbd ran:

    2026-11-29T19:14:07|Modify Associations|root|(id_assoc=4)|shares=5
    2026-11-29T19:14:09|Modify QOS|root|(name='funded-a')|grp_tres = if (id=4, '1001=96', grp_tres)
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime

from slurm_budget.slurm.command import Commands, checked
from slurm_budget.state.slurm import RowKey, Transaction

FORMAT = "time,action,actor,where,info"

_COLUMNS = {
    "shares": "fairshare",
    "parent_acct": "parent",
    "qos": "qos",
    "delta_qos": "qos",
    "def_qos_id": "defaultqos",
    "priority": "priority",
    "preempt": "preempt",
    "preempt_mode": "preemptmode",
    "preempt_exempt_time": "preemptexempttime",
    "grace_time": "gracetime",
    "usage_factor": "usagefactor",
    "grp_tres": "grptres",
    "grp_tres_mins": "grptresmins",
}
_SET = re.compile(r"(?:^|[,(]\s*)`?([a-z_]+)`?\s*=")
_ID = re.compile(r"id_assoc=(\d+)")
_NAME = re.compile(r"name='([^']*)'")


def parse(text: str, ids: Mapping[str, RowKey]) -> list[Transaction]:
    """Entries that wrote rows, oldest first; `ids` gives the row of each association's id.
    Lines that are none are left out. The SQL joins rows by `||`, so `|` does not end `where`.
    """
    out = []
    for line in text.splitlines():
        parts = [part.strip() for part in line.split("|", 3)]
        at = _moment(parts[0])
        if len(parts) < 4 or at is None or not parts[1].startswith(("Modify ", "Add ")):
            continue
        _, action, actor, rest = parts
        new = action.startswith("Add ")
        where, _, info = rest.partition("|" if new else ")|")
        if "QOS" in action:
            found = [where] if new else _NAME.findall(where)
            rows: set[RowKey] = {("qos", "", name, "") for name in found}
        elif "Assoc" in action:
            rows = {ids[number] for number in _ID.findall(where) if number in ids}
        else:
            continue
        # A new row has every field set, if only to nothing; ids and names are used again.
        named = _COLUMNS if new else _SET.findall(info)
        fields = {_COLUMNS[name] for name in named if name in _COLUMNS}
        if rows and fields:
            out.append(Transaction(at, action, actor, frozenset(rows), frozenset(fields)))
    return sorted(out, key=lambda item: item.at)


def _moment(text: str) -> int | None:
    if text.isdigit():
        return int(text)
    try:
        return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())
    except ValueError:
        return None


def read(commands: Commands, cluster: str, since: int) -> list[Transaction]:
    """Since an epoch second, oldest first. Times go both ways in UTC, which Commands sets."""
    start = datetime.fromtimestamp(since, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    log = commands.run(
        "sacctmgr", "-nP", "show", "transaction", "where", f"start={start}", f"format={FORMAT}"
    )
    rows = commands.run(
        "sacctmgr", "-nP", "show", "assoc", "where", f"cluster={cluster}",
        "format=id,account,user,partition",
    )  # fmt: skip
    ids: dict[str, RowKey] = {}
    for line in checked(rows, silent_ok=False).splitlines():
        number, account, user, partition = ([part.strip() for part in line.split("|")] + [""] * 4)[
            :4
        ]
        kind_row: RowKey = (
            ("user", account, user, partition) if user else ("account", account, account, "")
        )
        ids[number] = kind_row
    return parse(checked(log), ids)
