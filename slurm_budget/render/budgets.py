"""Budgets as text: the tree, one account, what changed. Figures come in, lines go out."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction

from slurm_budget.core.changeset import Change, shown
from slurm_budget.core.standing import Standing
from slurm_budget.ledger.budgets import Changeset
from slurm_budget.state.budget import ALL_GPUS, BudgetNode, BudgetTree, UserBudget
from slurm_budget.text.gputime import gpu_hours

Moment = Callable[[int | None], str]
"""How an epoch second is shown."""


def columns(rows: Sequence[Sequence[str]], right: Iterable[int] = ()) -> list[str]:
    """Rows (the first is the heading) in columns as wide as they must be; `right` are numbers."""
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    numbers = set(right)
    return [
        "  ".join(
            cell.rjust(width) if place in numbers else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def depth_first(tree: BudgetTree) -> list[tuple[int, BudgetNode]]:
    """(depth, account), each account before those below it."""
    below: dict[str | None, list[BudgetNode]] = {}
    for node in tree.nodes.values():
        below.setdefault(node.parent, []).append(node)
    out: list[tuple[int, BudgetNode]] = []
    waiting = [(0, node) for node in reversed(below.get(None, []))]
    while waiting:
        depth, node = waiting.pop()
        out.append((depth, node))
        waiting += [(depth + 1, child) for child in reversed(below.get(node.name, []))]
    return out


def amount(item: BudgetNode | UserBudget) -> str:
    """What was given, in the words it was given in."""
    text = "-" if item.amount is None else str(item.amount)
    gres = item.gres if isinstance(item, BudgetNode) else ALL_GPUS
    return text if gres == ALL_GPUS else f"{text} of {gres.removeprefix(ALL_GPUS + ':')}"


def _hours(ms: int | None) -> str:
    return "-" if ms is None else gpu_hours(ms)


def per_cent(standing: Fraction | float | None) -> str:
    """use / budget for people."""
    if standing is None:
        return "-"
    return "inf" if isinstance(standing, float) else f"{float(standing) * 100:.0f}%"


def tree_lines(tree: BudgetTree, budgets: Mapping[str, int | None], *, users: bool) -> list[str]:
    """The tree with what was given and what that is in GPU-hours per window."""
    rows = [("account", "given", "GPU-hours", "managers")]
    for depth, node in depth_first(tree):
        indent = "  " * depth
        name = indent + node.name + (" (overcommitted)" if node.overcommit else "")
        rows.append((name, amount(node), _hours(budgets.get(node.name)), ",".join(node.managers)))
        if users:
            rows += [(f"{indent}  @{user.name}", amount(user), "", "") for user in node.users]
    return columns(rows, right=[2])


def standing_lines(
    tree: BudgetTree,
    accounts: Mapping[str, Standing],
    names: Iterable[str],
) -> list[str]:
    """Budget, charge, balance and use of accounts, in GPU-hours per window."""
    wanted = set(names)
    rows = [["account", "given", "budget", "charged", "balance", "use", "standing"]]
    for depth, node in depth_first(tree):
        if node.name in wanted:
            one = accounts[node.name]
            figures = (one.budget, one.charge, one.balance, one.use)
            row = ["  " * depth + node.name, amount(node), *map(_hours, figures)]
            rows.append([*row, per_cent(one.standing)])
    return columns(rows, right=range(2, 7))


def account_lines(
    tree: BudgetTree,
    node: BudgetNode,
    accounts: Mapping[str, Standing],
    users: Mapping[tuple[str, str], Standing],
    moment: Moment,
) -> list[str]:
    """Everything about one account."""
    one = accounts[node.name]
    path = [up.name for up in reversed(list(tree.ancestors(node.name)))]
    facts = [
        ("account", " > ".join(path)),
        ("description", node.description),
        ("given", amount(node)),
        ("valid", f"{moment(node.valid_from)} to {moment(node.valid_until)}"),
        ("managers", ",".join(node.managers)),
        ("aliases", ",".join(node.aliases)),
        ("overcommit", shown(node.overcommit)),
        ("budget", f"{_hours(one.budget)} GPU-hours per window"),
        ("charged", f"{gpu_hours(one.charge)} GPU-hours"),
        ("balance", f"{_hours(one.balance)} GPU-hours, less what runs and waits has reserved"),
        ("use", f"{gpu_hours(one.use)} GPU-hours, {per_cent(one.standing)} of the budget"),
    ]
    no_period = node.valid_from is None and node.valid_until is None
    skip = {"valid"} if no_period else set()
    lines = [f"{name + ':':<13}{text}" for name, text in facts if text and name not in skip]
    rows = [["user", "given", "budget", "charged", "use"]]
    for user in node.users:
        theirs = users.get((node.name, user.name))
        figures = ["-", "-", "-"]
        if theirs is not None:
            figures = [_hours(ms) for ms in (theirs.budget, theirs.charge, theirs.use)]
        rows.append([user.name, amount(user), *figures])
    if node.users:
        lines += ["", *columns(rows, right=range(2, 5))]
    return lines


def change_lines(changes: Iterable[Change]) -> list[str]:
    """One line a change; `+` added, `-` removed, `~` altered."""
    return [
        ("+ " if c.before is None and c.field == "whole" else "- " if c.field == "whole" else "~ ")
        + str(c)
        for c in changes
    ]


def log_lines(changesets: Sequence[Changeset], moment: Moment) -> list[str]:
    """Changesets as given, each with its changes."""
    out = []
    for one in changesets:
        who = one.author + (f" for {one.acting_as}" if one.acting_as != one.author else "")
        undone = f", undoes {one.undoes}" if one.undoes else ""
        out.append(f"changeset {one.id}  {moment(one.at)}  {who}{undone}: {one.reason}")
        out += ["    " + line for line in change_lines(one.changes)]
    return out
