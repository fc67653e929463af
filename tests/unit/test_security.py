"""docs/security.md names its tests, and they exist; no shell; text of others is text."""

import ast
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_budget import budgetfile, settings
from slurm_budget.core.budget_rules import CLUSTER_NAME, GRES, SLURM_NAME, USER_NAME, faults
from slurm_budget.errors import BadInput, BadInputs
from slurm_budget.ledger.budgets import Changeset
from slurm_budget.render import budgets as render
from slurm_budget.slurm.sacctmgr_steps import Row, Step
from slurm_budget.state.budget import Amount, BudgetNode, BudgetTree, UserBudget
from slurm_budget.text import jobids
from slurm_budget.text.printable import printable

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted((ROOT / "slurm_budget").rglob("*.py"))
WEEK = 604_800
ANY_NAME = st.text(st.characters(codec="utf-8"), max_size=20) | st.sampled_from(
    ["-i", "a,b", "a b", "a=b", "a'b", 'a"b', "a\nb", "a:b", "a|b", "a;b", "$(a)", "a\\", "", "a\0"]
)


def test_every_test_that_the_threat_model_names_exists() -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", (ROOT / "docs/security.md").read_text())
    assert len(named) > 30
    for file, test in named:
        text = (ROOT / file).read_text()
        assert re.search(rf"^def {test}\(", text, re.M), f"{file} has no {test}"


def _calls(path: Path) -> list[ast.Call]:
    return [n for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.Call)]


def test_nothing_of_ours_goes_through_a_shell() -> None:
    """No shell=True, no os.system or popen; and only three modules start processes at all."""
    starters = set()
    for path in SOURCES:
        for call in _calls(path):
            name = ast.unparse(call.func)
            where = f"{path}:{call.lineno}"
            assert name not in ("os.system", "os.popen", "eval", "exec"), where
            assert not name.startswith(("os.exec", "os.spawn", "pickle.", "marshal.")), where
            for given_ in call.keywords:
                assert given_.arg != "shell", where
            if name.startswith(("subprocess.run", "subprocess.Popen", "subprocess.call")):
                starters.add(path.relative_to(ROOT / "slurm_budget").as_posix())
    assert starters == {"slurm/command.py", "lua.py", "machine.py"}


def test_sql_is_made_of_constants_and_bound_values() -> None:
    """An f-string in a statement may hold names of ours alone, in the places that are listed."""
    found = set()
    for path in SOURCES:
        for call in _calls(path):
            name = ast.unparse(call.func).rpartition(".")[2]
            if name in ("execute", "exec_driver_sql", "text") and any(
                isinstance(arg, ast.JoinedStr) for arg in call.args
            ):
                found.add(path.relative_to(ROOT / "slurm_budget").as_posix())
    assert found == {
        f"ledger/{name}.py" for name in ("connect", "migrate", "names", "runs", "sums")
    }


@given(ANY_NAME)
def test_names_that_could_be_options_lists_or_lines_are_refused(name: str) -> None:
    """What reaches argv and the files of `sacctmgr load` starts with a letter, digit or `_`, and
    has nothing that sacctmgr, a shell or SQL would read."""
    tree = BudgetTree(
        "main", {name: BudgetNode(name, None, Amount("gpus", 1), users=(UserBudget(name),))}
    )
    broken = [fault.what for _, fault in faults(tree, WEEK, 0)]
    if not broken:
        assert re.fullmatch(r"[a-z0-9_][a-z0-9_.@-]*", name, re.ASCII)
    elsewhere = faults(BudgetTree(name, {}), WEEK, 0)
    assert bool(elsewhere) != bool(re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", name, re.ASCII))
    for pattern in (SLURM_NAME, USER_NAME, CLUSTER_NAME, GRES):
        if pattern.fullmatch(name):
            assert not re.search(r"[\s,='\"`;|&<>(){}\\*?#%!\x00]", name)
            assert not name.startswith("-")


@given(ANY_NAME)
def test_no_text_breaks_out_of_its_line_of_a_load_file(text: str) -> None:
    row = Row(("account", "a", "a", ""), (("description", text), ("fairshare", "1")), "root")
    lines = Step("load", "main", (row,)).text().split("\n")
    assert lines[:2] == ["Cluster - 'main'", "Parent - 'root'"]
    assert re.fullmatch(r"Account - 'a':Description='[^':\n]*':Fairshare=1", lines[2]), lines[2]
    assert lines[3:] == [""]


@given(ANY_NAME)
def test_no_name_becomes_an_option_of_sacctmgr(name: str) -> None:
    for step in (
        Step("modify", name, (Row(("user", name, name, name), (("fairshare", name),)),)),
        Step("add", name, (Row(("qos", "", "funded-" + name, ""), (("grptres", name),)),)),
    ):
        words = step.argv()
        assert words[:3] == ("sacctmgr", "-i", "-Q")
        assert not any(word.startswith("-") for word in words[3:])


@given(st.text())
def test_printable_leaves_nothing_that_a_terminal_obeys(text: str) -> None:
    shown = printable(text)
    assert shown.isprintable()
    assert len(shown) == len(text)
    assert printable(shown) == shown


def test_a_reason_cannot_forge_a_line_of_the_log_or_colour_it() -> None:
    bad = Changeset(1, "main", 0, "eve", "eve", "x\n\x1b[2Jchangeset 9  root: granted", 0)
    (line,) = [printable(line) for line in render.log_lines([bad], str)]
    assert line == "changeset 1  0  eve: x??[2Jchangeset 9  root: granted"


BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{chr(98 + n)}: &{chr(98 + n)} [{','.join(['*' + chr(97 + n)] * 9)}]\n" for n in range(12)
)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        pytest.param(BOMB, "stands for more than", id="billion laughs"),
        pytest.param("cluster: m\naccounts: " + "[" * 5000, "nested too deeply", id="depth"),
        pytest.param(
            "cluster: m\naccounts: {a: {gpus: " + "9" * 5000 + "}}", "5000 digits", id="digits"
        ),
        pytest.param("cluster: m\naccounts: {a: {gpus: 1e999}}", "not a whole number", id="inf"),
        pytest.param(
            "cluster: m\naccounts: !!python/object/apply:os.system ['false']",
            "not a mapping",
            id="tag",
        ),
        pytest.param("cluster: m\naccounts: {a: {gpus: !!int x}}", "is not YAML", id="false tag"),
        pytest.param(
            'cluster: "m\\nAccount - x"\naccounts: {a: {gpus: 1}}', "cluster name", id="cluster"
        ),
        pytest.param(
            'cluster: m\naccounts: {a: {gpus: 1, description: "\\e[2J"}}',
            "no terminal shows",
            id="escape sequence",
        ),
    ],
)
def test_a_hostile_budget_file_is_refused_with_its_place(text: str, what: str) -> None:
    with pytest.raises((BadInput, BadInputs), match=what) as caught:
        budgetfile.load(text, "b.yaml", window=WEEK, now=0)
    assert str(caught.value).startswith("b.yaml")
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize(
    "text",
    ["a = " + "[" * 5000, "[window]\nlength = " + "9" * 5000, "[window]\nlength = " + "9" * 40,
     "[qos]\nburst = inf", "[qos]\nburst = nan"],
    ids=["depth", "digits", "years", "infinite", "nan"],
)  # fmt: skip
def test_hostile_settings_are_refused(text: str, tmp_path: Path) -> None:
    file = tmp_path / "c.toml"
    file.write_text(text)
    with pytest.raises((BadInput, BadInputs), match=r"c\.toml"):
        settings.load(file)


@given(ANY_NAME)
def test_a_job_id_is_digits_and_nothing_else(text: str) -> None:
    try:
        found = jobids.parse(text)
    except BadInput:
        return
    assert re.fullmatch(r"[0-9+_\[\],%-]+", text.strip()), found
