"""Writes the text of a snapshot; what it looks like is said in snapshot.py."""

import zlib
from collections.abc import Iterator

from slurm_budget.core import snapshot_index as index
from slurm_budget.core.snapshot import MAGIC, VERSION, to_bytes
from slurm_budget.errors import BadInput
from slurm_budget.state.snapshot import Policy, Snapshot

LONGEST_LINE = 1000
"""Bytes; hooks of before there was an index read in steps a little longer than that."""


def encode(snapshot: Snapshot) -> str:
    """The text of a snapshot, such that `snapshot.decode(encode(s)) == s`.

    Raises BadInput for a name with a tab.
    """
    lines = []
    for name, a in snapshot.accounts.items():
        lines.append(
            _line("A", name, a.parent, a.qos, a.budget, a.balance, a.fast, a.back_at, a.gres)
        )
    for old, name in snapshot.aliases.items():
        lines.append(_line("L", old, name))
    for (account, user), u in snapshot.users.items():
        lines.append(_line("U", account, user, u.budget, u.balance, u.fast, u.back_at))
    lines.sort(key=to_bytes)
    if any(len(to_bytes(line)) > LONGEST_LINE for line in lines):
        raise BadInput("an account or user has an absurdly long name", mend="shorten it")
    start = _line(MAGIC, VERSION, snapshot.observed_at, snapshot.published_at, snapshot.cluster)
    policy = list(_policy_lines(snapshot.policy))
    slots = index.slots(len(lines))
    while True:
        # Sizes and offsets count the first line too, so all its numbers have their width already.
        head = len(to_bytes(start)) + len(f"\t{0:012d}\t{0:08x}\t{0:012d}\t{slots}\n")
        keys, end = _offsets(lines, head + _size(policy))
        if (table := index.table(keys, slots)) is not None:
            break
        slots = index.slots(slots)
    lines = [*policy, *lines, *table]
    body = "".join(line + "\n" for line in lines) + f"end\t{len(lines)}\n"
    size, checksum = head + len(to_bytes(body)), zlib.crc32(to_bytes(body))
    return f"{start}\t{size:012d}\t{checksum:08x}\t{end:012d}\t{slots}\n{body}"


def _size(lines: list[str]) -> int:
    return sum(len(to_bytes(line)) + 1 for line in lines)


def _offsets(lines: list[str], at: int) -> tuple[list[tuple[bytes, int]], int]:
    """What each line is found by, and the byte where it begins; and the byte behind the last."""
    out = []
    for line in lines:
        blob = to_bytes(line)
        key = b"\t".join(blob.split(b"\t", 3)[: 3 if line[0] == "U" else 2]) + b"\t"
        out.append((key, at))
        at += len(blob) + 1
    return out, at


def _policy_lines(policy: Policy) -> Iterator[str]:
    yield _line("P", "default_class", policy.default_class)
    yield _line("P", "min_runtime", policy.min_runtime)
    yield _line("P", "min_runtime_cap", policy.min_runtime_cap)
    yield _line("P", "on_exhausted", policy.on_exhausted)
    yield _line("P", "messages", int(policy.messages))
    yield _line("P", "max_age", policy.max_age)
    yield _line("P", "fast_lane_gpu_time", policy.fast_lane_gpu_time)
    yield _line("P", "node_gpus", policy.node_gpus)
    yield _line("P", "topology", int(policy.topology))
    yield _line("P", "preemptible_qos", policy.preemptible_qos)
    yield _line("P", "job_requeue", int(policy.job_requeue))
    yield _line("P", "operators", ",".join(map(str, policy.operators)))
    if policy.several_nodes:
        yield _line("P", "several_nodes", ",".join(policy.several_nodes))
    for kind, weight in sorted(policy.weights.items()):
        yield _line("W", kind, weight)
    for partition, gpus in sorted(policy.partition_gpus.items()):
        yield _line("G", partition, gpus)


def _line(*given: str | int | None) -> str:
    texts = ["" if value is None else str(value) for value in given]
    for text in texts:
        if "\t" in text or "\n" in text:
            raise BadInput(f"{text!r} cannot stand in a snapshot", mend="rename it without tabs")
    return "\t".join(texts)
