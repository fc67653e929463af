"""Who may do what in Slurm: AdminLevel, and the accounts of each user, by sacctmgr."""

from slurm_budget.errors import SbudgetError
from slurm_budget.slurm.command import Commands, checked


def admin_level(commands: Commands, user: str) -> str:
    """`None`, `Operator` or `Administrator`; empty for somebody whom slurmdbd does not know."""
    reply = commands.run("sacctmgr", "-nP", "show", "user", user, "format=user,adminlevel")
    return checked(reply).strip().partition("|")[2]


def accounts_of(commands: Commands, cluster: str) -> dict[str, set[str]]:
    """Accounts in the cluster by user, for every user that slurmdbd knows: root is always one."""
    everybody = commands.run("sacctmgr", "-nP", "show", "user", "format=user")
    out: dict[str, set[str]] = {name: set() for name in checked(everybody, silent_ok=False).split()}
    # which leaves out users who have none
    reply = commands.run("sacctmgr", "-nP", "show", "user", "withassoc", "format=user,cluster,acc")
    for line in checked(reply, silent_ok=False).splitlines():
        user, _, rest = line.partition("|")
        where, _, account = rest.partition("|")
        found = out.setdefault(user.strip(), set())
        if where.strip() in ("", cluster) and account.strip():
            found.add(account.strip())
    return out


def make_administrator(commands: Commands, user: str, cluster: str) -> str:
    """Make `user` an administrator; their AdminLevel before, empty where they were not known.

    Slurm has users only in an account, so one who is new is put into root's. Raises SbudgetError.
    """
    before = admin_level(commands, user)
    if before:
        _change(commands, "modify", "user", user, "set", "adminlevel=administrator")
    else:
        _change(
            commands, "add", "user", user, "account=root", f"cluster={cluster}",
            "adminlevel=administrator",
        )  # fmt: skip
    return before


def take_back(commands: Commands, user: str, before: str) -> None:
    """Undo `make_administrator`, which answered `before`. Raises SbudgetError."""
    if before:
        _change(commands, "modify", "user", user, "set", f"adminlevel={before}")
    else:
        _change(commands, "delete", "user", user)


def _change(commands: Commands, *argv: str) -> None:
    reply = commands.run("sacctmgr", "-i", *argv)
    if reply.code or "error" in reply.err.lower():
        lines = (reply.err or reply.out).strip().splitlines()
        raise SbudgetError(
            f"sacctmgr refused: {lines[0].strip() if lines else f'exit {reply.code}'}",
            where=" ".join(("sacctmgr", *argv)),
            mend="run it as root or SlurmUser; `sacctmgr show cluster` shows whether it answers",
        )
