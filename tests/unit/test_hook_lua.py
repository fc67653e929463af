"""etc/sbudget.lua under Lua 5.1, 5.3 and 5.4: Python's verdicts, and never in the way."""

import importlib
import os
import re
import stat
import subprocess
import sys

import hookcases
import pytest
from hookcases import CASES, GPU_HOUR, IDS, NOW, ROOT
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from slurm_budget.core import admission, hook_files, hook_log
from slurm_budget.core import request as requests
from slurm_budget.core.marker import Marker, merge, parse
from slurm_budget.core.snapshot_write import encode
from slurm_budget.errors import BadInput
from slurm_budget.state.snapshot import AccountFacts, UserFacts

LUAS = ["lua51", "lua53", "lua54"]
NO_VAL = 4294967294
SUCCESS, ERROR, ACCOUNTING_POLICY, ACCESS_DENIED = 0, -1, 2050, 2002
NAMED = {"SUCCESS": SUCCESS, "REFUSED": ACCOUNTING_POLICY}


class Hook:
    """The hook as slurmctld holds it. `says`: what the user read; `logs`: what was logged."""

    def __init__(self, lua, path, snapshot=None, encoding="utf-8", **changed):
        self.path, self.now, self.says, self.logs = path, NOW, [], []
        self.lua = importlib.import_module("lupa." + lua).LuaRuntime(encoding=encoding)
        # This Lua is built without popen; slurmctld's has it.
        self.lua.execute(
            """local run = ...
               io.popen = function(command)
                   local text = run(command)
                   return { read = function() return text end, close = function() end }
               end""",
            lambda command: (
                subprocess.run(
                    ["/bin/sh", "-c", command],
                    stdout=subprocess.PIPE,
                    encoding=encoding,
                    check=False,
                ).stdout
            ),
        )
        self.lua.globals().slurm = self.lua.table_from(
            {
                "SUCCESS": SUCCESS,
                "ERROR": ERROR,
                "ESLURM_ACCOUNTING_POLICY": ACCOUNTING_POLICY,
                "ESLURM_ACCESS_DENIED": ACCESS_DENIED,
                "log_user": lambda _, text: self.says.extend(text.split("\n")),
                "log_info": lambda _, text: self.logs.append(text),
                "log_error": lambda _, text: self.logs.append(text),
            }
        )
        chosen = {"snapshot": str(path), "fallback": "preemptible", "helper": "memory", **changed}
        chosen["clock"] = lambda: self.now
        chosen["trusted_uids"] = self.lua.table_from(changed.get("trusted_uids", []))
        load = self.lua.eval("dofile")
        self.logic = load(str(ROOT / "etc/sbudget.lua"))(self.lua.table_from(chosen))
        if snapshot is not None:
            self.publish(snapshot)

    def publish(self, snapshot):
        self.path.write_text(encode(snapshot))

    def table(self, fields):
        return self.lua.table_from({k: v for k, v in fields.items() if v is not None})

    def submit(self, job_desc):
        """The code that slurmctld gets, and the fields that were written."""
        fields = {k: v for k, v in job_desc.items() if not k.startswith("default_p")}
        parts = None
        if "default_partition" in job_desc:
            part = {"flag_default": 1, "default_time": fields.pop("default_time", NO_VAL)}
            parts = self.lua.table_from({job_desc["default_partition"]: self.table(part)})
        return self._call(self.logic.submit, fields, parts, 1000)

    def modify(self, change, job, uid=1000):
        return self._call(self.logic.modify, change, self.table(job), None, uid)

    def _call(self, function, fields, *rest):
        self.says.clear()
        desc = self.table(fields)
        code = function(desc, *rest)
        return code, {k: v for k, v in desc.items() if fields.get(k) != v}


@pytest.fixture(params=LUAS)
def lua(request):
    return request.param


@pytest.fixture
def path(tmp_path):
    return tmp_path / "snapshot"


@pytest.fixture
def hook(lua, path):
    return Hook(lua, path, hookcases.snapshot())


def promise(hook, case):
    hook.logic.promise(hook.table(hookcases.promised_of(case)))


def check(hook, case):
    expect = case["expect"]
    code, changes = hook.submit(case["job_desc"])
    assert changes == hookcases.expected_changes(case)
    assert code == NAMED[expect["code"]]
    if "says" in expect:
        assert hook.says == expect["says"]


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_the_table(lua, path, case):
    hook = Hook(lua, path, hookcases.snapshot_of(case))
    if "promised" in case:
        hook.logic.snapshot()
        promise(hook, case)
    check(hook, case)


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_the_gpus_of_the_table(hook, case):
    if "gpus" in case["expect"]:
        request = hook.logic.read(hook.table(case["job_desc"]), hook.table({}))
        assert dict(request.gpus.items()) == case["expect"]["gpus"]


# --- drawn requests: Lua says what Python says

NUMBERS = st.one_of(
    st.none(),
    st.sampled_from([0, 1, 2, 3.0, 8, 60, 65534, 65535, NO_VAL, NO_VAL + 1, 2.0**64 - 2, -1, 1e10]),
    st.integers(0, 100),
)
COUNT = st.sampled_from(
    ["", ":0", ":1", ":2", ":8", "=2", ":h100", ":h100:4", ":h200=2", ":4090:2"]
)
COUNT |= st.sampled_from(
    [":a100_3g.20gb:3", ":h100:2K", ":8(IDX:0-7)", ":h100:2(IDX:0,1)", ":", ":1.5"]
)
GRES = st.builds(
    lambda prefix, name, count: prefix + name + count,
    st.sampled_from(["gres:", "gres/", ""]),
    st.sampled_from(["gpu", "gpu", "gpu", "gpumem", "gpuutil", "shard", "nvme"]),
    COUNT,
)
GRES_TEXT = (
    st.none()
    | st.sampled_from(["", "N/A", "(null)"])
    | st.lists(GRES, min_size=1, max_size=3).map(",".join)
)
DURATION = st.sampled_from(
    ["0", "90", "4h", "30m", "30min", "90s", "1h30m", "1.5h", "0.125h", "1d", "1:30", "4:00:00"]
)
DURATION |= st.sampled_from(["1-0", "2-1:00"]) | st.text("0123456789hmsd:-.ain", max_size=8)
COMMENT = st.none() | st.builds(
    lambda before, text, after: f"{before}min-runtime={text}{after}",
    st.sampled_from(["", "x ", "a,", "no", ";"]),
    DURATION,
    st.sampled_from(["", " y", ",z", " min-runtime=1h"]),
)
PIECE = st.sampled_from(["1", "0-9", "0-15:4", "3-3", "20-31:3", "", "...", "9-1", "1-5:0", "x"])
ARRAY = st.none() | st.builds(
    lambda pieces, throttle: ",".join(pieces) + throttle,
    st.lists(PIECE, max_size=3),
    st.sampled_from(["", "%1", "%4", "%0", "%", "%x"]),
)
QOS = st.sampled_from([None, "", "funded", "FUNDED", "funded-nlp", "preemptible", "normal"])
TEXT = st.none() | st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12)
ADMIN = TEXT | st.builds(
    lambda a, mark, b: (a or "") + str(mark) + (b or ""),
    TEXT,
    st.sampled_from(
        [Marker("funded", "funded", 60, "fits"), "sbudget:2:x=y", "xsbudget:1:c=funded"]
    ),
    TEXT,
)
SIZES = "min_nodes max_nodes num_tasks ntasks_per_node ntasks_per_tres sockets_per_node shared"
FIELDS = {
    "account": st.sampled_from([None, "vision", "nlp", "spent", "bare", "h100s", "lab"])
    | st.sampled_from(["newlab", "OldVision"]),
    "default_account": st.sampled_from(["vision", None]),
    "user_name": st.sampled_from(["alice", "bob", None]),
    "qos": QOS,
    "comment": COMMENT | TEXT,
    "admin_comment": ADMIN,
    "array_inx": ARRAY,
    "partition": st.sampled_from([None, "", "gpu", "cpu", "gpu,small"]),
    "req_nodes": st.sampled_from([None, "n1"]),
    "cpus_per_tres": st.sampled_from([None, "gres:gpu:4"]),
    "script": st.sampled_from(["#!/bin/sh", "", None]),
    "time_limit": NUMBERS | st.sampled_from([30, 60.0, 120, 1440]),
    "time_min": NUMBERS,
    "requeue": NUMBERS,
    "priority": NUMBERS,
    "req_switch": NUMBERS,
    **{f"tres_per_{unit}": GRES_TEXT for unit in ("job", "node", "task", "socket")},
    **dict.fromkeys(SIZES.split(), NUMBERS),
}
JOBS = st.fixed_dictionaries({}, optional=FIELDS)
POLICIES = st.fixed_dictionaries(
    {},
    optional={
        "default_class": st.sampled_from(["funded", "preemptible"]),
        "min_runtime": st.sampled_from([0, 60, 7200]),
        "min_runtime_cap": st.sampled_from([3600, 86400]),
        "on_exhausted": st.sampled_from(["preemptible", "wait", "reject"]),
        "messages": st.booleans(),
        "fast_lane_gpu_time": st.sampled_from([0, 10**6]),
        "topology": st.booleans(),
        "job_requeue": st.booleans(),
        "node_gpus": st.sampled_from([0, 4]),
        "partition_gpus": st.sampled_from([{}, {"gpu": 8, "small": 2}]),
        "several_nodes": st.sampled_from([("gpu",), ("big", "small")]),
        "weights": st.sampled_from([{}, {"h100": 1500, "h200": 0, "": 700}]),
    },
)


def python_says(job_desc, snapshot, promised):
    try:
        request = requests.read(job_desc)
    except BadInput:
        funded = (job_desc.get("qos") or "").lower() == "funded"
        return SUCCESS, {"qos": "preemptible"} if funded else {}, [], {}
    verdict = admission.decide(request, snapshot, NOW, promised)
    code = ACCOUNTING_POLICY if verdict.reject else SUCCESS
    return code, dict(verdict.changes), list(verdict.messages), dict(verdict.promise)


@pytest.mark.parametrize("lua", LUAS)
@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    jobs=st.lists(JOBS, min_size=1, max_size=4),
    one=st.one_of(*(st.fixed_dictionaries({name: value}) for name, value in FIELDS.items())),
    policy=POLICIES,
    age=st.sampled_from([5, 9999]),
)
@example(
    # no TRES says the GPUs, so other fields do
    jobs=[{"default_account": "vision", "tres_per_node": "", "script": "#!/bin/sh"}],
    one={"ntasks_per_tres": 1},
    policy={},
    age=5,
)
@example(
    # a fast lane that is off, and a job that would cost nothing in it
    jobs=[{"default_account": "vision", "shared": 0, "time_limit": 0, "time_min": 1}],
    one={},
    policy={"fast_lane_gpu_time": 0},
    age=5,
)
def test_lua_says_what_python_says(lua, tmp_path_factory, jobs, one, policy, age):
    # What is remembered of a request must fit it when it comes again, and not one that differs.
    others = [{**job, **one} for job in jobs]
    path = tmp_path_factory.getbasetemp() / f"snapshot-{lua}"
    snapshot = hookcases.snapshot(policy, age)
    hook, promised = Hook(lua, path, snapshot), {}
    for job_desc in [*jobs, *others, *jobs]:
        code, changes, says, promise = python_says(job_desc, snapshot, promised)
        for name, cost in promise.items():
            promised[name] = promised.get(name, 0) + cost
        hook_code, hook_changes = hook.submit(job_desc)
        # A field that is written with what stood there is no change that anyone could see.
        assert hook_changes == {k: v for k, v in changes.items() if job_desc.get(k) != v}
        assert (hook_code, hook.says) == (code, says)


def test_what_is_remembered_of_requests_is_of_these_settings(lua, path):
    base = hookcases.snapshot()
    hook = Hook(lua, path, base)
    hook.submit(ONE)
    hook.publish(base._replace(observed_at=base.observed_at + 1))
    kept = hook.logic.snapshot().kinds.kept
    hook.logic.close_snapshot()
    hook.submit(ONE)
    assert "protected for 1 h" in hook.says[0]
    assert hook.logic.snapshot().kinds.kept == kept == 1
    hook.logic.close_snapshot()
    hook.publish(hookcases.snapshot({"min_runtime_cap": 600}))
    hook.submit(ONE)
    assert "protected for 10 min" in hook.says[0]


def test_the_name_of_a_user_is_asked_for_once_an_hour(lua, path):
    base = hookcases.snapshot()
    hook = Hook(lua, path, base)
    told = []
    for seconds, name in ((0, "alice"), (3600, "bob"), (3601, "bob")):
        hook.now = NOW + seconds
        hook.publish(base._replace(observed_at=hook.now))
        hook.submit({**ONE, "user_id": 1234, "user_name": name})
        told.append("alice's budget in vision" in hook.says[-1])
    assert told == [True, True, False]


def test_a_user_whose_name_was_not_known_is_asked_for_again(hook):
    hook.submit({**ONE, "user_id": 1234})
    assert "from vision's budget" in hook.says[0]
    hook.submit({**ONE, "user_id": 1234, "user_name": "alice"})
    assert "alice's budget in vision" in hook.says[0]


def test_what_is_remembered_of_requests_has_a_bound(hook):
    """A user who never asks the same twice costs slurmctld no more memory for it."""
    most = 0
    for minutes in range(1, 2100):
        hook.submit({**ONE, "time_limit": 100 + minutes})
        most = max(most, hook.logic.snapshot().kinds.kept)
        hook.logic.close_snapshot()
    assert 500 < most <= 1000
    hook.submit({**ONE, "qos": "preemptible"})
    assert "as asked" in hook.says[0]


@pytest.mark.parametrize("lua", LUAS)
@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    text=st.text(max_size=20),
    marker=st.builds(
        Marker,
        st.just("funded"),
        st.just("funded"),
        st.integers(0, 10**9),
        st.sampled_from(["fits", "fast"]),
        st.booleans(),
    ),
    after=ADMIN,
)
def test_markers_are_the_same_in_both(lua, tmp_path_factory, text, marker, after):
    hook = Hook(lua, tmp_path_factory.getbasetemp() / "none")
    existing = text + (after or "")
    assert hook.logic.merge(existing, str(marker)) == merge(existing, marker)
    read, ours = parse(existing), hook.logic.parse_marker(existing)
    assert (read is None) == (ours is None)
    if read is not None:
        assert (ours["class"], ours.asked, ours.min_runtime, ours.why, ours.requeue) == (
            read.class_,
            read.asked,
            read.min_runtime,
            read.why,
            read.requeue,
        )


@pytest.mark.parametrize("lua", LUAS)
@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(job=st.dictionaries(st.sampled_from(sorted(FIELDS)), TEXT | NUMBERS | st.booleans()))
def test_nonsense_passes(lua, tmp_path_factory, job):
    hook = Hook(lua, tmp_path_factory.getbasetemp() / f"snapshot-{lua}", hookcases.snapshot())
    assert hook.submit(job)[0] == SUCCESS


# --- between snapshots

ONE = {"account": "vision", "qos": "funded", "script": "#!", "time_limit": 600}
ONE["tres_per_node"] = "gres/gpu:1"


def funded_of(hook, count, **fields):
    return sum(hook.submit({**ONE, **fields})[1]["qos"] == "funded-vision" for _ in range(count))


def test_a_thousand_submissions_within_seconds(lua, path):
    hook = Hook(lua, path, hookcases.with_budget("vision", 10))
    assert funded_of(hook, 1000) == 10


def test_the_fast_lane_holds_as_many_more(lua, path):
    base = hookcases.with_budget("vision", 10, fast_lane_gpu_time=7200)
    accounts = {**base.accounts, "vision": base.accounts["vision"]._replace(fast=13 * GPU_HOUR)}
    hook = Hook(lua, path, base._replace(accounts=accounts))
    assert funded_of(hook, 100) == 10
    assert funded_of(hook, 100, time_limit=60) == 3


def test_a_new_snapshot_takes_over_the_promises_before_it(lua, path):
    snapshot = hookcases.with_budget("vision", 10)
    hook = Hook(lua, path, snapshot)
    assert funded_of(hook, 4) == 4
    hook.now += 30
    assert funded_of(hook, 3) == 3
    # It has seen the first four (6 hours are left), and cannot have seen the other three.
    seen = hookcases.with_budget("vision", 6)
    hook.publish(seen._replace(observed_at=NOW + 30))
    assert funded_of(hook, 100) == 3
    # The same facts published again, observed later: all ten are in its figures.
    hook.publish(seen._replace(observed_at=NOW + 31))
    assert funded_of(hook, 100) == 6


def test_an_unchanged_snapshot_is_not_read_again(hook):
    hook.submit(ONE)
    blob = hook.path.read_bytes()
    # What the hook has in memory counts as long as the first line is the same.
    hook.path.write_bytes(blob.replace(b"funded-vision", b"funded-XXXXXX"))
    assert hook.submit(ONE)[1]["qos"] == "funded-vision"


# --- finding a line among many

NAMES = st.text("abz019_-.@", min_size=1, max_size=6)


def without_index(text):
    """The same as a sweep published it that knew of no index."""
    head, *lines, _ = text.splitlines()
    lines = [line for line in lines if not line.startswith("X\t")]
    body = "".join(f"{line}\n" for line in [*lines, f"end\t{len(lines)}"])
    fields = head.split("\t")[:7]
    fields[5] = f"{len(chr(9).join(fields)) + 1 + len(body.encode()):012d}"
    return "\t".join(fields) + "\n" + body


@pytest.mark.parametrize("index", [True, False])
@pytest.mark.parametrize("lua", LUAS)
@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(names=st.sets(NAMES, min_size=1, max_size=300), draw=st.data())
def test_every_line_is_found_and_no_other(lua, index, tmp_path_factory, names, draw):
    base = hookcases.snapshot()
    long = "gres/gpu:" + "x" * draw.draw(st.integers(1, 200))
    accounts = {
        name: AccountFacts(name, None, "funded-" + name, 1, 2, number, gres=long)
        for number, name in enumerate(names)
    }
    with_budget = draw.draw(st.sets(st.sampled_from(sorted(names)), max_size=50))
    users = {(name, "u" + name): UserFacts(name, "u" + name, 1, 2, 3) for name in with_budget}
    crowd = [f"v{number}" for number in range(200)] if with_budget else []
    crowded = min(with_budget, default="")
    users |= {(crowded, user): UserFacts(crowded, user, 1, 2, 3) for user in crowd}
    path = tmp_path_factory.getbasetemp() / f"many-{lua}"
    text = encode(base._replace(accounts=accounts, users=users))
    path.write_text(text if index else without_index(text))
    hook = Hook(lua, path)
    hook.logic.snapshot()
    for name, facts in accounts.items():
        found = hook.logic.account(name)
        assert (found.name, found.fast) == (name, facts.fast)
        assert (hook.logic.user(found, "u" + name) is not None) == (name in with_budget)
        assert hook.logic.user(found, "u") is None
        if name == crowded:
            assert all(hook.logic.user(found, user) for user in crowd)
    for name in draw.draw(st.sets(NAMES, max_size=50)) - names:
        assert hook.logic.account(name) is None
    hook.logic.close_snapshot()


@pytest.mark.parametrize("lua", LUAS)
@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(draw=st.data())
def test_an_index_that_leads_anywhere(lua, tmp_path_factory, draw):
    """The job is taken, and only its own account's budget can fund it."""
    path = tmp_path_factory.getbasetemp() / f"damaged-{lua}"
    text = encode(hookcases.snapshot())
    size = len(text)
    for entry in set(re.findall("X\t[0-9]{9}\t[0-9]{3}\n", text)):
        offset = draw.draw(
            st.integers(0, 2 * size) | st.just(10**9 - 1) | st.just(int(entry[2:11]))
        )
        mark = draw.draw(st.sampled_from([entry[12:15], "000", "999"]))
        text = text.replace(entry, f"X\t{offset:09d}\t{mark}\n")
    path.write_text(text)
    hook = Hook(lua, path)
    code, changes = hook.submit(ONE)
    assert code == SUCCESS
    assert changes["qos"] in ("funded-vision", "preemptible")


def test_names_that_were_chosen_to_have_one_hash_are_found(lua, path):
    names = hookcases.names_of_one_hash()
    accounts = {
        name: AccountFacts(name, None, "funded-" + name, 10**12, 10**12, 0) for name in names
    }
    hook = Hook(lua, path, hookcases.snapshot()._replace(accounts=accounts))
    for name in names:
        assert hook.submit({**ONE, "account": name})[1]["qos"] == "funded-" + name


@pytest.mark.parametrize("size", range(4090, 4100))
def test_a_setting_more_where_the_first_page_ends(lua, path, size):
    """Old settings are not taken for new ones that begin with them."""
    base = hookcases.snapshot({"partition_gpus": {"a": 8}})
    first = encode(base).split("\nA\t")[0]
    name = "y" * (size - len(first) - len("G\t\t1\n"))
    hook = Hook(lua, path, hookcases.snapshot({"partition_gpus": {"a": 8, name: 1}}))
    whole_node = {**ONE, "partition": "zz", "shared": 0}
    hook.submit(whole_node)
    assert "GPUs count" not in "".join(hook.says)
    more = hookcases.snapshot({"partition_gpus": {"a": 8, name: 1, "zz": 8}})
    hook.publish(more._replace(observed_at=more.observed_at + 1))
    hook.submit(whole_node)
    assert "all their GPUs count: 8" in hook.says[-1]


def test_no_name_is_asked_for_where_no_user_has_a_budget(lua, path):
    """Slurm reads /etc/passwd for each, under its locks."""
    hook = Hook(lua, path, hookcases.snapshot()._replace(users={}))
    asked = hook.lua.eval("""function(fields)
        asked = 0
        return setmetatable({}, { __index = function(_, name)
            if name == "user_name" then asked = asked + 1 end
            return fields[name]
        end })
    end""")(hook.table({**ONE, "user_id": 1234, "user_name": "alice"}))
    assert hook.logic.submit(asked, None, 1234) == SUCCESS
    assert "vision's budget" in hook.says[0]
    assert hook.lua.globals().asked == 0


def test_more_settings_than_are_read_at_once(lua, path):
    weights = {f"type{index}": index for index in range(2000)}
    hook = Hook(lua, path, hookcases.snapshot({"weights": weights}))
    assert hook.submit({**ONE, "tres_per_node": "gres/gpu:type1999:1"})[0] == SUCCESS
    assert hook.says[0].endswith("(310.5 of 2,688 GPU-hours left).")


# --- harmless, whatever happens to the snapshot

BLIND = {"qos": "preemptible"}


def harmless(hook):
    code, changes = hook.submit(ONE)
    marker = parse(changes.pop("admin_comment"))
    return code == SUCCESS and changes == BLIND and marker.why == "blind"


def test_a_snapshot_cut_off_at_any_byte(lua, path):
    base = hookcases.snapshot()
    blob = encode(base._replace(accounts={"vision": base.accounts["vision"]})).encode()
    hook = Hook(lua, path)
    for size in range(len(blob)):
        path.write_bytes(blob[:size])
        assert harmless(hook), f"cut off at byte {size}"
    path.write_bytes(blob)
    assert hook.submit(ONE)[1]["qos"] == "funded-vision"


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(blob=st.binary(max_size=600))
@pytest.mark.parametrize("lua", LUAS)
def test_random_bytes(lua, tmp_path_factory, blob):
    path = tmp_path_factory.getbasetemp() / "random"
    path.write_bytes(blob)
    assert harmless(Hook(lua, path, encoding="latin-1"))


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(at=st.integers(0, 2000), byte=st.integers(0, 255))
@pytest.mark.parametrize("lua", LUAS)
def test_one_wrong_byte(lua, tmp_path_factory, at, byte):
    path = tmp_path_factory.getbasetemp() / "wrong"
    blob = bytearray(encode(hookcases.snapshot()).encode())
    blob[at % len(blob)] = byte
    path.write_bytes(blob)
    assert Hook(lua, path, encoding="latin-1").submit(ONE)[0] == SUCCESS


def test_no_snapshot_a_directory_another_version(lua, path):
    hook = Hook(lua, path)
    assert harmless(hook)
    path.mkdir()
    assert harmless(hook)
    path.rmdir()
    path.write_text(encode(hookcases.snapshot()).replace("\t1\t", "\t2\t", 1))
    assert harmless(hook)


def test_trouble_is_logged_once_a_minute(lua, path):
    hook = Hook(lua, path)
    for _ in range(50):
        hook.submit(ONE)
    assert len(hook.logs) == 1
    assert "no usable snapshot" in hook.logs[0]
    hook.now += 60
    hook.submit(ONE)
    assert len(hook.logs) == 2
    assert "49 times" in hook.logs[1]


def test_the_fallback_is_a_setting(lua, path):
    assert Hook(lua, path, fallback="scavenger").submit(ONE)[1]["qos"] == "scavenger"


def test_an_error_of_ours_changes_nothing_but_a_qos_that_is_none(hook):
    hook.logic.judge = hook.lua.eval("function() error('broken') end")
    assert hook.submit({**ONE, "qos": "funded-vision"}) == (SUCCESS, {})
    assert hook.submit(ONE) == (SUCCESS, {"qos": "preemptible"})
    assert "broken" in hook.logs[0]


def test_other_components_of_a_het_job_are_batch_as_the_first(hook):
    part = {**ONE, "script": None}
    hook.submit({**ONE, "het_job_offset": 0})
    assert hook.submit({**part, "het_job_offset": 1})[1]["qos"] == "funded-vision"
    hook.submit({**part, "het_job_offset": 0})
    assert hook.submit({**part, "het_job_offset": 1})[1]["qos"] == "preemptible"


# --- scontrol update

WAITING = {
    "job_id": 7,
    "job_state": 0,
    "account": "nlp",
    "qos": "preemptible",
    "time_limit": 600,
    "gres_req": "cpu=1,node=1,billing=8,gres/gpu=8",
    "script": "#!",
    "array_job_id": 0,
    "array_task_id": NO_VAL,
    "min_nodes": 1,
    "tres_per_node": "gres:gpu:8",
    "admin_comment": "sbudget:1:c=preemptible:a=preemptible:m=3600:w=asked",
}
UNSAID = {
    "qos": None,
    "time_limit": NO_VAL,
    "time_min": NO_VAL,
    "requeue": 65534,
    "min_nodes": NO_VAL,
    "max_nodes": NO_VAL,
    "num_tasks": NO_VAL,
    "priority": NO_VAL,
    "user_name": "bob",
}


def update(hook, change, uid=1000, **job):
    return hook.modify({**UNSAID, **change}, {**WAITING, **job}, uid)


FUNDED = {"qos": "funded-nlp", "admin_comment": "sbudget:1:c=funded:a=funded:m=3600:w=fits"}


def test_a_user_may_move_into_funded_within_the_balance(hook):
    assert update(hook, {"qos": "funded"}) == (SUCCESS, {"qos": "funded-nlp"})
    assert hook.says == []


def test_and_not_beyond_it(hook):
    assert update(hook, {"qos": "funded"})[0] == SUCCESS
    assert update(hook, {"qos": "funded-nlp"}) == (ACCOUNTING_POLICY, {})
    assert hook.says == [
        "sbudget: not funded: nlp's budget has 2 of 1,000 GPU-hours left,"
        " this job needs 8; more is back in 3 h 20 min."
    ]
    assert "refused uid 1000 a change of job 7" in hook.logs[-1]


def test_the_qos_of_another_account_does_not_help(hook):
    assert update(hook, {"qos": "funded-vision"}) == (SUCCESS, {"qos": "funded-nlp"})


def test_without_a_snapshot_nobody_moves_into_funded(lua, path):
    hook = Hook(lua, path)
    assert update(hook, {"qos": "funded"}) == (ACCOUNTING_POLICY, {})
    assert update(hook, {"qos": "preemptible"}, **FUNDED) == (SUCCESS, {})


def test_what_does_not_concern_us_passes(hook):
    for change in ({}, {"priority": NO_VAL + 1}, {"name": "x"}, {"qos": "preemptible"}):
        assert update(hook, change) == (SUCCESS, {})
    assert update(hook, {"time_limit": 1440}) == (SUCCESS, {})
    assert update(hook, {"qos": "preemptible"}, **FUNDED) == (SUCCESS, {})
    assert update(hook, {"time_limit": 60}, **FUNDED) == (SUCCESS, {})
    assert hook.logs == []


def test_the_marker_is_not_for_users(hook):
    assert update(hook, {"admin_comment": "mine"})[0] == ACCESS_DENIED


def test_the_minimum_runtime_is_fixed_at_submission(hook):
    assert update(hook, {"time_min": 480}) == (ACCOUNTING_POLICY, {})


def test_a_user_cannot_hold_what_the_hook_holds_for_its_budget(hook):
    """Slurm would show no difference, and the sweep lifts the hook's hold."""
    waits = {"admin_comment": "sbudget:1:c=preemptible:a=funded:m=3600:w=wait"}
    assert update(hook, {"priority": 0}, **waits) == (ACCOUNTING_POLICY, {})
    assert "give it a later StartTime" in hook.says[0]
    assert update(hook, {"priority": 0}, uid=0, **waits) == (SUCCESS, {})
    for other in ({}, FUNDED, {"admin_comment": waits["admin_comment"].replace("wait", "budget")}):
        assert update(hook, {"priority": 0}, **other) == (SUCCESS, {})
    assert update(hook, {"priority": NO_VAL + 1}, **waits) == (SUCCESS, {}), "let it go"


def test_a_funded_job_stays_requeueable(hook):
    assert update(hook, {"requeue": 0}, **FUNDED) == (ACCOUNTING_POLICY, {})
    assert update(hook, {"requeue": 0}, **{**FUNDED, "time_limit": 60}) == (SUCCESS, {})
    assert update(hook, {"requeue": 1}, **FUNDED) == (SUCCESS, {})


def test_a_funded_job_that_cannot_be_requeued_is_not_lengthened(hook):
    fixed = {**FUNDED, "time_limit": 60}
    fixed["admin_comment"] += ":r=0"
    assert update(hook, {"time_limit": 61}, **fixed) == (ACCOUNTING_POLICY, {})
    assert hook.says == [
        "sbudget: a funded job that cannot be requeued may not have a time limit above its"
        " minimum runtime of 1 h."
    ]
    assert update(hook, {"time_limit": 600}, **FUNDED) == (SUCCESS, {})


def test_a_job_of_the_fast_lane_stays_small(hook):
    small = {
        "account": "spent",
        "qos": "funded-spent",
        "gres_req": "gres/gpu=1",
        "time_limit": 60,
        "admin_comment": "sbudget:1:c=funded:a=funded:m=3600:w=fast",
    }
    assert update(hook, {"time_limit": 600}, **small) == (ACCOUNTING_POLICY, {})
    assert update(hook, {"time_limit": 90}, **small)[0] == SUCCESS
    assert update(hook, {"time_limit": 30}, **small) == (SUCCESS, {})


def test_a_funded_job_does_not_grow(hook):
    assert update(hook, {"min_nodes": 2}, **FUNDED) == (ACCOUNTING_POLICY, {})
    assert update(hook, {"tres_per_node": "gres:gpu:4"}, **FUNDED) == (SUCCESS, {})


def test_a_funded_job_pays_from_the_account_that_it_moves_to(hook):
    assert update(hook, {"account": "vision"}, **FUNDED) == (SUCCESS, {"qos": "funded-vision"})
    assert update(hook, {"account": "lab"}, **FUNDED) == (ACCOUNTING_POLICY, {})
    both = update(hook, {"account": "lab", "qos": "preemptible"}, **FUNDED)
    assert both == (SUCCESS, {})


def test_an_array_is_told_to_submit_again(hook):
    assert update(hook, {"qos": "funded"}, array_job_id=7)[0] == ACCOUNTING_POLICY
    assert update(hook, {"qos": "funded"}, array_job_id=6, array_task_id=3)[0] == SUCCESS


def test_a_job_without_gpus_is_not_funded(hook):
    bare = {"gres_req": "cpu=1,node=1", "tres_per_node": None}
    assert update(hook, {"qos": "funded"}, **bare)[0] == ACCOUNTING_POLICY


def test_the_sweep_and_root_pass(hook):
    change = {"qos": "funded-nlp", "admin_comment": FUNDED["admin_comment"], "priority": 5}
    assert update(hook, change, uid=0) == (SUCCESS, {})
    assert hook.logs == []
    assert update(hook, {"qos": "funded"}, uid=0) == (SUCCESS, {"qos": "funded-nlp"})
    assert hook.logs == ["sbudget: uid 0 changes job 7: qos=funded-nlp"]


def test_no_text_of_a_request_begins_a_line_of_slurmctlds_log(hook):
    evil = "x\n[2026-11-29] error: granted\x1b[2J"
    update(hook, {"qos": evil, "account": evil}, uid=0)
    update(hook, {"qos": "funded", "account": evil}, **FUNDED)
    hook.submit({"qos": evil, "account": evil, "tres_per_node": "gres:gpu:1", "comment": evil})
    assert hook.logs
    assert not any(char in line for line in hook.logs for char in "\n\x1b")


def test_operators_and_trusted_uids_pass(lua, path):
    hook = Hook(lua, path, hookcases.snapshot({"operators": (501,)}))
    big = {"qos": "funded-nlp"}
    for _ in range(3):
        assert update(hook, big, uid=501) == (SUCCESS, {})
    assert update(hook, {"admin_comment": "x"}, uid=os.getuid()) == (SUCCESS, {})
    trusting = Hook(lua, path, trusted_uids=[777])
    assert update(trusting, {"admin_comment": "x"}, uid=777) == (SUCCESS, {})
    assert update(trusting, {"admin_comment": "x"}, uid=778)[0] == ACCESS_DENIED


def test_an_error_of_ours_lets_a_change_pass(hook):
    hook.logic.change = hook.lua.eval("function() error('broken') end")
    assert update(hook, {"time_limit": 5}) == (SUCCESS, {})
    assert update(hook, {"qos": "funded"}) == (SUCCESS, {"qos": "preemptible"})


# --- helper = "exec"


def program(tmp_path, text):
    file = tmp_path / "it's a program"
    file.write_text("#!/bin/sh\n" + text)
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return str(file)


def admit_program(tmp_path):
    return program(tmp_path, f'exec "{sys.executable}" -m slurm_budget.admit "$@"\n')


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_the_helper_program_gives_the_same_verdicts(tmp_path, path, case):
    call = {"helper": "exec", "program": admit_program(tmp_path), "helper_seconds": 20}
    hook = Hook("lua51", path, hookcases.snapshot_of(case), **call)
    if "promised" in case:
        hook.logic.snapshot()
        promise(hook, case)
    check(hook, case)
    assert [line for line in hook.logs if "without the helper" in line] == []


def test_the_helper_program_and_words_that_are_no_commands(lua, tmp_path, path):
    call = {"helper": "exec", "program": admit_program(tmp_path), "helper_seconds": 20}
    hook = Hook(lua, path, hookcases.snapshot(), **call)
    evil = f"'; touch {tmp_path}/pwned; '\n$(touch {tmp_path}/pwned)`x`\\\"ü"
    job = {**ONE, "comment": evil, "account": evil, "user_name": evil, "admin_comment": evil}
    code, changes = hook.submit(job)
    assert code == SUCCESS
    assert changes["admin_comment"].startswith(evil + ";sbudget:1:")
    assert not (tmp_path / "pwned").exists()


@pytest.mark.parametrize("body", ["sleep 60", "exit 3", "echo nonsense", "echo '{\"changes\":'"])
def test_a_helper_program_that_fails_is_done_without(lua, tmp_path, path, body):
    call = {"helper": "exec", "program": program(tmp_path, body + "\n"), "helper_seconds": 1}
    hook = Hook(lua, path, hookcases.snapshot(), **call)
    assert hook.submit(ONE)[1]["qos"] == "funded-vision"
    assert "decided without the helper program" in hook.logs[0]


def test_promises_count_for_the_helper_program_too(tmp_path, path):
    call = {"helper": "exec", "program": admit_program(tmp_path), "helper_seconds": 20}
    hook = Hook("lua54", path, hookcases.with_budget("vision", 3), **call)
    assert funded_of(hook, 5) == 3


# --- the loader


def load(hook, text):
    """Runs job_submit.lua as slurmctld does, with the paths of this test."""
    loader = (ROOT / "etc/job_submit.lua").read_text()
    loader = loader.replace("/etc/slurm-budget/sbudget.lua", str(ROOT / "etc/sbudget.lua"))
    loader = loader.replace("/var/lib/slurm-budget/snapshot", str(hook.path))
    hook.lua.execute(text + "\n" + loader.replace("return slurm.SUCCESS\n", "", 0))
    return hook.lua.globals()


def test_the_loader_alone(hook):
    slurm = load(hook, "")
    desc = hook.table(ONE)
    assert slurm.slurm_job_submit(desc, None, 1000) == SUCCESS
    # The table's snapshot is of long ago, and this hook reads the real clock.
    assert desc.qos == "preemptible"
    assert slurm.slurm_job_modify(hook.table({}), hook.table(WAITING), None, 1000) == SUCCESS


def test_the_loader_after_a_sites_own_script(hook):
    slurm = load(
        hook,
        """function slurm_job_submit(d) if d.name == 'bad' then return 99 end d.seen = 1 end
           function slurm_job_modify() return 98 end""",
    )
    desc = hook.table(ONE)
    assert slurm.slurm_job_submit(desc, None, 1000) == SUCCESS
    assert (desc.seen, desc.qos) == (1, "preemptible")
    assert slurm.slurm_job_submit(hook.table({**ONE, "name": "bad"}), None, 1000) == 99
    assert slurm.slurm_job_modify(hook.table({}), hook.table(WAITING), None, 1000) == 98


def test_the_loader_without_its_logic(hook):
    loader = (ROOT / "etc/job_submit.lua").read_text()
    hook.lua.execute(loader.replace("/etc/slurm-budget/sbudget.lua", "/nonexistent/sbudget.lua"))
    assert "cannot be loaded" in hook.logs[0]
    desc = hook.table(ONE)
    assert hook.lua.globals().slurm_job_submit(desc, None, 1000) == SUCCESS
    assert desc.qos == "preemptible"


def test_the_loader_says_what_it_has_loaded(hook):
    load(hook, "")
    logic = (ROOT / "etc/sbudget.lua").read_bytes()
    said = hook_log.Running(hook_files.version(logic), hook_files.checksum(logic))
    assert hook_log.running("\n".join(hook.logs)) == said


# --- an upgrade in the middle: files of two versions meet, and jobs are accepted


OLDER_LOADER = """
local settings = { logic = %r, snapshot = %r, fallback = "preemptible", helper = "memory" }
local hook = dofile(settings.logic)(settings)
slurm_job_submit, slurm_job_modify = hook.submit, hook.modify
"""


@pytest.mark.parametrize("version", ["0", "2", "11", ""])
def test_a_snapshot_of_an_older_or_newer_version(lua, path, version):
    hook = Hook(lua, path)
    path.write_text(encode(hookcases.snapshot()).replace("\t1\t", f"\t{version}\t", 1))
    assert harmless(hook)
    assert "is of another version" in hook.logs[0]
    hook.publish(hookcases.snapshot())
    assert hook.submit(ONE)[1]["qos"] == "funded-vision"


def test_settings_and_lines_that_one_side_does_not_know(lua, path):
    hook = Hook(lua, path)
    head, body = without_index(encode(hookcases.snapshot())).split("\n", 1)
    lines = [line for line in body.split("\n") if not line.startswith("P\toperators")]
    lines.insert(0, "P\tof_tomorrow\tx")
    lines[-2:-2] = ["Z\tvision\t1"]
    body = "\n".join(lines)
    fields = head.split("\t")
    fields[5] = f"{len(head) + 1 + len(body.encode()):012d}"
    path.write_text("\t".join(fields) + "\n" + body)
    assert hook.submit(ONE)[1]["qos"] == "funded-vision"
    assert hook.logs == []


def test_the_loader_of_before_with_this_logic(hook):
    hook.lua.execute(OLDER_LOADER % (str(ROOT / "etc/sbudget.lua"), str(hook.path)))
    desc = hook.table(ONE)
    assert hook.lua.globals().slurm_job_submit(desc, None, 1000) == SUCCESS
    assert desc.qos == "preemptible"


def test_this_loader_with_a_logic_that_says_no_version(hook, tmp_path):
    logic = (ROOT / "etc/sbudget.lua").read_text().replace("M.VERSION", "M.older")
    (tmp_path / "sbudget.lua").write_text(logic)
    loader = (ROOT / "etc/job_submit.lua").read_text()
    hook.lua.execute(loader.replace("/etc/slurm-budget/", f"{tmp_path}/"))
    running = hook_log.running("\n".join(hook.logs))
    assert running == ("nil", hook_files.checksum(logic.encode()))
    desc = hook.table(ONE)
    assert hook.lua.globals().slurm_job_submit(desc, None, 1000) == SUCCESS
    assert desc.qos == "preemptible"
