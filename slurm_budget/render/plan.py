"""A plan for people: coloured, plain or Markdown, grouped by account as a good diff."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict

from rich.text import Text

from slurm_budget.core.plan import Change, Field, Plan
from slurm_budget.usecases.sync import Outcome

Line = tuple[str, str]
"""A style of rich, and a line."""

FOR_ALL = "for all accounts"
_SIGN = {"create": ("+", "green"), "modify": ("~", "yellow")}


def groups(changes: Sequence[Change]) -> dict[str, list[Change]]:
    """Changes by account, in the plan's order; what is for all accounts comes first."""
    out: dict[str, list[Change]] = {}
    for change in changes:
        out.setdefault(change.group or FOR_ALL, []).append(change)
    return out


def headline(plan: Plan) -> str:
    if not plan:
        return f"cluster {plan.cluster}: nothing to do, {plan.existing} as the budgets say"
    counts = []
    for kind, word in (("qos", "QOS"), ("account", "accounts"), ("user", "users")):
        new = sum(c.kind == kind and c.action == "create" for c in plan.changes)
        old = sum(c.kind == kind and c.action == "modify" for c in plan.changes)
        parts = [f"{new} to create"] * bool(new) + [f"{old} to modify"] * bool(old)
        if parts:
            counts.append(f"{word} {', '.join(parts)}")
    return f"cluster {plan.cluster}: {'; '.join(counts)} ({plan.existing} exist)"


def _value(value: str | None) -> str:
    return value if value else "unset"


def _field(field: Field, name: int, old: int, new: int) -> str:
    arrow = f"{'':{old}}    " if field.old is None else f"{_value(field.old):>{old}} -> "
    why = f"  # {field.why}" if field.why else ""
    return f"      {field.name:{name}} {arrow}{_value(field.new):{new}}{why}".rstrip()


def lines(plan: Plan) -> Iterator[Line]:
    """The plan, a line each with its style."""
    yield "bold", headline(plan)
    for group, changes in groups(plan.changes).items():
        yield "", ""
        yield "bold cyan", group
        fields = [field for change in changes for field in change.fields]
        name = max((len(f.name) for f in fields), default=0)
        old = max((len(_value(f.old)) for f in fields if f.old is not None), default=0)
        new = min(40, max((len(_value(f.new)) for f in fields), default=0))
        for change in changes:
            sign, style = _SIGN[change.action]
            yield style, f"  {sign} {change.title}"
            for field in change.fields:
                yield "", _field(field, name, old, new)
    if plan.notes:
        yield "", ""
        yield "bold cyan", "left as it is, or worth knowing"
        for note in plan.notes:
            yield "dim", f"  {note}"


def plain(plan: Plan) -> str:
    """Without colour, for files and pipes."""
    return "\n".join(text for _, text in lines(plan))


def rich_text(plan: Plan) -> Text:
    """With colour, for a terminal. Names are never read as markup."""
    return Text("\n").join(Text(text, style=style) for style, text in lines(plan))


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def markdown(plan: Plan) -> str:
    """For a merge request."""
    out = [f"**{headline(plan)}**"]
    for group, changes in groups(plan.changes).items():
        out += ["", f"### {group}", "", "| | what | field | old | new | why |"]
        out.append("| --- | --- | --- | --- | --- | --- |")
        for change in changes:
            title = change.title
            for field in change.fields:
                old = "" if field.old is None else f"`{_cell(_value(field.old))}`"
                out.append(
                    f"| {_SIGN[change.action][0]} | {title} | {field.name} | {old} |"
                    f" `{_cell(_value(field.new))}` | {_cell(field.why)} |"
                )
                title = ""
    if plan.notes:
        out += ["", *(f"- {note}" for note in plan.notes)]
    return "\n".join(out)


def outcome_lines(outcome: Outcome) -> Iterator[Line]:
    """What a sync did: one sentence, then what did not take, one by one."""
    total = len(outcome.applied) + len(outcome.failed) + len(outcome.left)
    if not total:
        yield "green", "nothing to do"
        return
    sentence = f"{len(outcome.applied)} of {total} changes applied and seen in Slurm"
    if outcome.failed:
        sentence += f", {len(outcome.failed)} failed"
    if outcome.left:
        sentence += f", {len(outcome.left)} not tried"
    yield ("red" if outcome.failed or outcome.stopped else "green"), sentence
    for change, why in outcome.failed:
        yield "red", f"  {change.title}: {why}"
    for name, has in outcome.late.items():
        yield (
            "red",
            (
                f"  QOS {name}: slurmdbd has the new limit, slurmctld still goes by {has};"
                " it reads all again when it is restarted"
            ),
        )
    if outcome.stopped:
        yield "red", f"  stopped: {outcome.stopped}; sync again to finish"


def outcome_json(outcome: Outcome) -> str:
    """The same for programs."""
    return json.dumps(
        {
            "applied": [asdict(change) for change in outcome.applied],
            "failed": [{**asdict(change), "reason": why} for change, why in outcome.failed],
            "left": [asdict(change) for change in outcome.left],
            "stopped": outcome.stopped,
            "late": dict(outcome.late),
        },
        indent=1,
    )
