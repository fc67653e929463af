"""QOS lists of associations: the site's own stay, ours are added, those of others' budgets go.

Lists are inherited, and Slurm can show both what is in force (`qos`) and what a row says itself
(`own_qos`). A row that says nothing follows the account above it. We write whole lists, never `+=`:
so the site's part is what is in force now without ours.
"""

from collections.abc import Iterator, Mapping

from slurm_budget.state.budget import BudgetTree
from slurm_budget.state.slurm import ROOT, Association, QosPolicy, SlurmState, Wanted


class Lists:
    """`budgets`: GPU-milliseconds by account of the tree, None where there is none."""

    def __init__(
        self,
        tree: BudgetTree,
        state: SlurmState,
        policy: QosPolicy,
        budgets: Mapping[str, int | None],
    ) -> None:
        self._tree, self._state, self._policy, self._budgets = tree, state, policy, budgets
        self._users: dict[str, dict[str, list[str]]] = {}
        for account, user, partition in sorted(state.associations):
            if user:
                self._users.setdefault(account, {}).setdefault(user, []).append(partition)

    def users_of(self, account: str) -> Mapping[str, list[str]]:
        """Partitions of the rows of each user in an account."""
        return self._users.get(account, {})

    def site(self, account: str) -> frozenset[str]:
        """The part of an account's list that is not ours; a new account follows the one above."""
        at: str | None = account
        while at is not None:
            row = self._state.associations.get((at, "", ""))
            if row is not None:
                return frozenset(q for q in row.qos if not self._policy.ours(q))
            at = self._tree.nodes[at].parent if at in self._tree.nodes else None
        root = self._state.associations.get((ROOT, "", ""))
        return frozenset(q for q in root.qos if not self._policy.ours(q)) if root else frozenset()

    def ours(self, account: str) -> frozenset[str]:
        """Our QOS that an account of the tree may use. A funded QOS without a budget stays in the
        list that has it: taking it away would leave pending jobs stuck."""
        funded = self._policy.funded(account)
        row = self._state.associations.get((account, "", ""))
        holds = row is not None and funded in row.qos
        if self._budgets.get(account) is not None or holds:
            return frozenset({self._policy.preemptible, funded})
        return frozenset({self._policy.preemptible})

    def of_account(self, account: str) -> frozenset[str]:
        return self.site(account) | self.ours(account)

    def of_user(self, row: Association) -> frozenset[str]:
        """For a user's row with a list of its own."""
        return frozenset(q for q in row.qos if not self._policy.ours(q)) | self.ours(row.account)

    def others(self) -> Iterator[Wanted]:
        """Lists of accounts that the tree does not name, below those that it names: they take
        their DefaultQOS from above, so they must be able to use it."""
        mine = self._policy.preemptible
        parents = {a: r.parent for (a, user, _), r in self._state.associations.items() if not user}
        for (account, user, partition), row in sorted(self._state.associations.items()):
            # A list that differs from what is in force only adds to what comes from above.
            if account in self._tree.nodes or row.own_qos != row.qos or mine in row.qos:
                continue
            if not row.own_qos or not self._is_below(account, parents):
                continue
            yield Wanted(
                "user" if user else "account",
                user or account,
                account,
                partition,
                fields={"qos": ",".join(sorted(row.qos | {mine}))},
                why={"qos": f"its DefaultQOS comes from above and is {mine}"},
                group=account,
            )

    def _is_below(self, account: str, parents: Mapping[str, str]) -> bool:
        seen: set[str] = set()
        at = account
        while at and at not in seen:
            if at in self._tree.nodes:
                return True
            seen.add(at)
            at = parents.get(at, "")
        return False

    def notes(self) -> list[str]:
        """What people set and we leave."""
        out = []
        mine = self._policy.preemptible
        users = 0
        for (account, user, _), row in sorted(self._state.associations.items()):
            if account not in self._tree.nodes or row.own_default_qos in ("", mine):
                continue
            if user:
                users += 1
            elif self._budgets.get(account) is None:
                out.append(f"{account}: its DefaultQOS {row.own_default_qos} is left as it is")
        if users:
            out.append(f"{users} users have a DefaultQOS of their own, left as it is")
        outside = sorted(
            account
            for (account, user, _) in self._state.associations
            if not user and account != ROOT and account not in self._tree.nodes
        )
        if outside:
            shown = ", ".join(outside[:5]) + (", ..." if len(outside) > 5 else "")
            out.append(f"{len(outside)} accounts are not in the budgets and are left: {shown}")
        return out
