"""HTML and SVG as nested calls: whatever text comes in is escaped, so no name can become markup.

>>> el("td", "R&D", class_="name", data_value=3)
'<td class="name" data-value="3">R&amp;D</td>'
"""

from collections.abc import Iterable
from html import escape

_VOID = frozenset({"meta", "br"})


class Markup(str):
    """Text that is markup already; only this module makes it of other text."""

    __slots__ = ()


Child = str | Iterable[Markup] | None
Attribute = str | int | float | bool | None


def el(tag: str, /, *children: Child, **attributes: Attribute) -> Markup:
    """An element. `class_` is written class, `data_value` data-value; None and False leave an
    attribute out, True gives it no value. Numbers have one decimal at most."""
    words = [tag]
    for name, value in attributes.items():
        if value is None or value is False:
            continue
        name = name.rstrip("_").replace("_", "-")
        words.append(name if value is True else f'{name}="{escape(_text(value))}"')
    opening = f"<{' '.join(words)}>"
    return Markup(opening if tag in _VOID else f"{opening}{join(*children)}</{tag}>")


def join(*children: Child) -> Markup:
    """Children after each other; what is text is escaped."""
    out: list[str] = []
    for child in children:
        if isinstance(child, Markup):
            out.append(child)
        elif isinstance(child, str):
            out.append(escape(child))
        elif child is not None:
            out.extend(child)
    return Markup("".join(out))


def raw(tag: str, content: str) -> Markup:
    """A style or script element of our own; its content must not end it."""
    assert "</" not in content
    return Markup(f"<{tag}>{content}</{tag}>")


def _text(value: str | int | float) -> str:
    return f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else str(value)
