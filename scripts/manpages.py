"""Man pages from the commands' own help, one for each command: sbudget-budget-set(1)."""

import re
from collections.abc import Iterator

import click


def pages(cli: click.Group) -> dict[str, str]:
    """The text of every page by its file name."""
    return {
        "-".join(path) + ".1": _page(path, command, context)
        for path, command, context in _walk(("sbudget",), cli, None)
    }


Found = tuple[tuple[str, ...], click.Command, click.Context]


def _walk(
    path: tuple[str, ...], command: click.Command, parent: click.Context | None
) -> Iterator[Found]:
    context = click.Context(command, info_name=path[-1], parent=parent)
    yield path, command, context
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            assert child is not None
            yield from _walk((*path, name), child, context)


def _page(path: tuple[str, ...], command: click.Command, context: click.Context) -> str:
    name = "-".join(path)
    usage = " ".join(command.collect_usage_pieces(context))
    first, *rest = _paragraphs(command.help or "")
    out = [
        f'.TH {name.upper()} 1 "" slurm-budget "User Commands"',
        ".SH NAME",
        _plain(f"{name} - {command.get_short_help_str(limit=200).rstrip('.')}"),
        ".SH SYNOPSIS",
        f".B {_plain(' '.join(path))}",
        _plain(usage),
        ".SH DESCRIPTION",
        _plain(first),
        *(line for paragraph in rest for line in _text(paragraph)),
        ".SH OPTIONS",
    ]
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None and isinstance(parameter, click.Option):
            out += [".TP", f".B {_plain(record[0])}", _plain(record[1])]
    if isinstance(command, click.Group):
        out.append(".SH COMMANDS")
        for child in command.list_commands(context):
            found = command.get_command(context, child)
            assert found is not None
            page = _plain(f"{name}-{child}")
            out += [".TP", f".BR {page} (1)", _plain(found.get_short_help_str(limit=200))]
    if len(path) > 1:
        out += [".SH SEE ALSO", f".BR {_plain('-'.join(path[:-1]))} (1)"]
    return "\n".join(out) + "\n"


def _paragraphs(text: str) -> list[str]:
    return [" ".join(p.split()) if "\b" not in p else p for p in text.split("\n\n") if p.strip()]


def _text(paragraph: str) -> list[str]:
    if "\b" not in paragraph:
        return [".PP", _plain(paragraph)]
    lines = [line.strip() for line in paragraph.replace("\b", "").splitlines() if line.strip()]
    return [".PP", ".nf", *map(_plain, lines), ".fi"]


def _plain(text: str) -> str:
    """As it is: no backslash, dash or full stop at the start of a line means anything to roff."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^([.'])", r"\\&\1", text)
