"""`sbudget doctor` over Slurm's replies and a ledger: what it collects, and its forms and codes."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from slurm_budget.cli.main import cli
from slurm_budget.ledger.store import Ledger

from .fake_slurm import FakeSlurm

CONFIG = """\
Configuration data as of 1000
ClusterName = main
SLURM_VERSION = 24.11.5
AccountingStorageTRES = gres/gpu
"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """Settings, an empty ledger, and a Slurm that knows two accounts; the settings' path."""
    (tmp_path / "slurm").mkdir()
    FakeSlurm(tmp_path / "slurm").says("config", CONFIG)
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    Ledger.open(url, create=True).close()
    config = tmp_path / "slurm-budget.toml"
    config.write_text(
        f'[ledger]\nurl = "{url}"\n[slurm]\nbin = "{tmp_path / "slurm"}"\n'
        f'conf = "{tmp_path / "slurm.conf"}"\n[snapshot]\npath = "{tmp_path / "snapshot"}"\n'
    )
    return config


def doctor(site: Path, *options: str) -> Result:
    return CliRunner().invoke(cli, ["--config", str(site), "doctor", *options])


def test_the_json_is_one_object_whose_fields_are_written_down(site: Path) -> None:
    done = doctor(site, "--json")
    assert done.exit_code == 1
    found = json.loads(done.output)
    assert (found["format"], found["cluster"]) == (1, "main")
    assert found["at"] > 0
    for finding in found["findings"]:
        assert set(finding) == {"check", "level", "what", "where", "mend"}
        assert finding["level"] in ("ok", "warning", "error")
        assert finding["what"]
        assert finding["mend"] or finding["level"] == "ok"
    levels = {finding["check"]: finding["level"] for finding in found["findings"]}
    assert levels["clock"] == "error"
    assert levels["commands"] == "warning"
    assert levels["budgets"] == "error"
    assert levels["sweeps"] == "error"
    assert levels["ledger"] == levels["slurmdbd"] == "ok"
    assert levels["hook"] == "warning", "this is not the controller"


def test_a_source_that_does_not_answer_leaves_the_others_to_be_looked_at(site: Path) -> None:
    fake = FakeSlurm(site.parent / "slurm")
    fake.script("sacctmgr", "echo 'sacctmgr: error: Connection refused' >&2; exit 1")
    fake.says("config", CONFIG)
    out = doctor(site).output
    assert "ERROR    slurmdbd: sacctmgr failed (exit 1)" in out
    assert "ok       version: slurmctld is 24.11.5" in out
    assert "ERROR    budgets: none for cluster main" in out
    (site.parent / "ledger.db").unlink()
    assert "ERROR    ledger: there is no ledger" in doctor(site).output


def test_strict_counts_warnings(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from slurm_budget.core.doctor import Finding
    from slurm_budget.usecases import doctor as use

    said = [Finding("a", "ok", "well"), Finding("b", "warning", "so so", "do it", "/x")]
    monkeypatch.setattr(use, "examine", lambda *_: ("main", said))
    assert doctor(site).exit_code == 0
    assert "warning  b: so so (/x)\n         mend: do it" in doctor(site).output
    assert doctor(site, "--strict").exit_code == 1
