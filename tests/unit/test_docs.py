"""What the documents say is there: files that they link to, commands and options that they show."""

import re
import shlex
from pathlib import Path

import click
import pytest

from slurm_budget.cli.main import cli

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), ROOT / "docker" / "README.md"])
NAMES = [str(page.relative_to(ROOT)) for page in PAGES]
_LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
_COMMAND = re.compile(r"^ {4}(?:\$ |# |[\w-]+[$#] )?(sbudget .*)$|`(sbudget [^`]+)`", re.M)


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_links_lead_somewhere(page: Path) -> None:
    for target in _LINK.findall(page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def shown(page: Path) -> list[str]:
    """The commands of a page, without the comments behind them."""
    found = (" ".join(pair).strip() for pair in _COMMAND.findall(page.read_text()))
    return [re.split(r"\s+#\s|\s+[>|&;]|…|\.\.\.| /", command)[0].strip() for command in found]


def wrong(command: str) -> str:
    """What is not there in a command; empty where all of it is."""
    try:
        words = shlex.split(command)[1:]
    except ValueError:
        return ""  # cut at a line's end
    here: click.Command = cli
    context = click.Context(cli)
    for word in words:
        if isinstance(here, click.Group) and not word.startswith("-"):
            for name in word.split("|"):
                if re.fullmatch(r"[a-z][a-z-]*", name) and here.get_command(context, name) is None:
                    return f"no command {name!r}"
            if not re.fullmatch(r"[a-z][a-z-]*", word):
                return ""  # a placeholder, or several
            following = here.get_command(context, word)
            assert following is not None
            here, context = following, click.Context(following, parent=context)
        elif word.startswith("-") and word != "-":
            options = {opt for p in here.params for opt in (*p.opts, *p.secondary_opts)}
            name = word.partition("=")[0].rstrip(",:")
            if name not in options | {"--help", "-h"}:
                return f"no option {name!r} of {here.name}"
    return ""


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_commands_that_are_shown_are_there(page: Path) -> None:
    for command in shown(page):
        assert not wrong(command), f"{page.name}: {command}: {wrong(command)}"


def test_a_command_that_is_not_there_is_found() -> None:
    assert wrong("sbudget reprot budgets") == "no command 'reprot'"
    assert wrong("sbudget report budgets --yaml") == "no option '--yaml' of budgets"
    assert wrong("sbudget pause -m REASON") == ""
    assert any(command.startswith("sbudget sync") for command in shown(ROOT / "README.md"))


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_headings_have_air(page: Path) -> None:
    lines = page.read_text().splitlines()
    fenced = False
    for before, line in zip(["", *lines], lines, strict=False):
        fenced ^= line.startswith("```")
        if not fenced and re.match(r"#{1,4} ", line):
            assert before == "", f"{page.name}: no empty line before {line!r}"
