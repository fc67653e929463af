"""What `sbudget budget set` does to a tree: options in, a new tree out."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import click

from slurm_budget.errors import BadInput
from slurm_budget.state.budget import Amount, AmountKind, BudgetNode, BudgetTree, UserBudget
from slurm_budget.text import moments
from slurm_budget.text.nearest import meant

F = TypeVar("F", bound=Callable[..., Any])

_COUNT = click.IntRange(min=0)
_OPTIONS = (
    click.option("--user", metavar="USER", help="Change this user in the account instead."),
    click.option("--gpus", type=_COUNT, help="GPUs on average, always."),
    click.option("--gpu-hours", type=_COUNT, help="GPU-hours per window."),
    click.option("--share", type=click.IntRange(0, 100), help="Per cent of the parent."),
    click.option("--none", "no_amount", is_flag=True, help="No amount (which is not 0)."),
    click.option("--remove", is_flag=True, help="Remove the account, or the user."),
    click.option("--parent", help="The account above; `root` for none. Makes a new account."),
    click.option("--gres", help="gres/gpu, or one type: gres/gpu:h100."),
    click.option("--manager", multiple=True, metavar="USER", help="Add a manager."),
    click.option("--no-manager", multiple=True, metavar="USER", help="Take a manager away."),
    click.option("--alias", multiple=True, metavar="NAME", help="Add a former name."),
    click.option("--no-alias", multiple=True, metavar="NAME", help="Take a former name away."),
    click.option("--overcommit/--no-overcommit", default=None, help="Children may exceed it."),
    click.option("--valid-from", metavar="DATE", help="Counts from here on; `-`: always."),
    click.option("--valid-until", metavar="DATE", help="Counts until then; `-`: for ever."),
    click.option("--description", help="A line for people."),
)


def options(command: F) -> F:
    """The options of `budget set`."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@dataclass(frozen=True)
class Edit:
    """What was typed; None and empty where nothing was."""

    user: str | None = None
    gpus: int | None = None
    gpu_hours: int | None = None
    share: int | None = None
    no_amount: bool = False
    remove: bool = False
    parent: str | None = None
    gres: str | None = None
    manager: tuple[str, ...] = ()
    no_manager: tuple[str, ...] = ()
    alias: tuple[str, ...] = ()
    no_alias: tuple[str, ...] = ()
    overcommit: bool | None = None
    valid_from: str | None = None
    valid_until: str | None = None
    description: str | None = None


def existing(tree: BudgetTree, account: str) -> str:
    """The account that a person means; BadInput names the nearest where there is none."""
    name = tree.resolve(account)
    if name is None:
        raise BadInput(
            f"cluster {tree.cluster} has no budget for account {account!r}",
            mend=meant(account, tree.nodes, "see `sbudget budget tree`"),
        )
    return name


def edited(tree: BudgetTree, account: str, edit: Edit, now: int) -> BudgetTree:
    """The tree after the edit. Raises BadInput for options that contradict each other."""
    if edit == Edit(user=edit.user):
        raise BadInput("nothing was asked to be changed", mend="say for instance --gpus 96")
    nodes = dict(tree.nodes)
    if tree.resolve(account) is None and edit.parent is not None and not edit.remove:
        name = account.lower()
        nodes[name] = BudgetNode(name)
    else:
        try:
            name = existing(tree, account)
        except BadInput as bad:
            bad.mend += "; to make it, name its --parent (or `--parent root`)"
            raise
    if edit.user is not None:
        nodes[name] = _edit_user(nodes[name], edit, now)
    elif edit.remove:
        below = [node.name for node in tree.children(name)]
        if below:
            raise BadInput(
                f"account {name} has accounts below it: {', '.join(below)}",
                mend="remove or move those first",
            )
        del nodes[name]
    else:
        nodes[name] = _edit_node(nodes[name], tree, edit, now)
    return BudgetTree(tree.cluster, nodes)


def _amount(edit: Edit, old: Amount | None) -> Amount | None:
    kinds: tuple[AmountKind, ...] = ("gpus", "gpu_hours", "share")
    given: list[Amount | None] = [
        Amount(kind, value) for kind in kinds if (value := getattr(edit, kind)) is not None
    ]
    if edit.no_amount:
        given.append(None)
    if len(given) > 1:
        raise BadInput(
            "more than one amount was given",
            mend="keep one of --gpus, --gpu-hours, --share, --none",
        )
    return given[0] if given else old


def _period(edit: Edit, item: BudgetNode | UserBudget, now: int) -> tuple[int | None, int | None]:
    def one(typed: str | None, old: int | None) -> int | None:
        if typed is None:
            return old
        return None if typed == "-" else moments.moment(typed, now)

    return one(edit.valid_from, item.valid_from), one(edit.valid_until, item.valid_until)


def _edit_user(node: BudgetNode, edit: Edit, now: int) -> BudgetNode:
    for option in ("parent", "gres", "manager", "alias", "description"):
        if getattr(edit, option):
            raise BadInput(
                f"--{option} is of accounts, not of users", mend="leave out --user or that option"
            )
    users = {user.name: user for user in node.users}
    assert edit.user is not None
    if edit.remove:
        if users.pop(edit.user, None) is None:
            raise BadInput(
                f"account {node.name} has no user {edit.user}",
                mend="its users: " + (", ".join(users) or "none"),
            )
    else:
        old = users.get(edit.user, UserBudget(edit.user))
        since, until = _period(edit, old, now)
        users[edit.user] = UserBudget(edit.user, _amount(edit, old.amount), since, until)
    return replace(node, users=tuple(users.values()))


def _edit_node(node: BudgetNode, tree: BudgetTree, edit: Edit, now: int) -> BudgetNode:
    since, until = _period(edit, node, now)
    changed = replace(node, amount=_amount(edit, node.amount), valid_from=since, valid_until=until)
    if edit.parent is not None:
        parent = None if edit.parent == "root" else existing(tree, edit.parent)
        changed = replace(changed, parent=parent)
    if edit.gres is not None:
        changed = replace(changed, gres=edit.gres)
    if edit.overcommit is not None:
        changed = replace(changed, overcommit=edit.overcommit)
    if edit.description is not None:
        changed = replace(changed, description=edit.description)
    return replace(
        changed,
        managers=_listed(node, "manager", edit.manager, edit.no_manager),
        aliases=_listed(node, "alias", _lower(edit.alias), _lower(edit.no_alias)),
    )


def _lower(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name.lower() for name in names)


def _listed(
    node: BudgetNode, what: str, added: tuple[str, ...], taken: tuple[str, ...]
) -> tuple[str, ...]:
    old = node.managers if what == "manager" else node.aliases
    for name in taken:
        if name not in old:
            raise BadInput(
                f"account {node.name} has no {what} {name!r} to take away",
                mend=f"it has: {', '.join(old) or 'none'}",
            )
    return tuple(name for name in dict.fromkeys((*old, *added)) if name not in taken)
