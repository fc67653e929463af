"""What the choice of victims works on: space on nodes, runs that may yield, jobs that are owed."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class NodeSpace:
    """A node on which jobs could start. `free` are GPUs that are idle or that Slurm frees by itself
    for a funded job, by type; `total` what the node has. `cpus_free` None: CPUs never bind.

    `switches` is its path in the topology from its leaf switch (or block) upwards; empty without.
    `cpus_total` is only asked for exclusive jobs; None: a node whose GPUs are all free is whole.
    No job spans two `island`s: under topology/tree the name of the top switch, else empty.
    """

    name: str
    total: Mapping[str, int]
    free: Mapping[str, int]
    partitions: frozenset[str]
    switches: tuple[str, ...] = ()
    cpus_free: int | None = None
    features: frozenset[str] = frozenset()
    cpus_total: int | None = None
    island: str = ""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A run that may be requeued for some owed job: past its protection, requeueable, not cooling.

    `gpus_on` are the GPUs it holds on each of its nodes (of type `gpu_type`; empty: untyped).
    `lost` is the work lost when it goes, in GPU-milliseconds. `started` is epoch seconds.
    `cpus_on` are its CPUs by node; a node that is missing there gets none back.
    """

    job_id: int
    account: str
    user: str
    gpus_on: Mapping[str, int]
    gpu_type: str
    started: int
    lost: int
    cpus_on: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Demand:
    """What an owed job needs to start. `gpu_type` empty: any type.

    `per_node` given: `nodes` nodes with so many GPUs each. None: `total` GPUs on at least `nodes`
    nodes, and at most `most_nodes` (None: any number), however they spread, at least one on each:
    `-N2 --gpus=10` starts on 8 and 2 as on 5 and 5. `step`: on each node a multiple of so many, as
    `--gpus-per-task=2` wants; `total` is one too.

    `features`: a node must have all of at least one of these sets (`a&b|c` is {a, b}, {c}); empty:
    any node will do. On `excluded` nodes it never starts.
    """

    job_id: int
    account: str
    user: str
    partitions: frozenset[str]
    gpu_type: str
    total: int
    nodes: int
    per_node: int | None
    cpus_per_node: int = 0
    exclusive: bool = False
    features: tuple[frozenset[str], ...] = ()
    most_nodes: int | None = None
    step: int = 1
    excluded: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Choice:
    """Requeue these runs and the job starts on `nodes`. No victims: it starts without our help."""

    job_id: int
    victims: tuple[Candidate, ...]
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Leave:
    """A job that nothing is done for, and why."""

    job_id: int
    reason: str
