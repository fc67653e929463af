"""What slurmdbd keeps that we write: associations and QOS. Unset is None, never 0."""

from dataclasses import dataclass, field
from typing import Literal

Fairshare = int | Literal["parent"]


@dataclass(frozen=True, slots=True)
class Association:
    """One row of `sacctmgr show assoc`. `user` and `partition` are empty for an account's own row;
    `parent` is empty for a user's row. `grp_tres` is canonical text (text.tres.canonical)."""

    cluster: str
    account: str
    user: str = ""
    partition: str = ""
    parent: str = ""
    fairshare: Fairshare = 1
    qos: frozenset[str] = frozenset()
    default_qos: str = ""
    grp_tres: str = ""

    @property
    def key(self) -> tuple[str, str, str, str]:
        return self.cluster, self.account, self.user, self.partition


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
