"""A real slurmdbd to sync to, emptied before each test; budgets are written as a manager would."""

import textwrap
from dataclasses import dataclass

from playground import Done, Playground

from slurm_budget.settings import Settings
from slurm_budget.slurm.command import Commands
from slurm_budget.slurm.sacctmgr_port import Sacctmgr


@dataclass
class Site:
    """The playground with what tests of sync say often."""

    play: Playground

    @property
    def name(self) -> str:
        return self.play.name

    @property
    def port(self) -> Sacctmgr:
        return Sacctmgr(Commands(conf=self.play.conf))

    @property
    def settings(self) -> Settings:
        return Settings()

    def reset(self) -> None:
        """No accounts, no QOS of ours, an empty ledger."""
        self.play.slurm("scancel", "--partition=gpu", code=None)
        self.play.wait("an empty queue", lambda: not self.play.slurm("squeue", "-h", "-a").strip())
        # A default account cannot be deleted before the user is.
        users = {row[0] for row in self.show("user")} - {"", "root"}
        if users:
            self.sacctmgr("delete", "user", f"name={','.join(sorted(users))}")
        accounts = {row[0] for row in self.show("account")} - {"root"}
        if accounts:
            self.sacctmgr("delete", "account", f"name={','.join(sorted(accounts))}")
        names = self.play.slurm("sacctmgr", "-nP", "show", "qos", "format=name").split()
        others = set(names) - {"normal"}
        if others:
            self.sacctmgr("delete", "qos", f"name={','.join(sorted(others))}")
        self.play.ledger.unlink(missing_ok=True)
        for more in ("-wal", "-shm"):
            self.play.ledger.with_name(self.play.ledger.name + more).unlink(missing_ok=True)
        self.play.sbudget("ledger", "init")

    def sacctmgr(self, *args: str, code: int | None = 0) -> str:
        """A change by hand."""
        return self.play.slurm("sacctmgr", "-i", "-Q", *args, code=code)

    def show(self, *fields: str) -> list[list[str]]:
        """Columns of all associations, as in force."""
        out = self.play.slurm(
            "sacctmgr", "-nP", "show", "assoc", "where", f"cluster={self.name}",
            f"format={','.join(fields)}",
        )  # fmt: skip
        return [line.split("|") for line in out.splitlines()]

    def one(self, field: str, account: str, user: str = "", partition: str = "") -> str:
        """One value of one association."""
        for found in self.show("account", "user", "partition", field):
            if found[:3] == [account, user, partition]:
                return found[3]
        raise AssertionError(f"no association {account} {user} {partition}")

    def qos(self, name: str, field: str) -> str:
        out = self.play.slurm("sacctmgr", "-nP", "show", "qos", name, f"format={field}")
        return out.strip()

    def budgets(self, accounts: str) -> None:
        """Load budgets; `accounts` is the YAML below `accounts:`."""
        text = textwrap.indent(textwrap.dedent(accounts), "  ")
        file = self.play.site / "budgets.yaml"
        head = f"cluster: {self.name}\naccounts:" + ("\n" if text.strip() else " {}\n")
        file.write_text(head + text)
        self.play.sbudget("budget", "load", str(file), "-m", "test")

    def sync(self, *args: str, code: int | None = 0) -> Done:
        return self.play.sbudget("sync", "--yes", *args, code=code)

    def plan(self, *args: str, code: int | None = 0) -> str:
        return self.play.sbudget("plan", *args, code=code).out
