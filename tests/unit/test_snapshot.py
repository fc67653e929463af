"""The snapshot's text: the same read back, and never half of it taken for the whole."""

import hookcases
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slurm_budget.core import snapshot_index as index
from slurm_budget.core.snapshot import decode, lazy
from slurm_budget.core.snapshot_write import encode
from slurm_budget.errors import BadInput
from slurm_budget.state.snapshot import AccountFacts, Policy, Snapshot, UserFacts

NAMES = st.from_regex(r"[a-z0-9_][a-z0-9_.@-]{0,12}", fullmatch=True) | st.just("größe")
AMOUNTS = st.integers(-(10**15), 10**15)
SOMETIMES = st.none() | st.integers(0, 2**33)


@st.composite
def snapshots(draw):
    names = draw(st.lists(NAMES, max_size=6, unique=True))
    accounts = {
        name: AccountFacts(
            name,
            draw(st.none() | st.sampled_from(names)),
            draw(st.sampled_from(["", "funded-" + name])),
            *(draw(AMOUNTS) for _ in range(3)),
            draw(SOMETIMES),
            draw(st.sampled_from(["gres/gpu", "gres/gpu:h100"])),
        )
        for name in names
    }
    users = {}
    for account, user in draw(st.lists(st.tuples(NAMES, NAMES), max_size=5, unique=True)):
        amounts = (draw(AMOUNTS) for _ in range(3))
        users[account, user] = UserFacts(account, user, *amounts, draw(SOMETIMES))
    policy = Policy(
        default_class=draw(st.sampled_from(["funded", "preemptible"])),
        min_runtime=draw(st.integers(0, 10**6)),
        min_runtime_cap=draw(st.integers(0, 10**6)),
        on_exhausted=draw(st.sampled_from(["preemptible", "wait", "reject"])),
        messages=draw(st.booleans()),
        max_age=draw(st.integers(0, 10**6)),
        fast_lane_gpu_time=draw(st.integers(0, 10**6)),
        weights=draw(st.dictionaries(NAMES | st.just(""), st.integers(0, 10**6), max_size=3)),
        node_gpus=draw(st.integers(0, 16)),
        topology=draw(st.booleans()),
        preemptible_qos=draw(NAMES),
        partition_gpus=draw(st.dictionaries(NAMES, st.integers(0, 16), max_size=3)),
        job_requeue=draw(st.booleans()),
        operators=tuple(draw(st.lists(st.integers(0, 2**32 - 1), max_size=3))),
        several_nodes=tuple(draw(st.lists(st.sampled_from(["gang", "big"]), unique=True))),
    )
    aliases = draw(st.dictionaries(NAMES, NAMES, max_size=3))
    moments = draw(st.integers(0, 2**33)), draw(st.integers(0, 2**33))
    return Snapshot(draw(NAMES), *moments, policy, accounts, users, aliases)


@given(snapshots())
def test_read_back_as_written(snapshot):
    assert decode(encode(snapshot)) == snapshot


@given(snapshots())
def test_read_line_by_line_it_says_the_same(snapshot):
    some = lazy(encode(snapshot))
    assert some.policy == snapshot.policy
    assert all(some.accounts[name] == facts for name, facts in snapshot.accounts.items())
    assert all(some.users[key] == facts for key, facts in snapshot.users.items())
    assert all(some.aliases[old] == new for old, new in snapshot.aliases.items())
    assert some.accounts.get("no such account") is None
    assert some.accounts.get("a\tb") is None


@pytest.mark.parametrize("read", [decode, lazy])
def test_cut_off_at_any_byte(read):
    blob = encode(hookcases.snapshot()).encode()
    for size in range(len(blob)):
        with pytest.raises(BadInput):
            read(blob[:size].decode(errors="surrogateescape"))


@pytest.mark.parametrize("read", [decode, lazy])
@given(text=st.text() | st.text().map(lambda rest: "sbudget-snapshot\t1\t" + rest))
def test_random_text(read, text):
    with pytest.raises(BadInput):
        read(text)


@settings(max_examples=300)
@given(at=st.integers(0, 10**6), byte=st.integers(0, 255))
def test_any_wrong_byte_is_found(at, byte):
    blob = bytearray(encode(hookcases.snapshot()).encode())
    at %= len(blob)
    if blob[at] == byte:
        return
    blob[at] = byte
    try:
        seen = decode(blob.decode(errors="surrogateescape"))
    except BadInput:
        return
    # Only what the first line says is outside the checksum.
    assert at < blob.index(b"\n")
    assert seen.accounts == hookcases.snapshot().accounts


def test_what_follows_the_end_is_noticed():
    with pytest.raises(BadInput, match="cut off"):
        decode(encode(hookcases.snapshot()) + "more")


def test_another_version_is_told_as_such():
    text = encode(hookcases.snapshot()).replace("\t1\t", "\t2\t", 1)
    with pytest.raises(BadInput, match="version '2'"):
        decode(text)


def test_settings_and_kinds_of_lines_that_we_do_not_know_are_passed_over():
    base = hookcases.snapshot()
    text = encode(base)
    head, _, body = text.partition("\n")
    body = "P\tfrom_the_future\t1\n" + body.replace("\nend\t", "\nZ\tsomething\nend\t")
    count = body.count("\n") - 1
    body = body[: body.rindex("end\t")] + f"end\t{count}\n"
    fields = head.split("\t")
    fields[5] = f"{len(head) + 1 + len(body.encode()):012d}"
    assert lazy("\t".join(fields) + "\n" + body).policy == base.policy


def test_a_name_with_a_tab_is_refused():
    facts = AccountFacts("a\tb", None, "", 0, 0, 0)
    with pytest.raises(BadInput, match="cannot stand in a snapshot"):
        encode(Snapshot("c", 1, 1, Policy(), {"a\tb": facts}))


@given(snapshots())
def test_lines_are_in_the_order_of_their_bytes(snapshot):
    lines = encode(snapshot).encode().split(b"\n")[1:-2]
    lines = [line for line in lines if line[:2] not in (b"P\t", b"W\t", b"G\t")]
    inner = [line for line in lines if line[:2] != b"X\t"]
    assert inner == sorted(inner)
    # Hooks of before there was an index search by halves, and must find nothing in it.
    assert lines[: len(inner)] == inner


@given(snapshots())
def test_the_index_leads_to_every_line(snapshot):
    first, _, blob = encode(snapshot).encode().partition(b"\n")
    begins, slots = map(int, first.split(b"\t")[7:])
    keys = [f"A\t{name}\t" for name in snapshot.accounts]
    keys += [f"L\t{old}\t" for old in snapshot.aliases]
    keys += [f"U\t{account}\t{user}\t" for account, user in snapshot.users]
    for key in map(str.encode, keys):
        slot, mark = index.place(key, slots)
        at = begins + slot * index.ENTRY
        chain = blob[at : at + index.LONGEST_CHAIN * index.ENTRY].decode().splitlines()
        found = [int(entry[2:11]) for entry in chain if int(entry[12:]) == mark]
        assert sum(blob[offset:].startswith(key) for offset in found if offset) == 1


def test_names_that_were_chosen_to_have_one_hash_do_without_an_index():
    names = hookcases.names_of_one_hash()
    assert len({index.place(f"A\t{name}\t".encode(), 10**9) for name in names}) == 1
    accounts = {name: AccountFacts(name, None, "funded-" + name, 1, 2, 3) for name in names}
    for number, indexed in ((index.LONGEST_CHAIN, True), (index.LONGEST_CHAIN + 1, False)):
        some = dict(list(accounts.items())[:number])
        text = encode(Snapshot("c", 1, 1, Policy(), some))
        assert ("\nX\t" in text) == indexed
        assert decode(text).accounts == some


def test_a_line_that_the_hook_would_not_read_is_refused():
    facts = AccountFacts("a" * 1000, None, "", 0, 0, 0)
    with pytest.raises(BadInput, match="long name"):
        encode(Snapshot("c", 1, 1, Policy(), {facts.name: facts}))


def test_the_line_of_an_account_is_found_by_one_plain_search():
    text = encode(hookcases.snapshot())
    assert "\nA\tvision\torg\tfunded-vision\t9676800000\t1125000000\t" in text
    assert "\nU\tvision\talice\t" in text
    assert text.startswith("sbudget-snapshot\t1\t1699999990\t1699999990\tc1\t")
