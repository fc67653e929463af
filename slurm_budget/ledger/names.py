"""Texts that repeat, as numbers: each stands once in `names`."""

from collections.abc import Iterable

from sqlalchemy import Connection, bindparam, select, text

from slurm_budget.errors import BadInput
from slurm_budget.ledger.schema import names as table

LONGEST = 255


class Names:
    """What is known of `names`; shared by all transactions of a process, so it holds only what was
    committed. Numbers given in a transaction wait in `fresh` until `keep`."""

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}
        self._texts: dict[int, str] = {}
        self._fresh: dict[str, int] = {}

    def keep(self) -> None:
        """The transaction was committed."""
        for word, number in self._fresh.items():
            self._ids[word] = number
            self._texts[number] = word
        self._fresh = {}

    def forget(self) -> None:
        """The transaction was rolled back."""
        self._fresh = {}

    def text(self, connection: Connection, number: int) -> str:
        """The text of a number that is in the ledger."""
        found = self._texts.get(number)
        if found is None:
            if not self._texts:
                self._load(connection)
            if number not in self._texts:
                row = connection.execute(select(table.c.text).where(table.c.id == number)).one()
                # what this transaction itself made is not committed, but then it is in _fresh too
                if row.text in self._fresh:
                    return str(row.text)
                self._remember(number, row.text)
            found = self._texts[number]
        return found

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
        return {word: self._ids.get(word) or self._fresh[word] for word in wanted}

    def _load(self, connection: Connection) -> None:
        for number, word in connection.execute(select(table.c.id, table.c.text)):
            if word not in self._fresh:
                self._remember(number, word)

    def _remember(self, number: int, word: str) -> None:
        self._ids[word] = number
        self._texts[number] = word
