"""Text that others wrote, made safe for a terminal.

>>> printable("evil\\x1b[2Jname\\n")
'evil?[2Jname?'
"""


def printable(text: str) -> str:
    """The same with `?` for whatever a terminal would obey and not show."""
    return "".join(char if char.isprintable() else "?" for char in text)
