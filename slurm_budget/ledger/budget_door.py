"""Budgets in the ledger: the tree at any moment, changes with their guard, log, diff and undo."""

from collections.abc import Collection

from sqlalchemy import Connection, Engine, select

from slurm_budget.core import budget_rules
from slurm_budget.core.changeset import (
    Change,
    apply,
    canonical,
    conflicts,
    diff,
    forbidden,
    inverse,
)
from slurm_budget.errors import BadInput, BadInputs, Refused
from slurm_budget.ledger import budgets
from slurm_budget.ledger.budgets import Changeset
from slurm_budget.ledger.door import Door
from slurm_budget.ledger.schema import changesets
from slurm_budget.state.budget import BudgetTree

WEEK = 604800


class BudgetDoor(Door):
    """The part of the ledger that managers use."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self._tree: tuple[str, int, BudgetTree] | None = None

    def clusters(self) -> list[str]:
        """Every cluster that has or had budgets here, by name."""
        with self._read() as connection:
            numbers = connection.scalars(select(changesets.c.cluster_id).distinct()).all()
            return sorted(self._names.text(connection, number) for number in numbers)

    def budget_tree(
        self, cluster: str, at: int | None = None, *, changeset: int | None = None
    ) -> BudgetTree:
        """The budgets of a cluster now, at an epoch second, or as a changeset left them."""
        return self.budgets(cluster, at, changeset=changeset)[0]

    def budgets(
        self, cluster: str, at: int | None = None, *, changeset: int | None = None
    ) -> tuple[BudgetTree, int]:
        """The tree and the changeset that it is from (0: none yet): the base of the next change."""
        with self._read() as connection:
            number = self._names.find(connection, cluster)
            if number is None:
                return BudgetTree(cluster), 0
            upto = budgets.latest(connection, number, at) if changeset is None else changeset
            return self._tree_at(connection, cluster, number, upto), upto

    def _tree_at(self, connection: Connection, cluster: str, number: int, upto: int) -> BudgetTree:
        if self._tree is None or self._tree[:2] != (cluster, upto):
            self._tree = (cluster, upto, budgets.tree(connection, cluster, number, upto))
        return self._tree[2]

    def apply_changeset(
        self,
        cluster: str,
        new_tree: BudgetTree,
        author: str,
        acting_as: str,
        reason: str,
        base: int,
        now: int,
        *,
        admins: Collection[str] = (),
        window: int = WEEK,
        undoes: int | None = None,
        dry_run: bool = False,
    ) -> int:
        """Make `new_tree` the budgets of the cluster; returns the changeset's id, or `base` where
        nothing differs. With `dry_run` everything is checked and nothing written.

        `author` is the Unix user, `acting_as` whose powers are used (only root and `admins` may
        act for another). Raises Refused when another changeset came after `base` (it shows what
        that one did) or when they may not change this; BadInput(s) when the tree breaks a rule
        (`window`: its seconds, to compare budgets of different kinds).
        """
        if not reason.strip():
            raise BadInput("a change of budgets needs a reason", mend="say why with -m REASON")
        if author != acting_as and author != "root" and author not in admins:
            raise Refused(
                f"{author} may not act for {acting_as}",
                mend="only root and ledger.admins in slurm-budget.toml may act for others",
            )
        new = canonical(new_tree)
        with self._write() as connection:
            number = self._names.number(connection, cluster)
            last = budgets.latest(connection, number)
            if last != base:
                raise self._overtaken(connection, new, number, base)
            old = budgets.tree(connection, cluster, number, last)
            changes = diff(old, new)
            if not changes:
                return base
            may_not = forbidden(changes, old, acting_as, admins)
            if may_not:
                raise Refused(
                    f"{acting_as} may not make {len(may_not)} of {len(changes)} changes:\n  "
                    + "\n  ".join(may_not[:10]),
                    mend="ask a manager of an account above it, or an admin",
                )
            faults = [fault for _, fault in budget_rules.faults(new, window, now)]
            if faults:
                raise faults[0] if len(faults) == 1 else BadInputs(faults)
            if dry_run:
                return base
            changeset = Changeset(
                0, cluster, base, author, acting_as, reason.strip(), now, undoes, tuple(changes)
            )
            return budgets.write(connection, number, changeset, new)

    def _overtaken(
        self, connection: Connection, new: BudgetTree, number: int, base: int
    ) -> Refused:
        """Shows what others did since `base`, and which of that the new tree would undo."""
        since = [c for c in budgets.history(connection, new.cluster, number) if c.id > base]
        seen = budgets.tree(connection, new.cluster, number, base)
        theirs = [change for changeset in since for change in changeset.changes]
        clashes = {id(other) for _, other in conflicts(diff(seen, new), theirs)}
        lines = []
        for changeset in since:
            lines.append(f"  {changeset}:")
            lines += [
                f"    {change}" + (" (you change this too)" if id(change) in clashes else "")
                for change in changeset.changes[:20]
            ]
        return Refused(
            f"the budgets have changed since you looked (changeset {base}):\n"
            + "\n".join(lines or ["  there is no such changeset yet"]),
            mend="look at `sbudget budget show`, then make your change again",
        )

    def log(self, cluster: str) -> list[Changeset]:
        """Every changeset with its changes, oldest first."""
        with self._read() as connection:
            number = self._names.find(connection, cluster)
            return [] if number is None else list(budgets.history(connection, cluster, number))

    def diff(self, cluster: str, a: int, b: int) -> list[Change]:
        """What changed from changeset `a` to changeset `b` (0: before the first)."""
        return diff(self.budget_tree(cluster, changeset=a), self.budget_tree(cluster, changeset=b))

    def changeset_at(self, cluster: str, at: int) -> int:
        """The changeset in force at an epoch second; 0 before the first."""
        return self.budgets(cluster, at)[1]

    def undone(self, cluster: str, changeset: int) -> tuple[BudgetTree, BudgetTree, int]:
        """(tree now, tree without that changeset, base): what `undo` would make of it.

        Raises Refused where later changesets touched the same.
        """
        taken = budgets.pick(self.log(cluster), changeset)
        tree, base = self.budgets(cluster)
        try:
            return tree, apply(tree, inverse(taken.changes)), base
        except Refused as bad:
            raise Refused(
                f"changeset {changeset} cannot be undone, others have built on it: {bad.what}",
                mend="undo the later ones first, or set the values by hand",
            ) from None

    def undo(
        self,
        cluster: str,
        changeset: int,
        author: str,
        acting_as: str,
        reason: str,
        now: int,
        *,
        admins: Collection[str] = (),
        window: int = WEEK,
    ) -> int:
        """Take a changeset back by its inverse; returns the changeset that does so."""
        _, new, base = self.undone(cluster, changeset)
        return self.apply_changeset(
            cluster,
            new,
            author,
            acting_as,
            reason,
            base,
            now,
            admins=admins,
            window=window,
            undoes=changeset,
        )
