"""`sbudget fit` against a Slurm that answers, or does not: names that are not there are said."""

from pathlib import Path

import pytest

from slurm_budget.core.fit import Fit, parse
from slurm_budget.core.snapshot_write import encode
from slurm_budget.errors import BadInput, LedgerUnreachable
from slurm_budget.ledger.store import Ledger
from slurm_budget.settings import Settings
from slurm_budget.slurm.port import CommandSlurm
from slurm_budget.state.snapshot import AccountFacts, Policy, Snapshot
from slurm_budget.usecases.fit import would_fit

from .fake_slurm import FakeSlurm

HOUR, NOW = 3_600_000, 100_000
SACCTMGR = """\
case "$*" in
    *"show user"*"name=ana"*) echo "vision|vision"; echo "seeing|vision";;
    *"show user"*) true;;
    *"show assoc"*) cat assoc;;
esac"""


@pytest.fixture
def slurm(tmp_path: Path) -> FakeSlurm:
    fake = FakeSlurm(tmp_path)
    fake.script("sacctmgr", SACCTMGR)
    fake.says("partitions", "PartitionName=gpu Default=YES\n")
    fake.says("jobs", "")
    return fake


def asked(slurm: FakeSlurm, size: str = "8x4h", **given: object) -> tuple[Fit, list[str]]:
    accounts = {"vision": AccountFacts("vision", None, "funded-vision", 99 * HOUR, 99 * HOUR, 0)}
    facts = Snapshot("main", NOW, NOW, Policy(node_gpus=8), accounts, {}, {"seeing": "vision"})
    path = slurm.folder / "snapshot"
    path.write_text(encode(facts))
    settings = Settings.model_validate({"snapshot": {"path": str(path)}})
    question = {
        "user": "ana", "named": False, "account": None, "partition": None, "gpu_type": "",
        "limit": None, "preemptible": False,
    } | given  # fmt: skip
    port = CommandSlurm(slurm.commands())
    return would_fit(port, no_ledger, settings, parse(size), NOW, **question)  # type: ignore[arg-type]


def no_ledger() -> Ledger:
    raise LedgerUnreachable("not for this user")


def test_a_job_that_can_be_is_answered(slurm: FakeSlurm) -> None:
    assert asked(slurm)[0].verdict == "funded"
    assert asked(slurm, named=True, account="Seeing")[0].verdict == "funded"
    assert asked(slurm, account="language")[0].why == "account", "Slurm knows it, no budget does"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            {"account": "visoin"},
            "no account 'visoin' on cluster main\n  mend: did you mean vision?",
        ),
        ({"user": "anna"}, "anna has no account on main"),
        ({"user": "anna", "named": True, "account": "vision"}, "Slurm shows no such user there"),
        (
            {"named": True, "account": "language"},
            "not in account language on cluster main\n  mend: their accounts: seeing, vision",
        ),
        ({"partition": "gpux"}, "no node is in partition 'gpux'\n  mend: did you mean gpu?"),
        ({"gpu_type": "a100"}, "has GPUs of type 'a100'\n  mend: types there: h100"),
        ({"size": "9x1h"}, "it can never start: partition gpu has 8 GPUs in all"),
    ],
)
def test_what_is_not_there_is_said(slurm: FakeSlurm, given: dict[str, object], words: str) -> None:
    with pytest.raises(BadInput) as caught:
        asked(slurm, **given)  # type: ignore[arg-type]
    assert words in str(caught.value)


def test_no_account_is_called_wrong_while_slurmdbd_is_away(slurm: FakeSlurm) -> None:
    slurm.script("sacctmgr", "echo 'sacctmgr: error: slurmdbd: Connection refused' >&2; exit 1")
    found, unread = asked(slurm, account="visoin", named=True)
    assert found.why == "account"
    assert any(line.startswith("accounts: sacctmgr failed") for line in unread)
