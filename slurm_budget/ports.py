"""What the use cases need from the world, as protocols. Adapters below implement them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from slurm_budget.core.plan import Change
from slurm_budget.state.jobs import Deed, Job, Node
from slurm_budget.state.slurm import SlurmState, Transaction, WriteReport


class JobPort(Protocol):
    """Slurm's live side. Reads raise SlurmUnreachable rather than guess; deeds answer a Deed."""

    def config(self) -> dict[str, str]: ...
    def cluster(self) -> str: ...
    def jobs(self) -> list[Job]: ...
    def nodes(self) -> list[Node]: ...
    def accounts(self, cluster: str) -> dict[str, str]: ...
    def requeue(self, job_id: int) -> Deed: ...
    def signal(self, job_id: int, name: str) -> Deed: ...
    def retag(self, job: str, qos: str, admin_comment: str) -> Deed: ...


class AssociationPort(Protocol):
    """slurmdbd's side. Reads raise SlurmUnreachable rather than guess.

    `write` carries out changes, many in one call, and says which of them Slurm answered with an
    error: whether the others took is for the caller to see by observing again. `stop` is asked
    between calls. It raises nothing for a single failure, SlurmUnreachable for none at all.
    """

    def observe(self, cluster: str) -> SlurmState: ...
    def in_use(self) -> Mapping[str, Mapping[str, int]]: ...
    def write(
        self,
        changes: Sequence[Change],
        state: SlurmState,
        progress: Callable[[int], None],
        stop: Callable[[], bool],
    ) -> WriteReport: ...
    def transactions(self, cluster: str, since: int) -> list[Transaction]: ...
