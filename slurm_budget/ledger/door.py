"""What all parts of the ledger share: the engine, the names, and a transaction per method."""

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Connection, Engine

from slurm_budget.ledger import connect
from slurm_budget.ledger.names import Names


class Door:
    """Every public method of a subclass is one transaction: what it writes is there when it
    returns, whole or not at all."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._names = Names()

    @contextmanager
    def _read(self) -> Iterator[Connection]:
        with connect.reading(self.engine) as connection:
            yield connection

    @contextmanager
    def _write(self, *, queue: bool = True) -> Iterator[Connection]:
        try:
            with connect.writing(self.engine, queue=queue) as connection:
                yield connection
        except BaseException:
            self._names.forget()
            raise
        self._names.keep()
