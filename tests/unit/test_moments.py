"""Moments in sreport's words: what each means, and the laws."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from slurm_budget.core.changeset import Change
from slurm_budget.errors import BadInput
from slurm_budget.text.moments import moment, shown

STOCKHOLM = ZoneInfo("Europe/Stockholm")
NOW = int(datetime(2026, 11, 29, 13, 30, 15, tzinfo=STOCKHOLM).timestamp())
ZONES = st.sampled_from([UTC, STOCKHOLM, ZoneInfo("America/New_York"), ZoneInfo("Asia/Kolkata")])


@pytest.mark.parametrize(
    ("text", "means"),
    [
        ("now", "2026-11-29T13:30:15"),
        ("NOW-7days", "2026-11-22T13:30:15"),
        ("now-1d", "2026-11-28T13:30:15"),
        ("now+2hours", "2026-11-29T15:30:15"),
        ("now-90", "2026-11-29T13:28:45"),
        ("now-1week", "2026-11-22T13:30:15"),
        ("today", "2026-11-29T00:00:00"),
        ("midnight", "2026-11-29T00:00:00"),
        ("noon", "2026-11-29T12:00:00"),
        ("fika", "2026-11-29T15:00:00"),
        ("teatime", "2026-11-29T16:00:00"),
        ("elevenses", "2026-11-29T11:00:00"),
        ("tomorrow", "2026-11-30T00:00:00"),
        ("yesterday", "2026-11-28T00:00:00"),
        ("08:15", "2026-11-29T08:15:00"),
        ("8:15:30 pm", "2026-11-29T20:15:30"),
        ("12:05AM", "2026-11-29T00:05:00"),
        ("2026-11-01", "2026-11-01T00:00:00"),
        ("2026-11-01T12:34", "2026-11-01T12:34:00"),
        ("2026-11-01T12:34:56", "2026-11-01T12:34:56"),
        ("2026-11-01T12:00Z", "2026-11-01T13:00:00"),
        ("11/01", "2026-11-01T00:00:00"),
        ("1101", "2026-11-01T00:00:00"),
        ("11.01", "2026-11-01T00:00:00"),
        ("12/24", "2025-12-24T00:00:00"),
        ("02/29", "2024-02-29T00:00:00"),
        ("11/01/25", "2025-11-01T00:00:00"),
        ("110125", "2025-11-01T00:00:00"),
        ("11/01-06:30", "2026-11-01T06:30:00"),
        ("7d", "2026-11-22T13:30:15"),
        ("90min ago", "2026-11-29T12:00:15"),
        ("03/29/26-02:30", "2026-03-29T03:30:00"),
    ],
)
def test_what_the_words_mean(text: str, means: str) -> None:
    assert shown(moment(text, NOW, STOCKHOLM), STOCKHOLM) == means


@pytest.mark.parametrize(
    "text",
    ["", "soon", "now-", "now-7m0", "now-3x", "13/01", "02/30/26", "25:00", "13:00 pm", "11/01-9",
     "2026-13-01", "99999999", "now-99999999999999999999", "7", "11/01.25", "0d0"],
)  # fmt: skip
def test_what_is_no_moment_is_said_with_the_mend(text: str) -> None:
    with pytest.raises(BadInput, match="is not a moment") as caught:
        moment(text, NOW, STOCKHOLM)
    assert "2026-11-01" in caught.value.mend


@given(at=st.integers(0, 4 * 10**9), zone=ZONES)
def test_what_is_shown_is_read_again(at: int, zone: ZoneInfo) -> None:
    # of the hour that comes twice in autumn, the first is meant
    assume(datetime.fromtimestamp(at, zone).fold == 0)
    assert moment(shown(at, zone), NOW, zone) == at


@given(
    now=st.integers(10**9, 4 * 10**9),
    count=st.integers(0, 100_000),  # weeks: within the years that there are
    unit=st.sampled_from([("", 1), ("minutes", 60), ("hours", 3600), ("days", 86400)]),
    zone=ZONES,
)
def test_now_minus_is_a_plain_difference(
    now: int, count: int, unit: tuple[str, int], zone: ZoneInfo
) -> None:
    assert moment(f"now-{count}{unit[0]}", now, zone) == now - count * unit[1]
    assert moment(f"now+{count}{unit[0][:1]}", now, zone) == now + count * unit[1]


@given(
    now=st.integers(10**9, 4 * 10**9), month=st.integers(1, 12), day=st.integers(1, 31), zone=ZONES
)
def test_a_day_without_year_is_the_last_one_that_was(
    now: int, month: int, day: int, zone: ZoneInfo
) -> None:
    try:
        found = moment(f"{month:02}/{day:02}", now, zone)
    except BadInput:
        assert (month, day) in [(2, 30), (2, 31), (4, 31), (6, 31), (9, 31), (11, 31)]
        return
    there = datetime.fromtimestamp(found, zone)
    assert (there.month, there.day, found <= now) == (month, day, True)


@given(text=st.text(alphabet="now-+0123456789/.:T adhmptz", max_size=20), zone=ZONES)
def test_any_text_is_a_moment_or_is_refused(text: str, zone: ZoneInfo) -> None:
    try:
        found = moment(text, NOW, zone)
    except BadInput:
        return
    assert moment(shown(found, UTC), NOW, UTC) == found


def test_changes_of_budgets_show_dates_not_epochs() -> None:
    said = str(Change("vision", "", "valid_until", None, NOW))
    assert said == f"account vision: valid_until - -> {shown(NOW)}"
    assert str(NOW) not in said
