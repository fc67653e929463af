"""What counts of a run, out of a row: for sums, and for whoever wants it run by run."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection

from slurm_budget.core.tally import Counted
from slurm_budget.ledger.names import Names
from slurm_budget.text import tres

_COLUMNS = (
    *("account_id", "user_id", "gpus_id", "counts_from", "counts_until", "charged_until"),
    "funded",
)


def columns(table: str) -> str:
    """What to select of `table`, a name of `runs` in a query, for `CountedReader.read`."""
    return ", ".join(f"{table}.{column}" for column in _COLUMNS)


class CountedReader:
    """Works in one transaction; each set of GPUs is parsed once."""

    def __init__(self, connection: Connection, names: Names) -> None:
        self.connection = connection
        self.names = names
        self._gpu_sets: dict[int, Mapping[str, int]] = {}

    def read(self, row: Sequence[Any]) -> Counted:
        """A row of `columns`."""
        account, user, gpus, since, until, charged_until, funded = row
        return Counted(
            self.word(account),
            self.word(user),
            self.gpus(gpus),
            since,
            until,
            charged_until,
            bool(funded),
        )

    def word(self, number: int) -> str:
        """The text of a number in `names`."""
        return self.names.text(self.connection, number)

    def gpus(self, number: int) -> Mapping[str, int]:
        """GPUs by type, of the number of their text."""
        found = self._gpu_sets.get(number)
        if found is None:
            found = self._gpu_sets[number] = tres.gpus(self.word(number))
        return found
