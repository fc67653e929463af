"""A report as an HTML table that can be sorted, printed and read aloud."""

from slurm_budget.core.report_delivered import GOOD
from slurm_budget.render.cells import cell
from slurm_budget.render.markup import Child, Markup, el
from slurm_budget.render.report_json import plain_value
from slurm_budget.render.table import NUMBERS, Column, Field, Row, Table

DEEPEST = 6
"""Deeper accounts are not indented further."""


def html_table(table: Table[Row], caption: str, *, id_: str, note: Child = None) -> Markup:
    """A table in a box of its own that scrolls where the screen is too narrow.

    Figures carry their exact value (as in JSON) in `data-value`, by which they are sorted.
    """
    first, *others = table.fields
    body = []
    for row in table.rows:
        name = _shown(table, first, row)
        place = _place(first.column, table.report.depth(row))
        head = el("th", el("bdi", name), scope="row", class_=place, data_value=name)
        body.append(el("tr", head, [_cell(table, field, row) for field in others]))
    return el(
        "div",
        el(
            "table",
            el(
                "caption",
                el("span", caption, el("small", note) if note else None),
                id=f"{id_}-caption",
            ),
            el("thead", el("tr", [_header(field) for field in table.fields])),
            el("tbody", body),
            data_sortable=True,
            id=id_,
        ),
        class_="scroll",
        role="region",
        aria_labelledby=f"{id_}-caption",
        tabindex=0,
    )


def words(table: Table[Row]) -> Markup:
    """What the columns mean."""
    columns = [field.column for field in table.fields]
    entries = [el("div", el("dt", one.header), el("dd", one.doc)) for one in columns]
    return el("details", el("summary", "What the columns mean"), el("dl", entries, class_="words"))


def _place(column: Column[Row], depth: int) -> str | None:
    """How the first cell stands: an account as deep as it is in the tree."""
    if column.kind == "account":
        return f"d{min(depth, DEEPEST)}"
    return "when" if column.kind == "moment" else None


def _shown(table: Table[Row], field: Field[Row], row: Row) -> str:
    """As in the reports in text; GPU-hours in groups of three digits."""
    text = cell(field.column.kind, field.column.value(row), "hours", table.whole(row))
    if field.column.kind == "moment":
        return text.replace("T", " ")
    if field.column.kind != "gpu-time":
        return text
    whole, dot, part = text.partition(".")
    return f"{int(whole):,}{dot}{part}" if len(whole.lstrip("-")) > 3 else text


def _header(field: Field[Row]) -> Markup:
    column = field.column
    return el("th", column.header, scope="col", class_=_class(column), title=column.doc)


def _cell(table: Table[Row], field: Field[Row], row: Row) -> Markup:
    column, text = field.column, _shown(table, field, row)
    exact = plain_value(column.value(row))
    if column.kind not in NUMBERS and column.kind != "moment":
        return el("td", el("bdi", text), data_value=text)
    value = "" if exact is None else repr(exact)
    bar = _bar(column, exact) if column.kind == "ratio" else None
    return el("td", text, bar, class_=_class(column), data_value=value)


def _class(column: Column[Row]) -> str | None:
    return "n" if column.kind in NUMBERS else None


def _bar(column: Column[Row], value: float | int | str | None) -> Markup | None:
    """A ratio as a bar below its figure; a low delivered share has another colour."""
    if not isinstance(value, float | int):
        return None
    judged = column.name == "delivered"
    fill = "fill" if not judged else "fill good" if value >= GOOD else "fill low"
    return el(
        "svg",
        el("rect", width=100, height=4, class_="track"),
        el("rect", width=float(min(max(value, 0), 1) * 100), height=4, class_=fill),
        viewBox="0 0 100 4",
        preserveAspectRatio="none",
        class_="bar",
        aria_hidden="true",
    )
