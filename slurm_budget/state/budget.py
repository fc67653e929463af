"""The budget tree as managers gave it. Amounts are what was typed; core.budget calculates."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

AmountKind = Literal["gpus", "gpu_hours", "share"]
ALL_GPUS = "gres/gpu"


@dataclass(frozen=True, slots=True)
class Amount:
    """One figure: `gpus` on average, `gpu_hours` per window, or `share` per cent of the parent."""

    kind: AmountKind
    value: int

    def __str__(self) -> str:
        return {"gpus": "{} GPUs", "gpu_hours": "{} GPU-hours", "share": "{}%"}[self.kind].format(
            self.value
        )


@dataclass(frozen=True, slots=True)
class UserBudget:
    """A user in an account; without an amount the account's budget is all that bounds them."""

    name: str
    amount: Amount | None = None
    valid_from: int | None = None
    valid_until: int | None = None


@dataclass(frozen=True, slots=True)
class BudgetNode:
    """One account. `parent` None means directly below Slurm's root account."""

    name: str
    parent: str | None = None
    amount: Amount | None = None
    gres: str = ALL_GPUS
    users: tuple[UserBudget, ...] = ()
    managers: tuple[str, ...] = ()
    overcommit: bool = False
    valid_from: int | None = None
    valid_until: int | None = None
    aliases: tuple[str, ...] = ()
    description: str = ""


@dataclass(frozen=True, slots=True)
class BudgetTree:
    """All accounts of one cluster, by name, parents before children."""

    cluster: str
    nodes: Mapping[str, BudgetNode] = field(default_factory=dict)

    def children(self, name: str | None) -> list[BudgetNode]:
        """Direct children of an account (None: the top level), in the order given."""
        return [node for node in self.nodes.values() if node.parent == name]

    def ancestors(self, name: str) -> Iterator[BudgetNode]:
        """The account itself, then its parents up to the top."""
        at: str | None = name
        while at is not None:
            node = self.nodes[at]
            yield node
            at = node.parent

    def subtree(self, name: str) -> Iterator[BudgetNode]:
        """The account itself, then everything below it."""
        yield self.nodes[name]
        for child in self.children(name):
            yield from self.subtree(child.name)

    def resolve(self, account: str) -> str | None:
        """The node that `account` means, by name or alias in any case; None where there is none."""
        folded = account.lower()
        if folded in self.nodes:
            return folded
        for node in self.nodes.values():
            if folded in node.aliases:
                return node.name
        return None
