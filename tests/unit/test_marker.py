"""Our marker in AdminComment: read back as written, and a good neighbour to other tools' text."""

import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from slurm_budget.core.marker import WHY, Marker, merge, parse

CLASSES = st.sampled_from(["funded", "preemptible"])
MARKERS = st.builds(
    Marker, CLASSES, CLASSES, st.integers(0, 10**9), st.sampled_from(sorted(WHY)), st.booleans()
)
MARK = Marker("funded", "funded", 14400, "fits")


def test_what_an_admin_sees():
    assert merge(None, MARK) == "sbudget:1:c=funded:a=funded:m=14400:w=fits"
    assert str(Marker("preemptible", "funded", 60, "requeue", requeue=False)) == (
        "sbudget:1:c=preemptible:a=funded:m=60:w=requeue:r=0"
    )


@given(MARKERS)
def test_read_back_as_written(marker):
    assert parse(str(marker)) == marker
    assert parse(merge("JS1:H4sIAAAA", marker)) == marker


@given(MARKERS)
def test_squeue_and_sacct_print_it_in_one_field(marker):
    assert re.fullmatch(r"[A-Za-z0-9:=-]+", str(marker))


@given(st.text(), MARKERS, MARKERS)
def test_others_text_is_kept_byte_for_byte_and_ours_stands_once(text, first, second):
    assume("sbudget" not in text)
    once = merge(text, first)
    assert once.startswith(text)
    assert merge(once, second) == merge(text, second)
    assert merge(once, second).count("sbudget:") == 1
    assert parse(merge(once, second)) == second


@given(st.text(), MARKERS, MARKERS)
def test_what_others_append_stays_behind_ours(text, first, second):
    assume("sbudget" not in text)
    assert merge(f"a;{first} {text}", second) == f"a;{second} {text}"


@given(st.text())
def test_any_text_is_read_without_an_error(text):
    parse(text)
    parse("sbudget:1:" + text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        None,
        "sbudget:1",
        "sbudget:2:c=funded:a=funded:m=1:w=fits",
        "xsbudget:1:c=funded:a=funded:m=1:w=fits",
        "sbudget:1:c=other:a=funded:m=1:w=fits",
        "sbudget:1:c=funded:a=funded:m=x:w=fits",
        "sbudget:1:c=funded:a=funded:m=1",
    ],
)
def test_no_marker_of_ours(text):
    assert parse(text) is None


def test_a_key_that_we_do_not_know_yet_is_no_trouble():
    assert parse("sbudget:1:c=funded:a=funded:m=14400:w=fits:z=9") == MARK


def test_two_of_ours_become_one():
    two = "a;sbudget:1:c=funded:a=funded:m=1:w=fits;b;sbudget:2:q=1;c"
    assert merge(two, MARK) == f"a;{MARK};b;;c"


def test_what_cannot_be_a_marker_is_not_written():
    with pytest.raises(ValueError, match="marker"):
        str(Marker("funded", "funded", -1, "fits"))
    with pytest.raises(ValueError, match="marker"):
        str(Marker("funded", "funded", 1, "two words"))
