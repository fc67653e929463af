"""The site that is benchmarked: ten programmes, 990 teams below them, ten users in each account.

Every account and every user has a budget. One user in each account is a Linux user, who submits.
"""

import sqlite3
import time
from pathlib import Path

from slurm_budget.core.snapshot_write import encode
from slurm_budget.state.snapshot import AccountFacts, Policy, Snapshot, UserFacts

ACCOUNTS, PROGRAMMES, USERS_EACH = 1000, 10, 10
LINUX_USERS = ("hookana", "hookben", "hookcleo", "hookdan")
HOUR = 3_600_000


def account(number: int) -> str:
    return f"team{number:04}"


def submitter(number: int) -> str:
    """The Linux user that submits for an account."""
    return LINUX_USERS[number % len(LINUX_USERS)]


def parent(number: int) -> str | None:
    return None if number < PROGRAMMES else account(number % PROGRAMMES)


def is_empty(number: int) -> bool:
    """Whether an account has nothing left."""
    return number >= PROGRAMMES and number % 5 == 0


def members(number: int) -> list[str]:
    others = (f"user{number * USERS_EACH + n:05}" for n in range(1, USERS_EACH))
    return [submitter(number), *others]


def snapshot(cluster: str, variant: int) -> str:
    """Text of a snapshot; each variant has other balances. Every fifth team has nothing left."""
    accounts, users = {}, {}
    for n in range(ACCOUNTS):
        name, budget = account(n), (1_000_000 if n < PROGRAMMES else 2688) * HOUR
        left = budget // 2 + n * HOUR // 10 + variant
        back = None
        if is_empty(n):
            left, back = variant, int(time.time()) + 9000
        accounts[name] = AccountFacts(
            name, parent(n), f"funded-{name}", budget, left, left + HOUR, back
        )
        for user in members(n):
            users[name, user] = UserFacts(name, user, budget // 2, left, left + HOUR)
    now = int(time.time())
    policy = Policy(node_gpus=8, max_age=3600, weights={"h100": 1000}, partition_gpus={"gpu": 8})
    return encode(Snapshot(cluster, now, now, policy, accounts, users))


def for_sacctmgr(cluster: str) -> str:
    """The accounts for `sacctmgr load`; of the users only those that exist, who submit."""
    lines = [
        f"Cluster - '{cluster}':Fairshare=1:QOS='normal,preemptible'",
        "Parent - 'root'",
        "User - 'root':DefaultAccount='root':AdminLevel='Administrator':Fairshare=1",
    ]
    order = sorted(range(ACCOUNTS), key=lambda n: parent(n) or "")
    below = None
    for n in order:
        if parent(n) != below:
            below = parent(n)
            lines.append(f"Parent - '{below}'")
        name = account(n)
        lines.append(
            f"Account - '{name}':Description='{name}':Organization='bench':Fairshare=1"
            f":QOS='normal,preemptible,funded-{name}'"
        )
    for n in range(ACCOUNTS):
        lines += [f"Parent - '{account(n)}'", f"User - '{submitter(n)}':Fairshare=1"]
    return "\n".join(lines) + "\n"


def for_sqlite(path: Path) -> None:
    """The same facts in a database, as somebody would lay it out who wants to be fast."""
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE accounts (name TEXT PRIMARY KEY, parent TEXT, balance INTEGER)")
        db.execute(
            "CREATE TABLE users (account TEXT, user TEXT, balance INTEGER,"
            " PRIMARY KEY (account, user))"
        )
        for n in range(ACCOUNTS):
            db.execute("INSERT INTO accounts VALUES (?, ?, ?)", (account(n), parent(n), HOUR))
            rows = [(account(n), user, HOUR) for user in members(n)]
            db.executemany("INSERT INTO users VALUES (?, ?, ?)", rows)
    db.close()
