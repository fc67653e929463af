"""What slurmdbd keeps that we write: associations and QOS. Unset is None, never 0."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Fairshare = int | Literal["parent"]
Kind = Literal["qos", "account", "user"]
ROOT = "root"

AssocKey = tuple[str, str, str]
"""(account, user, partition); user and partition are empty for an account's own row."""


@dataclass(frozen=True, slots=True)
class Association:
    """One row of `sacctmgr show assoc`. `user` and `partition` are empty for an account's own row;
    `parent` is empty for a user's row.

    `qos` and `default_qos` are what is in force, inherited from accounts above where this row says
    nothing; `own_qos` and `own_default_qos` are what this row says itself. Limits are canonical
    text (text.tres.canonical)."""

    cluster: str
    account: str
    user: str = ""
    partition: str = ""
    parent: str = ""
    fairshare: Fairshare = 1
    qos: frozenset[str] = frozenset()
    default_qos: str = ""
    grp_tres: str = ""
    max_tres: str = ""
    own_qos: frozenset[str] = frozenset()
    own_default_qos: str = ""

    @property
    def key(self) -> AssocKey:
        return self.account, self.user, self.partition


@dataclass(frozen=True, slots=True)
class AccountInfo:
    """What Slurm keeps of an account beside its associations."""

    description: str = ""
    coordinators: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Qos:
    """One row of `sacctmgr show qos`; times in seconds."""

    name: str
    priority: int = 0
    preempt: frozenset[str] = frozenset()
    preempt_mode: str = "cluster"
    preempt_exempt_time: int | None = None
    grace_time: int = 0
    usage_factor: float = 1.0
    grp_tres: str = ""
    grp_tres_mins: str = ""
    flags: frozenset[str] = field(default_factory=frozenset)


@dataclass(frozen=True, slots=True)
class Partition:
    """What a partition asks of a job: so many nodes, and a QOS that it allows (`allow_qos` None:
    any) and does not deny. `qos` is its own, empty where it has none; QOS that it allows or denies
    are in lower case. `default`: of jobs that name none. `weights`: TRESBillingWeights as text."""

    qos: str = ""
    default: bool = False
    weights: str = ""
    min_nodes: int = 0
    allow_qos: frozenset[str] | None = None
    deny_qos: frozenset[str] = frozenset()

    def allows(self, qos: str) -> bool:
        if self.allow_qos is not None:
            return qos.lower() in self.allow_qos
        return qos.lower() not in self.deny_qos


@dataclass(frozen=True, slots=True)
class Preemption:
    """What says when Slurm may preempt a run, and where it lets one in: QOS and partitions by name,
    and the PreemptExemptTime of slurm.conf in seconds (None: unset)."""

    qos: Mapping[str, Qos] = field(default_factory=dict)
    partitions: Mapping[str, Partition] = field(default_factory=dict)
    exempt: int | None = None


@dataclass(frozen=True, slots=True)
class SlurmState:
    """Associations of one cluster and the QOS, as slurmdbd has them, and what limits are made of.

    `tres` are the names that slurmdbd accounts; `node_gpus` the GPUs of the largest node by type
    (the empty string: of any type); `half_life` is PriorityDecayHalfLife in seconds, 0 for none.
    `elsewhere` names other clusters of the same slurmdbd that use a QOS, by QOS: QOS are shared.
    """

    cluster: str
    associations: Mapping[AssocKey, Association] = field(default_factory=dict)
    qos: Mapping[str, Qos] = field(default_factory=dict)
    tres: frozenset[str] = frozenset()
    node_gpus: Mapping[str, int] = field(default_factory=dict)
    half_life: int = 604800
    elsewhere: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class QosPolicy:
    """What the site wants of the QOS. Times in seconds; `weights` in thousandths by GPU type."""

    preempt_exempt_time: int = 1200
    grace_time: int = 60
    usage_factor: float = 0.1
    burst: float = 6.0
    backstop: float = 0.0
    funded_priority: int = 1000
    preemptible_priority: int = 0
    weights: Mapping[str, int] = field(default_factory=dict)
    preemptible: str = "preemptible"
    funded_prefix: str = "funded-"

    def funded(self, account: str) -> str:
        """The QOS of an account's funded jobs."""
        return self.funded_prefix + account

    def ours(self, qos: str) -> bool:
        """Whether sync owns a QOS of this name."""
        return qos == self.preemptible or qos.startswith(self.funded_prefix)


@dataclass(frozen=True, slots=True)
class Wanted:
    """The fields of one QOS, account or user that the budgets settle, in Slurm's words.

    `fields` hold canonical text by sacctmgr's option name, `why` a reason for each. What is not
    named here is not ours and stays. `account` is empty for a QOS; `name` is the QOS, the account
    once more, or the user. `only_new` fields are written when the row is created and left alone
    after that. `group` is the account that people look for it under.
    """

    kind: Kind
    name: str
    account: str = ""
    partition: str = ""
    fields: Mapping[str, str] = field(default_factory=dict)
    why: Mapping[str, str] = field(default_factory=dict)
    only_new: Mapping[str, str] = field(default_factory=dict)
    group: str = ""

    @property
    def key(self) -> tuple[Kind, str, str, str]:
        return self.kind, self.account, self.name, self.partition


@dataclass(frozen=True, slots=True)
class Desired:
    """All that is wanted, and sentences for people: what is left as it is, and why."""

    wanted: tuple[Wanted, ...]
    notes: tuple[str, ...] = ()


RowKey = tuple[Kind, str, str, str]
"""(kind, account, name, partition) of a QOS, account or user."""


@dataclass(frozen=True, slots=True)
class Transaction:
    """One entry of slurmdbd's transaction log: who changed which fields of which rows, and when
    (epoch seconds). `fields` are sacctmgr's option names; what is not ours is not in it."""

    at: int
    action: str
    actor: str
    rows: frozenset[RowKey] = frozenset()
    fields: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class WriteReport:
    """How a write went. `failed` holds what Slurm answered, by row; `not_tried` the rows that were
    left when it stopped, and `stopped` why (empty: it went through)."""

    failed: Mapping[RowKey, str] = field(default_factory=dict)
    not_tried: frozenset[RowKey] = frozenset()
    stopped: str = ""
