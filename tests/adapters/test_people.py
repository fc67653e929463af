"""AdminLevel and accounts of users as sacctmgr has them; setup's right, given and taken back."""

from pathlib import Path

import pytest

from slurm_budget.errors import SbudgetError, SlurmUnreachable
from slurm_budget.slurm import people

from .fake_slurm import FakeSlurm

SACCTMGR = """\
case "$*" in
    *withassoc*) cat people;;
    *adminlevel) cat level;;
    *"format=user") cat users;;
    "-i "*) if [ -s no ]; then cat no >&2; exit 1; fi;;
esac"""


@pytest.fixture
def slurm(tmp_path: Path) -> FakeSlurm:
    fake = FakeSlurm(tmp_path)
    fake.script("sacctmgr", SACCTMGR)
    fake.says("level", "")
    fake.says("no", "")
    return fake


def changes(slurm: FakeSlurm) -> list[str]:
    calls = (slurm.folder / "calls").read_text().splitlines()
    return [call.removeprefix("sacctmgr -i ") for call in calls if " -i " in call]


def test_users_with_their_accounts_and_those_who_have_none(slurm: FakeSlurm) -> None:
    slurm.says("users", "ana\nroot\nzoe\n")
    slurm.says("people", "ana|main|vision\nana|main|language\nana|other|maths\nroot|main|root\n")
    assert people.accounts_of(slurm.commands(), "main") == {
        "ana": {"vision", "language"},
        "root": {"root"},
        "zoe": set(),
    }
    slurm.says("users", "")
    with pytest.raises(SlurmUnreachable):
        people.accounts_of(slurm.commands(), "main")


def test_a_new_user_is_added_and_deleted_again(slurm: FakeSlurm) -> None:
    before = people.make_administrator(slurm.commands(), "sweeper", "main")
    people.take_back(slurm.commands(), "sweeper", before)
    assert changes(slurm) == [
        "add user sweeper account=root cluster=main adminlevel=administrator",
        "delete user sweeper",
    ]


def test_a_user_who_was_there_gets_back_the_level_of_before(slurm: FakeSlurm) -> None:
    slurm.says("level", "sweeper|Operator\n")
    assert people.admin_level(slurm.commands(), "sweeper") == "Operator"
    before = people.make_administrator(slurm.commands(), "sweeper", "main")
    people.take_back(slurm.commands(), "sweeper", before)
    assert changes(slurm) == [
        "modify user sweeper set adminlevel=administrator",
        "modify user sweeper set adminlevel=Operator",
    ]


def test_a_refusal_is_told_with_the_command(slurm: FakeSlurm) -> None:
    slurm.says("no", " Your user doesn't have privilege to perform this action\n")
    with pytest.raises(SbudgetError) as caught:
        people.make_administrator(slurm.commands(), "sweeper", "main")
    assert "doesn't have privilege" in caught.value.what
    assert caught.value.where.startswith("sacctmgr add user sweeper")
