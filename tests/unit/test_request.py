"""Reading what a job asks for, in every spelling that Slurm has for it."""

import math

import pytest

from slurm_budget.core.request import duration, read
from slurm_budget.errors import BadInput

NO_VAL, INFINITE = 4294967294, 4294967295


@pytest.mark.parametrize(
    ("fields", "gpus"),
    [
        ({"tres_per_node": "gres:gpu:8"}, {"": 8}),
        ({"tres_per_node": "gres/gpu:8"}, {"": 8}),
        ({"gres": "gpu:8"}, {"": 8}),
        ({"tres_per_node": "gres:gpu"}, {"": 1}),
        ({"tres_per_node": "gres:gpu:h100"}, {"h100": 1}),
        ({"tres_per_node": "gres/gpu:a100_3g.20gb:3"}, {"a100_3g.20gb": 3}),
        ({"tres_per_node": "gres/gpu:h100:4,gres/gpu:h200:4"}, {"h100": 4, "h200": 4}),
        ({"tres_per_node": "gres/gpu:a100:0"}, {}),
        ({"tres_per_node": "gres/nvme:1"}, {}),
        ({"tres_per_node": "gres/shard:4"}, {}),
        ({"tres_per_job": "gres:gpu:8", "min_nodes": 4}, {"": 8}),
        ({"tres_per_node": "gres:gpu:8", "min_nodes": 2, "max_nodes": 2}, {"": 16}),
        ({"tres_per_node": "gres:gpu:8", "min_nodes": 1, "max_nodes": 3}, {"": 24}),
        ({"tres_per_node": "gres:gpu:8", "min_nodes": 2, "max_nodes": NO_VAL}, {"": 16}),
        ({"tres_per_node": "gres:gpu:4", "num_tasks": 17, "ntasks_per_node": 8}, {"": 12}),
        ({"tres_per_task": "gres/gpu=1", "num_tasks": 8.0}, {"": 8}),
        ({"tres_per_task": "gres/gpu:2", "min_nodes": 2, "ntasks_per_node": 4}, {"": 16}),
        ({"tres_per_task": "gres:gpu:2"}, {"": 2}),
        ({"tres_per_task": "cpu=4,gres/gpu=2"}, {"": 2}),
        ({"tres_per_socket": "gres:gpu:1", "sockets_per_node": 2, "min_nodes": 2}, {"": 4}),
        ({"tres_per_socket": "gres:gpu:1", "sockets_per_node": 65534}, {"": 1}),
        ({"ntasks_per_gpu": 2, "num_tasks": 8}, {"": 4}),
        ({"ntasks_per_tres": 3, "num_tasks": 8}, {"": 3}),
        ({"tres_per_task": "gpu:1", "num_tasks": 8, "tres_per_node": "gpu:4"}, {"": 8}),
        ({}, {}),
    ],
)
def test_gpus_in_every_spelling(fields, gpus):
    assert dict(read(fields).gpus) == gpus


@pytest.mark.parametrize("text", ["gres:gpu:", "gres/gpu=", "gpu:h100:8,", "gpu:99999999999"])
def test_a_request_that_cannot_be_understood_is_an_error_and_no_small_request(text):
    with pytest.raises(BadInput):
        read({"tres_per_node": text})


def test_an_absurd_product_is_an_error_too():
    with pytest.raises(BadInput):
        read({"tres_per_node": "gpu:999999999", "min_nodes": 999999999})


@pytest.mark.parametrize(
    ("array", "at_once"),
    [("", 1), ("5", 1), ("0-9", 10), ("0-9%4", 4), ("0-15:4", 4), ("0-3,7,10-12%100", 8)],
)
def test_array_tasks_that_may_run_at_once(array, at_once):
    assert read({"array_inx": array}).at_once == at_once


@pytest.mark.parametrize("array", ["9-1", "x", "0-5:0", "0-99999999999"])
def test_a_bad_array(array):
    with pytest.raises(BadInput):
        read({"array_inx": array})


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90s", 90),
        ("30m", 1800),
        ("30min", 1800),
        ("4h", 14400),
        ("1h30m", 5400),
        ("1.5h", 5400),
        ("1d", 86400),
        ("90", 5400),
        ("0", 0),
        ("90:30", 5430),
        ("4:00:00", 14400),
        ("1-0", 86400),
        ("1-12:30", 131400),
        ("soon", None),
        ("", None),
        ("4x", None),
        ("4h5", None),
        ("h", None),
        ("1:2:3:4", None),
        ("-5", None),
        ("1e3", None),
        ("9999999999h", None),
    ],
)
def test_minimum_runtimes(text, seconds):
    assert duration(text) == seconds


@pytest.mark.parametrize(
    ("comment", "declared", "bad"),
    [
        ("min-runtime=4h", 14400, None),
        ("exp 12, min-runtime=4H;x", 14400, None),
        ("min-runtime=4h min-runtime=1h", 14400, None),
        ("min-runtime=soon", None, "soon"),
        ("min-runtime=", None, ""),
        ("nomin-runtime=4h", None, None),
        ("nothing of ours", None, None),
    ],
)
def test_what_a_comment_declares(comment, declared, bad):
    request = read({"comment": comment})
    assert (request.declared, request.bad_declared) == (declared, bad)


@pytest.mark.parametrize(
    ("time_min", "declared", "has"),
    [
        (None, None, False),
        (NO_VAL, None, False),
        (240, 14400, True),
        (240.0, 14400, True),
        (INFINITE, 0, True),
        (0, 0, True),
    ],
)
def test_time_min(time_min, declared, has):
    request = read({"time_min": time_min})
    assert (request.declared, request.has_time_min) == (declared, has)


@pytest.mark.parametrize(
    ("fields", "seconds"),
    [
        ({"time_limit": 90.0}, 5400),
        ({"time_limit": INFINITE}, math.inf),
        ({"time_limit": NO_VAL}, None),
        ({"time_limit": NO_VAL, "default_time": 30, "max_time": 60}, 1800),
        ({"default_time": NO_VAL, "max_time": 60}, 3600),
    ],
)
def test_time_limits(fields, seconds):
    assert read(fields).time_limit == seconds


@pytest.mark.parametrize("unset", [None, NO_VAL, INFINITE, 65534, 65535, 2.0**64 - 2, -1, math.nan])
def test_every_way_of_saying_not_set(unset):
    request = read({"requeue": unset, "ntasks_per_node": unset, "sockets_per_node": unset})
    assert request.requeue is None
    assert request.nodes == 1


def test_who_is_asked_for_and_by_what():
    request = read({"account": "Vision", "qos": "FUNDED", "user_name": "ana", "partition": "a,b"})
    assert (request.account, request.qos, request.qos_given) == ("vision", "funded", "FUNDED")
    assert (request.user, request.partitions) == ("ana", ("a", "b"))
    assert read({"default_account": "vision"}).account == "vision"
    assert read({"account": None, "default_account": None}).account is None
    assert read({"default_partition": "gpu"}).partitions == ("gpu",)


def test_batch_or_interactive():
    assert read({"script": "#!/bin/sh"}).batch
    assert not read({"script": ""}).batch
    assert read({"batch": True}).batch
    assert read({"het_job_offset": 1}).batch
    assert not read({"het_job_offset": 0}).batch
    assert not read({"het_job_offset": NO_VAL}).batch


@pytest.mark.parametrize(
    "given",
    [
        {"tres_per_node": "gres:gpu:8"},
        {"min_nodes": 1},
        {"max_nodes": 2},
        {"num_tasks": 8},
        {"req_nodes": "n1"},
        {"mem_per_tres": "gres:gpu:1024"},
    ],
)
def test_one_node_only_where_nothing_else_is_said(given):
    job = {"tres_per_job": "gres:gpu:8", "num_tasks": 1}
    assert read(job).one_node_possible
    assert not read({**job, **given}).one_node_possible
