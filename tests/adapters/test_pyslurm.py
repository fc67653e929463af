"""slurm.backend = "pyslurm" without a Slurm: which version it takes, and what it makes of a job.

The pyslurm here is a stand-in of the attributes that we read, for machines without the real one;
tests/cluster/test_pyslurm.py holds the real one beside the commands, on a real Slurm.
"""

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from slurm_budget.cli.context import Context
from slurm_budget.errors import BadInput, SlurmUnreachable
from slurm_budget.settings import Settings
from slurm_budget.slurm import pyslurm_library, versions
from slurm_budget.slurm.pyslurm_port import PyslurmSlurm
from slurm_budget.state.jobs import Job

NONE = None
PENDING = {
    "id": 57, "user_id": 1005, "user_name": "ana", "account": "Vision", "partition": "gpu,big",
    "qos": "preemptible", "state": "PENDING", "state_reason": "Resources", "submit_time": 1000,
    "eligible_time": 1000, "start_time": NONE, "end_time": NONE, "time_limit": 90,
    "allocated_nodes": NONE, "num_nodes": 2, "cpus": 4, "priority": 77, "is_requeueable": True,
    "is_batch_job": True, "array_id": NONE, "array_task_id": NONE, "array_tasks_waiting": NONE,
    "array_tasks_parallel": NONE, "heterogeneous_id": NONE, "heterogeneous_offset": NONE,
    "preempt_time": NONE, "requeue_count": 0, "dependencies": NONE, "constraints": ["a&b"],
    "resource_sharing": "NO", "max_nodes": 2, "gres_per_node": {"gres/gpu:h100": 4},
    "tres_per_task": NONE, "run_time": 0, "required_nodes": NONE,
    "excluded_nodes": NONE,
    "admin_comment": "JS1:x", "allocated_tres": NONE,
}  # fmt: skip


def resources(nodes: int, **gpus: int) -> SimpleNamespace:
    gres = {name.replace("_", ":"): SimpleNamespace(count=count) for name, count in gpus.items()}
    return SimpleNamespace(gres=gres, node=SimpleNamespace(count=nodes))


def pending(**changes: object) -> SimpleNamespace:
    fields = PENDING | {"requested_tres": resources(2, gpu=8, gpu_h100=8)} | changes
    return SimpleNamespace(**fields)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Slurm's commands of 26.05.5, and a stand-in of pyslurm 26.5.0, first on the path."""
    scontrol = tmp_path / "scontrol"
    scontrol.write_text('#!/bin/sh\n[ "$1" = -V ] && echo "slurm 26.05.5"\n')
    scontrol.chmod(0o755)
    (tmp_path / "slurm.conf").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("SLURM_CONF", "/not/this/one")
    monkeypatch.setenv("SLURM_BITSTR_LEN", "64")
    install(tmp_path, "26.5.0")
    yield tmp_path
    sys.modules.pop("pyslurm", None)


def install(site: Path, version: str, code: str = "") -> None:
    for old in site.glob("pyslurm-*"):
        (old / "METADATA").unlink()
        old.rmdir()
    info = site / f"pyslurm-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: pyslurm\nVersion: {version}\n")
    (site / "pyslurm.py").write_text(
        f"{code}\n__version__ = {version!r}\nclass PyslurmError(Exception): pass\n"
    )
    sys.modules.pop("pyslurm", None)
    importlib.invalidate_caches()


def opened(site: Path) -> PyslurmSlurm:
    ctx = Context()
    slurm = {"backend": "pyslurm", "bin": site, "conf": site / "slurm.conf"}
    ctx.settings = Settings.model_validate({"slurm": slurm})
    port = ctx.slurm()
    assert isinstance(port, PyslurmSlurm)
    return port


def read(port: PyslurmSlurm, *jobs: SimpleNamespace) -> list[Job]:
    library = sys.modules["pyslurm"]
    library.Jobs = SimpleNamespace(load=lambda: {job.id: job for job in jobs})  # type: ignore[attr-defined]
    return port.jobs()


def test_pyslurm_of_another_version_is_refused_before_it_is_loaded(site: Path) -> None:
    install(site, "25.11.2", code="raise SystemExit('libslurm of another version: crash')")
    with pytest.raises(BadInput) as found:
        opened(site)
    assert str(found.value) == (
        "slurm.backend: pyslurm 25.11.2 is for Slurm 25.11, and this machine has slurm 26.05.5\n"
        '  mend: install pyslurm 26.5, or set slurm.backend = "commands"'
    )


def test_a_missing_pyslurm_is_named_with_the_version_to_install(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(name: str) -> str:
        raise pyslurm_library.PackageNotFoundError(name)

    monkeypatch.setattr(pyslurm_library, "version", missing)
    with pytest.raises(BadInput, match="is not installed") as found:
        opened(site)
    assert "install pyslurm 26.5, which is for Slurm 26.05" in found.value.mend


def test_a_pyslurm_that_cannot_be_loaded_is_no_reason_to_use_the_commands(site: Path) -> None:
    install(site, "26.5.1", code="raise ImportError('libslurmfull.so: no such file')")
    with pytest.raises(BadInput, match="libslurmfull"):
        opened(site)


def test_an_upgrade_beneath_a_running_daemon_is_seen(site: Path) -> None:
    opened(site)
    loaded = sys.modules["pyslurm"]
    install(site, "26.11.0")
    sys.modules["pyslurm"] = loaded
    (site / "scontrol").write_text("#!/bin/sh\necho slurm 26.11.1\n")
    with pytest.raises(BadInput, match=r"26\.5\.0 is loaded, and 26\.11\.0 is installed now"):
        opened(site)


def test_without_slurm_conf_libslurm_is_not_asked(site: Path) -> None:
    (site / "slurm.conf").unlink()
    with pytest.raises(BadInput, match=r"needs slurm\.conf"):
        opened(site)


def test_it_reads_the_same_slurm_conf_as_the_commands_and_whole_arrays(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = "import os\nSEEN = os.environ['SLURM_CONF'], os.environ['SLURM_BITSTR_LEN']"
    install(site, "26.5.0", code)
    opened(site)
    assert (str(site / "slurm.conf"), "0") == sys.modules["pyslurm"].SEEN


def test_a_job_is_what_squeue_would_tell_of_it(site: Path) -> None:
    done = pending(id=58, state="COMPLETED")
    port = opened(site)
    (job,) = read(port, pending(), done)
    assert [(over.id, over.state) for over in port.queue().ended] == [(58, "COMPLETED")]
    assert (job.id, job.label, job.user, job.account) == (57, "57", "ana", "vision")
    assert (job.partitions, job.time_limit, job.priority) == (("gpu", "big"), 5400, 77)
    assert (job.gpus, job.per_node, job.num_nodes, job.max_nodes) == ({"h100": 8}, 4, 2, 2)
    assert (job.features, job.exclusive, job.requeue, job.batch) == ("a&b", True, True, True)
    assert (job.start, job.dependency, job.admin_comment) == (None, "", "JS1:x")
    (choosy,) = read(opened(site), pending(excluded_nodes="n[1-2]"))
    assert (job.excluded, choosy.excluded) == ((), ("n1", "n2"))


@pytest.mark.parametrize(
    ("fields", "label", "tasks", "at_once"),
    [
        ({"array_id": 57, "array_tasks_waiting": "5-9", "array_tasks_parallel": 4},
         "57_[5-9%4]", 5, 4),
        ({"array_id": 57, "array_tasks_waiting": "5-9"}, "57_[5-9]", 5, 5),
        ({"array_id": 50, "array_task_id": 3}, "50_3", 1, 1),
        ({"array_id": 50}, "50_0", 1, 1),
        ({"heterogeneous_id": 56, "heterogeneous_offset": 1}, "56+1", 1, 1),
        ({"heterogeneous_id": 57}, "57+0", 1, 1),
    ],
)  # fmt: skip
def test_arrays_and_het_jobs_are_named_as_slurm_does(
    site: Path, fields: dict[str, object], label: str, tasks: int, at_once: int
) -> None:
    (job,) = read(opened(site), pending(**fields))
    assert (job.label, job.tasks, job.at_once) == (label, tasks, at_once)


def test_a_dependency_stays_one(site: Path) -> None:
    kinds: dict[str, object] = {"afterok": [5, "6_*"], "singleton": False, "satisfy": "all"}
    lost = kinds | {"afterok": []}
    first, second = read(
        opened(site), pending(dependencies=kinds), pending(id=58, dependencies=lost)
    )
    assert (first.dependency, second.dependency) == ("afterok:5,afterok:6_*", "other")


def test_a_type_of_digits_that_pyslurm_takes_for_a_count_is_not_believed(site: Path) -> None:
    asked = pending(gres_per_node={"gres/gpu": 4090}, requested_tres=resources(1, gpu_4090=2))
    with pytest.raises(SlurmUnreachable, match="4090 GPUs on each node and 2 in all"):
        read(opened(site), asked)


def test_a_queue_that_was_not_told_is_not_empty(site: Path) -> None:
    port = opened(site)
    library = sys.modules["pyslurm"]

    def load() -> None:
        raise library.PyslurmError("Unable to contact slurm controller")

    library.Jobs = SimpleNamespace(load=load)  # type: ignore[attr-defined]
    with pytest.raises(SlurmUnreachable, match="Unable to contact"):
        port.jobs()


def test_a_pyslurm_that_words_jobs_otherwise_is_said_to(site: Path) -> None:
    job = pending()
    del job.gres_per_node
    with pytest.raises(SlurmUnreachable, match=r"pyslurm 26\.5\.0 tells of jobs in another way"):
        read(opened(site), job)


@pytest.mark.parametrize(
    ("release", "slurm"),
    [("25.11.2", (25, 11)), ("25.5.0", (25, 5)), ("26.05.0", (26, 5)), ("odd", (0, 0))],
)
def test_a_release_of_pyslurm_names_its_slurm(release: str, slurm: versions.Version) -> None:
    assert versions.pyslurm(release) == slurm
