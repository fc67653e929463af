"""How many of Slurm's commands a sweep runs: as many for one job as for two hundred."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from slurm_budget.core.marker import Marker
from slurm_budget.errors import SlurmUnreachable
from slurm_budget.ledger.store import Ledger
from slurm_budget.settings import LedgerSettings, Settings, SlurmSettings, SnapshotSettings
from slurm_budget.slurm import sacct, squeue, squeue_shares
from slurm_budget.slurm.command import Commands, Reply
from slurm_budget.slurm.port import CommandSlurm
from slurm_budget.state.budget import Amount, BudgetNode, BudgetTree
from slurm_budget.state.jobs import Place
from slurm_budget.usecases.cluster import cluster_now
from slurm_budget.usecases.fence import Fence
from slurm_budget.usecases.sweep import sweep
from slurm_budget.usecases.swept import Swept

NOW = 1_796_000_000
CONFIG = """\
Configuration data as of 1796000000
AccountingStorageTRES   = cpu,mem,energy,node,billing,fs/disk,vmem,pages,gres/gpu
ClusterName             = main
PreemptExemptTime       = 00:20:00
TopologyPlugin          = topology/tree
"""
NODE = (
    "NodeName=n{0} CPUAlloc=8 CPUEfctv=64 CPUTot=64 ActiveFeatures=(null) Gres=gpu:h100:8 "
    "State=MIXED Partitions=gpu CfgTRES=cpu=64,gres/gpu=8 AllocTRES=cpu=8,gres/gpu=8\n"
)
MOST = 10
"""Commands by which a sweep sees everything, its own deeds too; each deed is one more."""


class Fake(Commands):
    """Slurm with so many jobs; counts as the funnel does, and keeps the deeds apart."""

    def __init__(self, count: int, topology: bool = True) -> None:
        super().__init__()
        self.asked: list[str] = []
        self.deeds: list[str] = []
        self.answers = {
            "scontrol show config": CONFIG if topology else CONFIG.replace("tree", "default"),
            " ".join(squeue.argv()): "".join(_rows(count)),
            " ".join(squeue_shares.EXCLUDED): "",
            "scontrol -d show job": "".join(_details(count)),
            "scontrol -o -a show node": "".join(NODE.format(i) for i in range(1, 2 * count + 1)),
            "scontrol show topology": f"SwitchName=s Level=0 LinkSpeed=1 Nodes=n[1-{2 * count}]\n",
            "scontrol -o -a show partition": "PartitionName=gpu QoS=N/A DefaultTime=NONE\n",
        }

    def run(self, *argv: str, stdin: str | None = None, timeout: float | None = None) -> Reply:
        line = " ".join(argv)
        if argv[0] == "scancel" or argv[1] in ("requeue", "update", "release"):
            self.deeds.append(argv[1])
            return Reply(argv, 0, "", "", 0.0)
        self.asked.append(line)
        if argv[0] == "sacctmgr" and "qos" in argv:
            return Reply(argv, 0, "preemptible|0|00:01:00||00:20:00|requeue||0.1||\n", "", 0.0)
        if argv[0] == "sacctmgr":
            return Reply(argv, 0, "root|\nvision|root\nlanguage|root\n", "", 0.0)
        return Reply(argv, 0, self.answers[line], "", 0.0)

    @contextmanager
    def stream(self, *argv: str) -> Iterator[Iterator[str]]:
        """One run of vision that has ended: language has had less of its share."""
        self.asked.append(" ".join(argv))
        start = NOW - 500_000
        row = [
            *("900000", "900000", "main", "ana", "vision", "funded-vision", "gpu", str(start)),
            *(str(start), str(start + 300_000), "300000", "0", "COMPLETED", "node=9,gres/gpu=900"),
            *("9", str(start), "6000", str(Marker("funded", "funded", 3600, "fits"))),
        ]
        yield iter([sacct.SEPARATOR.join(row) + "\n"])


def _rows(count: int) -> Iterator[str]:
    """So many gangs of vision, past their protection and unevenly spread, and as many that wait."""
    plain = dict.fromkeys(squeue.FIELDS, "N/A") | {
        "UserName": "ana", "Account": "vision", "Partition": "gpu", "State": "RUNNING",
        "SubmitTime": str(NOW - 20_000), "EligibleTime": str(NOW - 20_000), "Reason": "None",
        "StartTime": str(NOW - 15_000), "TimeLimit": "1-00:00:00", "NumNodes": "2", "NumCPUs": "2",
        "tres-alloc": "node=2,gres/gpu=10", "Requeue": "1", "BatchFlag": "1", "RestartCnt": "0",
        "PriorityLong": "1", "MaxNodes": "2", "OverSubscribe": "OK",
    }  # fmt: skip
    for number in range(1, count + 1):
        row = plain | {
            "JobID": str(number), "JobArrayID": str(number), "QOS": "funded-vision",
            "NodeList": f"n[{2 * number - 1}-{2 * number}]",
            "admin_comment": str(Marker("funded", "funded", 3600, "fits")),
        }  # fmt: skip
        yield squeue.SEPARATOR.join(row[name] for name in squeue.FIELDS) + squeue.SEPARATOR + "\n"
    for number in range(count + 1, 2 * count + 1):
        row = plain | {
            "JobID": str(number), "JobArrayID": str(number), "QOS": "funded-language",
            "Account": "language", "UserName": "ben", "State": "PENDING", "Reason": "Resources",
            "NodeList": "", "admin_comment": str(Marker("funded", "funded", 600, "fits")),
        }  # fmt: skip
        yield squeue.SEPARATOR.join(row[name] for name in squeue.FIELDS) + squeue.SEPARATOR + "\n"


def _details(count: int) -> Iterator[str]:
    for number in range(1, count + 1):
        yield f"JobId={number} JobName=x\n   JOB_GRES=gpu:h100:10\n"
        yield f"     Nodes=n{2 * number - 1} CPU_IDs=0 Mem=0 GRES=gpu:h100:8(IDX:0-7)\n"
        yield f"     Nodes=n{2 * number} CPU_IDs=0 Mem=0 GRES=gpu:h100:2(IDX:0-1)\n"


def swept(commands: Fake, tmp_path: Path, now: int = NOW) -> Swept:
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    settings = Settings(
        ledger=LedgerSettings(url=url),
        slurm=SlurmSettings(cluster="main"),
        snapshot=SnapshotSettings(path=tmp_path / "snapshot"),
    )
    tree = BudgetTree(
        "main",
        {name: BudgetNode(name, None, Amount("gpus", 5000)) for name in ("vision", "language")},
    )
    with Ledger.open(url, create=True) as ledger:
        if not ledger.budget_tree("main").nodes:
            ledger.apply_changeset("main", tree, "root", "root", "test", base=0, now=NOW)
        fence = Fence(ledger, "main", "ctl:1", 60, 900, lambda: now)
        fence.take()
        found = sweep(
            CommandSlurm(commands),
            ledger,
            lambda cluster: lambda since, until: sacct.runs(commands, cluster, since, until),
            settings,
            now,
            fence=fence,
        )
        fence.release()
        return found


@pytest.mark.parametrize("count", [1, 200])
def test_a_whole_sweep_asks_slurm_at_most_ten_times(count: int, tmp_path: Path) -> None:
    slurm = Fake(count)
    first = swept(slurm, tmp_path)
    assert len(first.world.jobs) == 2 * count
    assert first.acted.signalled, "somebody was owed, and a run was warned"
    assert len(slurm.asked) <= MOST, slurm.asked
    assert len(set(slurm.asked)) == len(slurm.asked), "nothing is asked for twice"
    assert "scontrol -d show job" in slurm.asked, "the shares are uneven here"
    again = Fake(count)
    second = swept(again, tmp_path, NOW + 60)
    assert second.acted.requeued == first.acted.signalled
    assert len(again.asked) <= MOST, again.asked
    # a warning takes two calls: the steps of srun, and the batch shell
    assert len(again.deeds) == len(second.acted.requeued) + 2 * len(second.acted.signalled)


def test_nodes_stand_where_the_topology_says_and_one_that_no_switch_reaches_alone(
    tmp_path: Path,
) -> None:
    slurm = Fake(2)
    slurm.answers["scontrol show topology"] = "SwitchName=s Level=0 LinkSpeed=1 Nodes=n[1-3]\n"
    places = {node.name: node.place for node in swept(slurm, tmp_path).world.nodes}
    assert places["n3"] == Place(("s",), "s")
    assert places["n4"] == Place((), "n4")


def test_a_topology_that_only_the_nodes_tell_of_is_asked_for(tmp_path: Path) -> None:
    """From 25.05 on it may stand in topology.yaml, and slurm.conf says `flat`."""
    slurm = Fake(1, topology=False)
    nodes = slurm.answers["scontrol -o -a show node"]
    slurm.answers["scontrol -o -a show node"] = nodes.replace(
        "Partitions=gpu", "Topology=fabric:b1 Partitions=gpu"
    )
    block = "BlockName=b1 BlockIndex=0 Nodes=n[1-2] BlockSize=2\n"
    slurm.answers["scontrol show topology"] = block
    assert {node.place for node in swept(slurm, tmp_path).world.nodes} == {Place(("b1",), "")}


def test_a_cluster_without_topology_is_not_asked_for_one(tmp_path: Path) -> None:
    slurm = Fake(1, topology=False)
    swept(slurm, tmp_path)
    assert "scontrol show topology" not in slurm.asked
    assert "scontrol show config" in slurm.asked


def test_the_report_of_the_cluster_says_nothing_when_slurm_does_not(tmp_path: Path) -> None:
    """`sbudget` exits 6 by this error."""
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    with Ledger.open(url, create=True) as ledger, pytest.raises(SlurmUnreachable) as found:
        cluster_now(CommandSlurm(Commands(bin=tmp_path)), ledger, Settings(), NOW)
    assert (int(found.value.code), found.value.mend != "") == (6, True)
