"""Texts that repeat, as numbers: each stands once in `names`."""

from collections.abc import Iterable

from sqlalchemy import Connection, bindparam, select, text

from slurm_budget.errors import BadInput, LedgerUnreachable
from slurm_budget.ledger.schema import names as table

LONGEST = 255
_UNSETTLED = 1000


class Names:
    """What is known of `names`; shared by all transactions of a process, so it holds only what was
    committed. Numbers given in a transaction wait apart until `keep`."""

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}
        self._texts: dict[int, str] = {}
        self._fresh: dict[str, int] = {}
        self._fresh_texts: dict[int, str] = {}
        self._upto = 0

    def keep(self) -> None:
        """The transaction was committed."""
        self._ids |= self._fresh
        self._texts |= self._fresh_texts
        self.forget()

    def forget(self) -> None:
        """The transaction was rolled back."""
        self._fresh = {}
        self._fresh_texts = {}

    def text(self, connection: Connection, number: int) -> str:
        """The text of a number that is in the ledger."""
        found = self._texts.get(number) or self._fresh_texts.get(number)
        if found is not None:
            return found
        if number not in self._texts:
            self._look_up(connection, number)
        return self._texts[number]

    def _look_up(self, connection: Connection, number: int) -> None:
        self.learn(connection)
        if number not in self._texts:
            raise LedgerUnreachable(
                f"the ledger is damaged: it names text {number}, which is not there",
                mend="run `sbudget ledger check`, restore the last backup",
            )

    def learn(self, connection: Connection) -> None:
        """Fetch all that this transaction can see, so that `text` need not ask the database.

        Numbers become visible a little out of order where several write, so those next below the
        highest known are looked at again.
        """
        query = select(table.c.id, table.c.text).where(table.c.id > self._upto - _UNSETTLED)
        for row in connection.execute(query).all():
            if row.id not in self._fresh_texts:
                self._remember(row.id, row.text)
            self._upto = max(self._upto, row.id)

    def find(self, connection: Connection, word: str) -> int | None:
        """The number of a text; None where the ledger has never seen it."""
        known = self._ids.get(word) or self._fresh.get(word)
        if known is None:
            known = connection.scalar(select(table.c.id).where(table.c.text == word))
            if known is not None:
                self._remember(known, word)
        return known

    def number(self, connection: Connection, word: str) -> int:
        """The number of a text, given now if it has none. Only in a writing transaction."""
        return self._ids.get(word) or self._fresh.get(word) or self.add(connection, [word])[word]

    def add(self, connection: Connection, words: Iterable[str]) -> dict[str, int]:
        """The numbers of many texts."""
        wanted = list(dict.fromkeys(words))
        missing = [w for w in wanted if w not in self._ids and w not in self._fresh]
        for word in missing:
            if len(word) > LONGEST:
                raise BadInput(
                    f"the name {word[:40]!r}... has {len(word)} characters, more than {LONGEST}",
                    mend="shorten it; Slurm's own names are far shorter",
                )
        if missing:
            ignore = "OR IGNORE" if connection.dialect.name == "sqlite" else "IGNORE"
            connection.execute(
                text(f"INSERT {ignore} INTO names (text) VALUES (:word)"),
                [{"word": word} for word in missing],
            )
            query = select(table.c.id, table.c.text).where(
                table.c.text.in_(bindparam("words", expanding=True))
            )
            for at in range(0, len(missing), 500):
                for row in connection.execute(query, {"words": missing[at : at + 500]}):
                    self._fresh[row.text] = row.id
                    self._fresh_texts[row.id] = row.text
        return {word: self._ids.get(word) or self._fresh[word] for word in wanted}

    def _remember(self, number: int, word: str) -> None:
        self._ids[word] = number
        self._texts[number] = word
