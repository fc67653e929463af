"""Where each line of a snapshot stands, for a reader that cannot afford to look for it.

A hash table of fixed-width lines behind all others, open addressing with linear probing:

    X<TAB>offset of the line, nine digits<TAB>mark, three digits

Offsets are of what follows the snapshot's first line; 0 is an empty slot. The key of a line is what
it begins with (`A<TAB>name<TAB>`); as one big number modulo `PRIME` it gives the slot, and the
mark, by which a reader passes over most of the lines that are not the one it looks for without
reading them. The hook does the same sums in Lua, where a number is a double: hence a prime below
2^45.
"""

from collections.abc import Sequence

PRIME = 17592186044399
"""The largest one below 2^44."""
ENTRY = 16
"""Bytes of a line of the table."""
LONGEST_CHAIN = 32
"""Slots that a reader has to look at, at most; it reads as many at once."""
MARKS = 1000
_EMPTY = "X\t000000000\t000"


def place(key: bytes, number: int) -> tuple[int, int]:
    """The slot of a key among `number` of them, and its mark."""
    mark, slot = divmod(int.from_bytes(key, "big") % PRIME, number)
    return slot, mark % MARKS


def table(keys: Sequence[tuple[bytes, int]]) -> tuple[int, list[str]] | None:
    """The slots of a table and its lines, for (key, offset of the line in bytes).

    A spare chain stands behind it, so no reader has to begin again at its start. None where no
    table is large enough: names have one hash, which happens to whoever wants it.
    """
    for quarters in (9, 16, 32, 64):
        # Odd, since keys are sums of 256^n.
        number = len(keys) * quarters // 4 | 1
        if (lines := _fill(keys, number)) is not None:
            return number, lines
    return None


def _fill(keys: Sequence[tuple[bytes, int]], number: int) -> list[str] | None:
    out = [_EMPTY] * (number + LONGEST_CHAIN)
    for key, offset in keys:
        if offset >= 10**9:
            return None
        slot, mark = place(key, number)
        for at in range(slot, slot + LONGEST_CHAIN):
            if out[at] == _EMPTY:
                out[at] = f"X\t{offset:09d}\t{mark:03d}"
                break
        else:
            return None
    return out
