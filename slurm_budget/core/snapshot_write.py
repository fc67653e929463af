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
    with_users = {account for account, _ in snapshot.users}
    for name, a in snapshot.accounts.items():
        amounts = (a.budget, a.balance, a.fast, a.back_at)
        lines.append(_line("A", name, a.parent, a.qos, *amounts, a.gres, int(name in with_users)))
    for old, name in snapshot.aliases.items():
        lines.append(_line("L", old, name))
    for (account, user), u in snapshot.users.items():
        lines.append(_line("U", account, user, u.budget, u.balance, u.fast, u.back_at))
    blobs = sorted(map(to_bytes, lines))
    if any(len(blob) > LONGEST_LINE for blob in blobs):
        raise BadInput("an account or user has an absurdly long name", mend="shorten it")
    policy = [to_bytes(line) for line in _policy_lines(snapshot.policy)]
    start = _line(MAGIC, VERSION, snapshot.observed_at, snapshot.published_at, snapshot.cluster)
    keys, end = _offsets(blobs, sum(len(blob) + 1 for blob in policy))
    # Without a table the hook looks through the whole text.
    slots, table = index.table(keys) or (None, [])
    blobs = [*policy, *blobs, *map(to_bytes, table)]
    body = b"".join(blob + b"\n" for blob in blobs) + to_bytes(f"end\t{len(blobs)}\n")
    tail = f"\t{zlib.crc32(body):08x}" + (f"\t{end}\t{slots}" if slots else "") + "\n"
    # The size counts itself, which is why it always has twelve digits.
    size = len(to_bytes(start)) + len(f"\t{0:012d}") + len(tail) + len(body)
    return f"{start}\t{size:012d}{tail}" + body.decode(errors="surrogateescape")


def _offsets(blobs: list[bytes], at: int) -> tuple[list[tuple[bytes, int]], int]:
    """What each line is found by, and where it begins; and the byte behind the last."""
    out = []
    for blob in blobs:
        end = blob.index(b"\t", 2)
        if blob[:1] == b"U":
            end = blob.index(b"\t", end + 1)
        out.append((blob[: end + 1], at))
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
