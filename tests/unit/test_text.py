"""Slurm's small languages: the answers of public bug reports, and laws."""

import contextlib
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_budget.errors import BadInput
from slurm_budget.text import durations, jobids, tres
from slurm_budget.text.spoken import spoken

CASES = Path(__file__).parent.parent / "data" / "cases"


def rows(name: str) -> list[list[str]]:
    lines = (CASES / name).read_text().splitlines()
    return [line.split("\t") for line in lines if line and not line.startswith("#")]


@pytest.mark.parametrize("row", rows("tres_strings.tsv"), ids=lambda row: row[0][:40])
def test_gpus_of_a_tres_text(row: list[str]) -> None:
    text = "" if row[0] == "(empty)" else row[0]
    if row[1].startswith("ERROR"):
        with pytest.raises(BadInput, match="cut off"):
            tres.gpus(text)
        return
    by_type = {
        kind.replace("(untyped)", ""): int(count)
        for kind, count in (item.rsplit(":", 1) for item in row[2].split(",") if item != "-")
    }
    assert tres.gpus(text) == by_type
    assert tres.total(tres.gpus(text)) == int(row[1])


@pytest.mark.parametrize("row", rows("durations.tsv"), ids=lambda row: f"{row[0]} {row[1]}")
def test_times(row: list[str]) -> None:
    text, field, expected = row[0], row[1], row[2]
    read = durations.limit if "imit" in field else durations.elapsed
    if expected == "unknown":
        assert read(text) is None
    elif expected == "inf":
        assert read(text) == math.inf
    else:
        assert float(read(text) or 0) == float(expected.removesuffix("+warning"))


@pytest.mark.parametrize("row", rows("jobids.tsv"), ids=lambda row: row[0])
def test_job_ids(row: list[str]) -> None:
    tasks = int(row[5 if len(row) > 6 else 4].split()[0])
    if len(row) > 6:
        found = jobids.parse(row[0])
        assert (found.base, found.tasks) == (int(row[1]), tasks)
        assert found.het == (None if row[3] == "-" else int(row[3]))
        assert found.step == (None if row[4] == "-" else row[4])
    else:
        assert jobids.array_tasks(row[0])[0] == tasks


KINDS = st.from_regex(r"[a-z][a-z0-9_.]{0,8}", fullmatch=True).filter(lambda k: k != "gpu")


@given(st.dictionaries(KINDS, st.integers(1, 64), max_size=3))
def test_typed_and_untyped_side_by_side_count_once(types: dict[str, int]) -> None:
    typed = [f"gres/gpu:{kind}={count}" for kind, count in types.items()]
    text = ",".join(["cpu=4", *typed, f"gres/gpu={sum(types.values())}", "node=1"])
    assert tres.gpus(text) == types


@given(st.dictionaries(st.sampled_from(["cpu", "mem", "gres/gpu", "node"]), st.integers(0, 9999)))
def test_canonical_is_stable(limits: dict[str, int]) -> None:
    text = ",".join(f"{name}={count}" for name, count in limits.items())
    once = tres.canonical(text)
    assert tres.canonical(once) == once
    assert tres.limits(once) == {name: str(count) for name, count in limits.items()}


def test_equal_limits_have_one_spelling() -> None:
    assert tres.canonical("mem=2000M,cpu=4") == tres.canonical("cpu=4,mem=2000")
    assert tres.canonical("mem=2G") == "mem=2048"


@given(st.integers(0, 400 * 86400))
def test_elapsed_reads_what_slurm_writes(seconds: int) -> None:
    days, rest = divmod(seconds, 86400)
    clock = f"{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}"
    assert durations.elapsed(f"{days}-{clock}" if days else clock) == seconds
    assert durations.limit(f"{days}-{clock}") == seconds


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("20min", 1200), ("8h", 28800), ("1h30m", 5400), ("7d", 604800), ("45", 45)],
)
def test_durations_as_people_write_them(text: str, seconds: int) -> None:
    assert durations.human(text) == seconds


@pytest.mark.parametrize("text", ["", "h", "8 hours or so", "-3h", "0.5s", "3x"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match=r"duration|whole number"):
        durations.human(text)


@given(st.integers(0, 50), st.integers(0, 50), st.integers(1, 7), st.integers(1, 20))
def test_array_expressions_count_like_ranges(first: int, more: int, step: int, most: int) -> None:
    tasks = len(range(first, first + more + 1, step))
    assert jobids.array_tasks(f"{first}-{first + more}:{step}%{most}") == (tasks, min(most, tasks))


@given(st.text(max_size=20))
def test_odd_texts_are_read_or_refused_never_more(text: str) -> None:
    for read in (tres.gpus, durations.limit, durations.elapsed, durations.human, jobids.parse):
        with contextlib.suppress(BadInput):
            assert read(text) is None or read(text) == read(text)


def test_spoken_durations() -> None:
    assert spoken(9000) == "2 h 30 min"
    assert spoken(45) == "45 s"
    assert spoken(math.inf) == "unlimited"
    assert spoken(-60) == "-1 min"
