"""What slurmctld says of the network, and of when it preempts by itself."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_budget.core.exempt import effective as in_force
from slurm_budget.core.exempt import exempt
from slurm_budget.slurm import partitions, preemption, squeue, topology
from slurm_budget.slurm.command import Commands, Reply
from slurm_budget.state.jobs import Place
from slurm_budget.state.slurm import Partition, Preemption, Qos
from slurm_budget.state.sweep import SweepPolicy

TREE = """\
SwitchName=leaf1 Level=0 LinkSpeed=1 Nodes=n[1-2]
SwitchName=leaf2 Level=0 LinkSpeed=1 Nodes=n[3-4]
SwitchName=spine Level=1 LinkSpeed=1 Nodes=n[1-4] Switches=leaf[1-2]
SwitchName=far Level=0 LinkSpeed=1 Nodes=n9
"""
BLOCKS = """\
BlockName=b1 BlockIndex=0 Nodes=n[1-2] BlockSize=2
BlockName=b2 BlockIndex=1 Nodes=n[3-4] BlockSize=2
AggregatedBlock=b[1-2] BlockIndex=2 Nodes=n[1-4] BlockSize=4
"""


def test_a_node_has_its_leaf_first_and_its_island_is_the_top() -> None:
    assert topology.parse(TREE) == {
        "n1": Place(("leaf1", "spine"), "spine"),
        "n2": Place(("leaf1", "spine"), "spine"),
        "n3": Place(("leaf2", "spine"), "spine"),
        "n4": Place(("leaf2", "spine"), "spine"),
        "n9": Place(("far",), "far"),
    }


def test_older_versions_end_lines_with_a_blank_and_newer_ones_need_not_give_block_sizes() -> None:
    blank = TREE.replace("\n", " \n")
    assert topology.parse(blank) == topology.parse(TREE)
    plain = "BlockName=b1 BlockIndex=0 Nodes=n[1-2]\n"
    assert topology.parse(plain) == {name: Place(("b1",)) for name in ("n1", "n2")}


def test_blocks_are_near_and_aggregated_ones_farther_but_no_islands() -> None:
    assert topology.parse(BLOCKS)["n3"] == Place(("b2", "b[1-2]"), "")


@st.composite
def trees(draw: st.DrawFn) -> dict[str, tuple[str, ...]]:
    """Path to the top by node: every node has as many switches above it as any in its tree."""
    depth = draw(st.integers(1, 4))
    out = {}
    for number in range(draw(st.integers(1, 12))):
        top = draw(st.integers(0, 1))
        path = [f"t{top}"]
        for _ in range(depth - 1):
            path.append(f"{path[-1]}x{draw(st.integers(0, 2))}")
        out[f"gpu{number:03}"] = tuple(reversed(path))
    return out


@given(trees(), st.randoms(use_true_random=False))
def test_what_slurm_would_print_reads_as_the_tree_it_is(
    paths: dict[str, tuple[str, ...]], chance: object
) -> None:
    below: dict[tuple[int, str], list[str]] = {}
    for node, path in paths.items():
        for level, switch in enumerate(path):
            below.setdefault((level, switch), []).append(node)
    lines = [
        f"SwitchName={name} Level={level} LinkSpeed=1 Nodes={','.join(nodes)}"
        for (level, name), nodes in below.items()
    ]
    chance.shuffle(lines)  # type: ignore[attr-defined]
    found = topology.parse("\n".join(lines))
    assert found == {node: Place(path, path[-1]) for node, path in paths.items()}


class Says(Commands):
    """Slurm that answers one thing."""

    def __init__(self, code: int, out: str, err: str) -> None:
        super().__init__()
        self.answer = code, out, err

    def run(self, *argv: str, stdin: str | None = None, timeout: float | None = None) -> Reply:
        return Reply(argv, *self.answer, 0.0)


def test_a_flat_cluster_has_no_places_and_that_is_no_failure() -> None:
    assert (
        topology.places(Says(1, "", "scontrol: error: No topology information available\n")) == {}
    )


# -- PreemptExemptTime ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("job", "partition", "over", "everywhere", "effective"),
    [
        (7200, 0, False, 3600, 0),
        (7200, 0, True, 3600, 7200),
        (7200, None, False, 3600, 7200),
        (None, 0, True, 3600, 0),
        (0, None, False, 3600, 0),
        (None, None, False, 3600, 3600),
        (None, None, False, None, 0),
    ],
)
def test_whose_exempt_time_rules(
    job: int | None, partition: int | None, over: bool, everywhere: int | None, effective: int
) -> None:
    flags = frozenset({"OverPartQOS"} if over else ())
    qos = Qos("preemptible", preempt_exempt_time=job, flags=flags)
    above = Qos("part", preempt_exempt_time=partition)
    seen = Preemption({"preemptible": qos, "part": above}, {"gpu": Partition("part")}, everywhere)
    policy = SweepPolicy(exempt=1200)
    row = dict.fromkeys(squeue.FIELDS, "") | {"JobID": "1", "Partition": "gpu"}
    run = squeue.job(row | {"QOS": "preemptible"})
    assert exempt(run, policy, seen) == effective
    assert exempt(replace(run, qos="unheard-of"), policy, seen) == 1200
    bare = exempt(run, policy, replace(seen, partitions={}))
    assert bare == in_force(qos, None, everywhere)


def test_what_partitions_ask_and_an_unset_exempt_time() -> None:
    text = (
        "PartitionName=gpu AllowQos=ALL Default=YES QoS=N/A DefaultTime=NONE\n"
        "PartitionName=big AllowQos=a,B Default=NO QoS=part DefaultTime=NONE MinNodes=2\n"
        "PartitionName=old DenyAccounts=x DenyQos=a QoS=N/A MinNodes=0\n"
    )
    found = partitions.parse(text)
    assert {name: one.qos for name, one in found.items()} == {"gpu": "", "big": "part", "old": ""}
    assert {name for name, one in found.items() if one.min_nodes > 1} == {"big"}
    allowed = {name: [one.allows(qos) for qos in ("a", "b", "c")] for name, one in found.items()}
    assert allowed == {"gpu": [True] * 3, "big": [True, True, False], "old": [False, True, True]}
    times = [preemption.everywhere({"PreemptExemptTime": t}) for t in ("NONE", "-1", "1-00:00:00")]
    assert times == [None, None, 86400]
