"""sbudget-admit as the hook calls it: JSON in, JSON out, and never a reason to refuse a job."""

import json
import subprocess
import sys
import time

import hookcases
import pytest
from hookcases import GPU_HOUR, NOW

from slurm_budget.core.snapshot_write import encode

JOB = {"account": "vision", "qos": "funded", "tres_per_node": "gres:gpu:8", "script": "#!"}


def admit(path, request, *arguments):
    """The verdict and what stood on stderr."""
    text = request if isinstance(request, str) else json.dumps(request)
    command = [sys.executable, "-m", "slurm_budget.admit", str(path), *arguments]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    return json.loads(done.stdout), done.stderr


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "snapshot"
    file.write_text(encode(hookcases.snapshot()))
    return file


def test_a_funded_job(path):
    verdict, complaint = admit(path, {"job_desc": {**JOB, "time_limit": 600}, "now": NOW})
    assert complaint == ""
    assert verdict == {
        "verdict": "funded",
        "asked": "funded",
        "why": "fits",
        "min_runtime": 3600,
        "changes": {
            "qos": "funded-vision",
            "admin_comment": "sbudget:1:c=funded:a=funded:m=3600:w=fits",
        },
        "messages": [
            "sbudget: funded; protected for 1 h from vision's budget"
            " (304.5 of 2,688 GPU-hours left)."
        ],
        "promise": {"vision": 8 * GPU_HOUR, "org": 8 * GPU_HOUR},
    }


def test_what_was_promised_counts(path):
    promised = {"vision": 310 * GPU_HOUR}
    verdict, _ = admit(path, {"job_desc": JOB, "now": NOW, "promised": promised})
    assert (verdict["verdict"], verdict["why"]) == ("preemptible", "budget")


def test_the_clock_is_read_where_no_time_is_given(path):
    assert admit(path, {"job_desc": JOB})[0]["why"] == "blind"
    fresh = hookcases.snapshot()._replace(observed_at=int(time.time()))
    path.write_text(encode(fresh))
    assert admit(path, {"job_desc": JOB})[0]["why"] == "fits"


def test_without_a_snapshot(tmp_path):
    verdict, complaint = admit(tmp_path / "none", {"job_desc": JOB, "now": NOW}, "scavenger")
    assert verdict["changes"]["qos"] == "scavenger"
    assert complaint.startswith("sbudget-admit: no usable snapshot: ")
    assert complaint.count("\n") == 1


@pytest.mark.parametrize(
    "request_",
    ["", "no JSON", "[]", '{"job_desc": 5}', '{"job_desc": {"tres_per_node": "gpu:"}}', '"x'],
)
def test_a_request_that_is_none(path, request_):
    verdict, complaint = admit(path, request_)
    assert verdict == {"verdict": "unchanged", "changes": {}, "messages": [], "promise": {}}
    assert complaint.startswith("sbudget-admit: job left unchanged: ")
    assert complaint.count("\n") == 1


def test_a_qos_that_does_not_exist_is_never_left(path):
    verdict, _ = admit(path, {"job_desc": {"qos": "Funded", "tres_per_node": "gpu:"}})
    assert verdict["changes"] == {"qos": "preemptible"}
