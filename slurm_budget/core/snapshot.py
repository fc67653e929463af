"""The snapshot as text: written by the sweep, read by the submit hook in well below a millisecond.

    sbudget-snapshot<TAB>1<TAB>observed_at<TAB>published_at<TAB>cluster<TAB>bytes<TAB>crc32<TAB>
        (the same line, where there is one) where the index begins<TAB>its slots
    P<TAB>min_runtime<TAB>3600                        settings, one a line
    W<TAB>h100<TAB>1500                               weight of a GPU type, thousandths
    G<TAB>gpu<TAB>8                                   GPUs of a node in a partition
    A<TAB>name<TAB>parent<TAB>qos<TAB>budget<TAB>balance<TAB>fast<TAB>back_at<TAB>gres<TAB>
        (the same line) 1 where users have budgets of their own in it, or else 0
    L<TAB>old-name<TAB>name                           alias of an account
    U<TAB>account<TAB>user<TAB>budget<TAB>balance<TAB>fast<TAB>back_at
    X<TAB>000000437<TAB>019                           the index, see snapshot_index.py
    end<TAB>lines between the first and this one

The hook cannot afford to read ten thousand lines under slurmctld's locks, and finds those that it
needs by the index. Lines between the settings and the index are in the order of their bytes: hooks
of before there was an index halve the file a few times, and whoever has it as one string finds an
account by a plain search for `"\\nA\\tname\\t"`.

A file that was cut off anywhere is recognised without reading it through: the header says how long
it must be (bytes, in twelve digits) and the last line that it is the end. The checksum is for
`decode`, which reads everything, and makes the header a name for the content: as long as the header
is the same, the hook has the file in memory already.

Tabs and newlines cannot stand in a field. An empty field is None. Readers skip kinds of lines and
settings that they do not know; whatever older readers would misread gets a new version.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Generic, Literal, TypeVar

from slurm_budget.errors import BadInput
from slurm_budget.state.snapshot import AccountFacts, Policy, Snapshot, UserFacts

if TYPE_CHECKING:
    from slurm_budget.state.jobs import Class

MAGIC = "sbudget-snapshot"
VERSION = "1"
_MEND = "run `sbudget sweep`, which publishes a new one"
_K = TypeVar("_K")
_V = TypeVar("_V")
_CLASSES: tuple[Class, ...] = ("funded", "preemptible")
_EXHAUSTED: tuple[Literal["preemptible", "wait", "reject"], ...] = ("preemptible", "wait", "reject")


def decode(text: str) -> Snapshot:
    """Everything in it. Raises BadInput for a text that is cut off, damaged or of another kind."""
    head, body = _open(text)
    if f"{zlib.crc32(to_bytes(body)):08x}" != head[6]:
        raise BadInput("the snapshot is damaged: its checksum is wrong", mend=_MEND)
    accounts, aliases, users = {}, {}, {}
    for line in body.split("\n"):
        kind, *given = line.split("\t")
        if kind == "A":
            accounts[given[0]] = _account(given)
        elif kind == "L":
            _expect(given, 2)
            aliases[given[0]] = given[1]
        elif kind == "U":
            users[given[0], given[1]] = _user(given)
    return _snapshot(head, body, accounts, users, aliases)


def lazy(text: str) -> Snapshot:
    """The same for one who needs a few lines of many: looked for when asked for, not checked by the
    checksum. `accounts`, `users` and `aliases` can be looked into, but not be listed."""
    head, body = _open(text)

    def account(name: str) -> AccountFacts | None:
        found = _find(text, "A", name)
        return _account(found) if found else None

    def user(key: tuple[str, str]) -> UserFacts | None:
        found = _find(text, "U", *key)
        return _user(found) if found else None

    def alias(name: str) -> str | None:
        found = _find(text, "L", name)
        return found[1] if found else None

    return _snapshot(head, body, _Found(account), _Found(user), _Found(alias))


def _open(text: str) -> tuple[list[str], str]:
    """Header fields and what follows, after all that can be checked without reading it through."""
    first, newline, body = text.partition("\n")
    head = first.split("\t")
    if head[0] != MAGIC:
        raise BadInput("this is no snapshot", mend=_MEND)
    if len(head) > 1 and head[1] != VERSION and newline:
        raise BadInput(f"the snapshot is of version {head[1]!r}, not {VERSION}", mend=_MEND)
    if len(head) < 7 or not newline:
        raise BadInput("the snapshot is cut off in its first line", mend=_MEND)
    size = len(to_bytes(text))
    if size != _int(head[5]):
        raise BadInput(
            f"the snapshot is cut off: {size} bytes of the {_int(head[5])} that it says", mend=_MEND
        )
    if body[body.rfind("\n", 0, -1) + 1 :] != f"end\t{body.count(chr(10)) - 1}\n":
        raise BadInput("the snapshot does not end as it should", mend=_MEND)
    return head, body


def to_bytes(text: str) -> bytes:
    """As the file has it; bytes that were no UTF-8 stay what they were."""
    return text.encode(errors="surrogateescape")


def _find(text: str, kind: str, *key: str) -> list[str] | None:
    """The fields after the kind, of the one line that begins so."""
    start = text.find("\n" + "\t".join((kind, *key)) + "\t")
    if start < 0 or any(mark in part for part in key for mark in "\t\n"):
        return None
    return text[start + 1 : text.index("\n", start + 1)].split("\t")[1:]


def _snapshot(
    head: list[str],
    body: str,
    accounts: Mapping[str, AccountFacts],
    users: Mapping[tuple[str, str], UserFacts],
    aliases: Mapping[str, str],
) -> Snapshot:
    return Snapshot(head[4], _int(head[2]), _int(head[3]), _policy(body), accounts, users, aliases)


def _account(f: list[str]) -> AccountFacts:
    _expect(f, 8)
    amounts = _int(f[3]), _int(f[4]), _int(f[5])
    return AccountFacts(f[0], f[1] or None, f[2], *amounts, _int(f[6]) if f[6] else None, f[7])


def _user(f: list[str]) -> UserFacts:
    _expect(f, 6)
    amounts = _int(f[2]), _int(f[3]), _int(f[4])
    return UserFacts(f[0], f[1], *amounts, _int(f[5]) if f[5] else None)


def _policy(body: str) -> Policy:
    said: dict[str, str] = {}
    weights: dict[str, int] = {}
    partitions: dict[str, int] = {}
    at = 0
    while body[at : at + 2] in ("P\t", "W\t", "G\t"):
        end = body.index("\n", at)
        kind, *given = body[at:end].split("\t")
        _expect(given, 2)
        if kind == "P":
            said[given[0]] = given[1]
        else:
            (weights if kind == "W" else partitions)[given[0]] = _int(given[1])
        at = end + 1
    plain = Policy()

    def number(name: str) -> int:
        return _int(said[name]) if name in said else int(getattr(plain, name))

    return Policy(
        default_class=_one_of(_CLASSES, said.get("default_class"), plain.default_class),
        min_runtime=number("min_runtime"),
        min_runtime_cap=number("min_runtime_cap"),
        on_exhausted=_one_of(_EXHAUSTED, said.get("on_exhausted"), plain.on_exhausted),
        messages=number("messages") != 0,
        max_age=number("max_age"),
        fast_lane_gpu_time=number("fast_lane_gpu_time"),
        weights=weights,
        node_gpus=number("node_gpus"),
        topology=number("topology") != 0,
        preemptible_qos=said.get("preemptible_qos", plain.preemptible_qos),
        partition_gpus=partitions,
        job_requeue=number("job_requeue") != 0,
        operators=tuple(_int(uid) for uid in said.get("operators", "").split(",") if uid),
        several_nodes=tuple(filter(None, said.get("several_nodes", "").split(","))),
    )


def _expect(given: list[str], number: int) -> None:
    if len(given) < number:
        raise BadInput(f"a line of the snapshot has {len(given)} fields of {number}", mend=_MEND)


def _int(text: str) -> int:
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 19):
        raise BadInput(f"{text!r} in the snapshot is no whole number", mend=_MEND)
    return int(text)


def _one_of(known: tuple[_V, ...], text: str | None, otherwise: _V) -> _V:
    return next((value for value in known if value == text), otherwise)


class _Found(Mapping[_K, _V], Generic[_K, _V]):
    """A mapping that looks each key up when asked."""

    def __init__(self, look: Callable[[_K], _V | None]) -> None:
        self._look = look

    def __getitem__(self, key: _K) -> _V:
        value = self._look(key)
        if value is None:
            raise KeyError(key)
        return value

    def __iter__(self) -> Iterator[_K]:
        raise TypeError("a snapshot that is read lazily cannot be listed; decode it")

    def __len__(self) -> int:
        raise TypeError("a snapshot that is read lazily cannot be counted; decode it")
