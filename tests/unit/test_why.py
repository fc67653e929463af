"""What `sbudget why` says: the sentences, from data alone."""

import pytest
from answers_world import (
    NOW,
    clock,
    facts,
    free,
    job,
    known,
    node,
    past,
    preemptible,
    run,
)  # fmt: skip
from hypothesis import given
from hypothesis import strategies as st

from slurm_budget.core import reasons, told
from slurm_budget.core.marker import Marker
from slurm_budget.core.why import answer
from slurm_budget.errors import BadInput
from slurm_budget.slurm import history, sacct
from slurm_budget.state.answers import Known, Outlook
from slurm_budget.state.intent import Intent, Step
from slurm_budget.text import jobids


def said(asked: int | str, world: Known) -> str:
    return "\n".join(answer(str(asked), world, clock).sentences)


def intent(victim: int, step: Step, **given: object) -> Intent:
    words = f"language is owed 8 GPUs for job {given.get('for_job', 9)}"
    fields = {"for_job": 9, "grace_until": NOW + 30, "run_start": NOW - 7200, **given}
    return Intent(
        id=1, cluster="main", job_id=victim, victim_account="vision", for_account="language",
        gpus=8, step=step, reason=words, created=NOW - 60, updated=NOW - 30, **fields,  # type: ignore[arg-type]
    )  # fmt: skip


# -- runs ----------------------------------------------------------------------------------------


def test_a_protected_run_says_until_when() -> None:
    words = said(1, known(run(1, 600)))
    assert "Job 1 of ana in vision has run since T-600 (10 min) on n1 with 8 GPUs." in words
    assert "It is funded: its protection fits every budget above it." in words
    assert "It is protected until T+3000, 50 min more" in words
    assert answer("1", known(run(1, 600)), clock).protected_until == NOW + 3000


def test_the_longest_protection_is_called_that() -> None:
    day = str(Marker("funded", "funded", 86400, "fits"))
    assert "more (8 h in all, the longest there is); after" in said(
        1, known(run(1, 600, admin_comment=day))
    )
    assert "it is protected for 8 h, the longest there is." in said(
        1, known(job(1, admin_comment=day))
    )
    spent = job(
        1,
        qos="preemptible",
        admin_comment=str(Marker("preemptible", "funded", 28800, "budget")),
    )
    assert "Its protection would be 8 h, the longest there is." in said(1, known(spent))
    assert "longest" not in said(1, known(job(1)))


def test_a_run_past_its_protection_says_what_the_next_sweep_would_do() -> None:
    old = run(1, 7200)
    assert "Its protection ended at T-3600, 1 h ago" in said(1, known(old))
    assert "sweep would" not in said(1, known(old)), "not known without the ledger"
    assert "would leave it alone" in said(1, known(old, outlook=Outlook()))
    going = Outlook(going={1: "language is owed 8 GPUs for job 9"})
    assert "requeue it: language is owed 8 GPUs for job 9." in said(1, known(old, outlook=going))
    left = Outlook(left={1: "requeued 30 s ago: it cools down"})
    assert "leaves it for now: requeued 30 s ago" in said(1, known(old, outlook=left))
    paused = Outlook(going={1: "x"}, paused="repairs (root)")
    assert "paused (repairs (root))" in said(1, known(old, outlook=paused))


def test_a_warned_run_says_when_and_for_whom() -> None:
    world = known(run(1, 7200), intents=[intent(1, "signalled")])
    assert "It was warned, and is requeued from T+30 on: language is owed 8 GPUs" in said(1, world)
    other_run = known(run(1, 7200), intents=[intent(1, "signalled", run_start=NOW - 9000)])
    assert "warned" not in said(1, other_run)


@pytest.mark.parametrize(
    ("given_", "words"),
    [({"batch": False}, "It is interactive"), ({"requeue": False}, "(--no-requeue)")],
)
def test_what_cannot_be_requeued_is_left_to_its_end(given_: dict[str, bool], words: str) -> None:
    assert "left to its end all the same" in said(1, known(run(1, 60, **given_)))
    assert words in said(1, known(run(1, 7200, **given_)))


def test_a_preemptible_run_says_from_when_slurm_may_take_its_gpus() -> None:
    young, old = said(1, known(free(1, 200))), said(1, known(free(1, 2000)))
    assert "Slurm leaves it alone until T+1000" in young
    assert "may take its GPUs at any moment, and Slurm requeues it" in old
    assert "cancels (it cannot be requeued)" in said(1, known(free(1, 2000, requeue=False)))
    assert "is not ours" in said(1, known(free(1, 2000, qos="normal")))
    drains = Outlook(going={1: "node n1 is draining"})
    assert "requeue it: node n1 is draining" in said(1, known(free(1, 2000), outlook=drains))


def test_jobs_without_gpus_and_odd_states_are_told_plainly() -> None:
    assert "budgets and the sweeper leave it alone" in said(1, known(run(1, 9, gpus={})))
    assert "still holds its GPUs" in said(1, known(run(1, 9, state="COMPLETING")))


# -- waits ---------------------------------------------------------------------------------------


def test_who_holds_the_gpus_and_until_when() -> None:
    world = known(
        job(9), run(1, 600, "n1"), run(2, 7200, "n2", account="robots", qos="funded-robots"),
        free(3, 2000, "n3", gpus={"h100": 4}, gpus_on={"n3": 4}),
        nodes=[node(1), node(2), node(3), node(4, flags=frozenset({"DRAIN"}))],
    )  # fmt: skip
    words = said(9, world)
    assert (
        "Of 32 GPUs in partition gpu: 4 free; 8 protected (vision 8, the first until T+3000);"
        in words
    )
    assert "8 in runs past their protection (robots 8); 4 preemptible, which Slurm frees" in words
    assert "8 on nodes that are drained or down." in words


def test_what_the_next_sweep_would_do_for_a_waiting_job() -> None:
    old = run(1, 7200)
    assert "would requeue jobs 1, 2 for it" in said(
        9, known(job(9), old, outlook=Outlook(victims={9: (2, 1)}))
    )
    assert "nobody is requeued for it" in said(9, known(job(9), outlook=Outlook(victims={9: ()})))
    assert "requeue nobody for it: needs 1 node" in said(
        9, known(job(9), outlook=Outlook(left={9: "needs 1 node x 8"}))
    )
    warned = known(job(9), old, intents=[intent(1, "signalled")], outlook=Outlook())
    assert "Job 1 makes way for it, and is requeued from T+30 on." in said(9, warned)
    assert "sweep" not in said(9, known(job(9), old)), "not known without the ledger"


def test_a_job_without_budget_is_told_whose_and_when_more_is_back() -> None:
    spent = known(preemptible(9, "budget"), facts=facts(vision=3, back=NOW + 7200))
    words = said(9, spent)
    assert "It is preemptible though it asked to be funded: a budget has too little left" in words
    assert (
        "Vision's budget has 3 of 200 GPU-hours left, this job needs 8; more is back in 2 h."
        in words
    )
    assert "nobody makes way for them" in words
    above = known(preemptible(9, "budget"), facts=facts(top=1))
    assert "Top's budget has 1 of 1,000 GPU-hours left" in said(9, above)
    own = known(preemptible(9, "budget", user="ben"))
    assert "Ben's budget in vision has 3 of 20" in said(9, own)
    monster = known(preemptible(9, "never", gpus={"h100": 512}))
    assert "it will never be funded so" in said(9, monster)
    fits = known(preemptible(9, "budget"))
    assert "That fits now: the next sweep funds it" in said(9, fits)
    held = known(preemptible(9, "wait", reason="JobHeldUser", priority=0), facts=facts(vision=3))
    assert "held until the budget allows it to be funded" in said(9, held)
    frozen = known(preemptible(9, "wait", reason="JobHeldAdmin", priority=0))
    assert "an administrator holds it" in said(9, frozen)


def test_when_slurm_expects_it_to_start() -> None:
    assert "to start by T+600" in said(9, known(job(9, expected=NOW + 600)))
    assert "expects" not in said(9, known(job(9, expected=NOW - 600))), "that plan is stale"
    later = known(job(9, expected=NOW + 600, reason="BeginTime"))
    assert "It may start from T+600 on." in said(9, later)


def test_a_class_that_the_user_changed_is_told_so() -> None:
    assert "its QOS was changed to funded-vision after" in said(
        9, known(preemptible(9, "asked", qos="funded-vision"))
    )
    assert "has written nothing on it" in said(9, known(job(9, admin_comment="")))


@pytest.mark.parametrize("reason", [*reasons.REASONS, "QOSGrpGRES", "AssocMaxJobsLimit"])
def test_every_reason_is_said_in_words_without_breaking_the_sentence(reason: str) -> None:
    words = said(9, known(job(9, reason=reason, dependency="afterok:7(unfulfilled)")))
    assert f"Slurm's reason is {reason}: " in words
    assert ".." not in words


def test_reasons_with_detail_and_unknown_ones() -> None:
    assert "are down, drained" in reasons.plain("ReqNodeNotAvail, UnavailableNodes:n[1-4]")
    assert reasons.plain("AssocGrpGRESRunMinutes") == (
        "a limit of its account or user is reached: GPUs (GRES) minutes"
    )
    assert "Slurm's reason is Whatever." in said(9, known(job(9, reason="Whatever")))


# -- was, ended, unknown -------------------------------------------------------------------------


def test_earlier_runs_say_why_they_were_stopped() -> None:
    rows = [past(1, "REQUEUED"), past(1, "RUNNING", start=NOW - 50, end=None)]
    now_runs = run(1, 50)
    for_whom = [intent(1, "done", run_start=NOW - 800)]
    assert "requeued by the sweeper at T-100, after 11 min 40 s on n1: language is owed" in said(
        1, known(now_runs, past=rows, intents=for_whom)
    )
    assert "not by the sweeper" in said(1, known(now_runs, past=rows, intents=[]))
    assert "stands in the ledger" in said(1, known(now_runs, past=rows))
    for cover in ((NOW - 50, NOW), (0, NOW - 150)):
        lately = known(now_runs, past=rows, intents=[], intents_cover=cover)
        assert "stands in the ledger" in said(1, lately), "not known of that time"
    assert "preempted by Slurm at T-100" in said(1, known(now_runs, past=[past(1, "PREEMPTED")]))


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (past(1, "COMPLETED"), "of ana in vision completed at T-100, after 11 min 40 s on n1."),
        (past(1, "FAILED", exit_code="3:0"), "failed at T-100 with exit code 3:0"),
        (past(1, "TIMEOUT"), "reached its time limit"),
        (past(1, "CANCELLED", by="root"), "was cancelled by root at T-100, after"),
        (past(1, "CANCELLED", start=None), "cancelled at T-100, before it started."),
        (past(1, "RUNNING", end=None), "is RUNNING by the accounting, but the queue does not"),
        (past(1, "PREEMPTED"), "was stopped at T-100"),
    ],
)  # fmt: skip
def test_what_has_ended(row: object, words: str) -> None:
    assert words in said(1, known(past=[row]))


def test_unknown_is_not_said_of_what_was_not_read() -> None:
    assert answer("7", known(job(1)), clock).state == "UNKNOWN"
    assert "and the accounting of the last 30 days does not have it" in said(7, known())
    blind = known(jobs=None, past=[past(1, "RUNNING", end=None)])
    assert "is RUNNING by the accounting; the queue could not be read" in said(1, blind)
    assert "The queue could not be read" in said(7, blind)
    assert "accounting" not in said(7, known(past=None))
    with pytest.raises(BadInput):
        answer("seven", known(), clock)


def test_what_a_sweep_tells_is_read_again() -> None:
    outlook = Outlook({9: (1, 2)}, {1: "x"}, {3: "y"}, "paused")
    every = [intent(1, "done"), intent(2, "signalled", for_job=None)]
    found = told.decode(told.encode(5, NOW, every, outlook))
    assert found == told.Told(5, NOW, tuple(every), outlook)
    many = [intent(n, "done") for n in range(told.MOST_INTENTS + 5)]
    cut = told.decode(told.encode(5, NOW, many, outlook))
    assert (len(cut.intents), cut.since) == (told.MOST_INTENTS, many[0].created + 1)


@pytest.mark.parametrize("text", ["", "{}", "[]", "null", '{"schema": "sbudget-told-2"}', "7"])
def test_what_no_sweep_told_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match="not what a sweep tells"):
        told.decode(text)


# -- ids -----------------------------------------------------------------------------------------


def test_tasks_of_arrays_are_found_wherever_they_are() -> None:
    world = known(
        run(58, 60, label="57_2", array=57),
        job(57, label="57_[3-9:2%4]", tasks=4, at_once=4),
        past=[past(56, "COMPLETED", label="57_1")],
    )
    assert "Job 57_2 of ana" in said("57_2", world)
    assert "has waited" in said("57_5", world)
    assert "is unknown" in said("57_4", world)
    assert "completed" in said("57_1", world)
    assert "Of array 57, 1 task runs and 4 wait; below is 57_[3-9:2%4]" in said(57, world)
    assert "Job 57_2" in said(58, world)
    ended = known(past=[past(56, "COMPLETED", label="57_1"), past(57, "FAILED", label="57_2")])
    assert "Of array 57, 1 COMPLETED, 1 FAILED; below is 57_2" in said(57, ended)


def test_parts_of_het_jobs_are_found_by_their_offset() -> None:
    world = known(job(12, gpus={"": 1}), job(13, gpus={"": 2}))
    assert "Job 12+1 of ana" in said("12+1", world)
    assert "for 2 GPUs" in said("12+1", world)


@given(st.integers(0, 60), st.integers(0, 60), st.integers(1, 5), st.integers(0, 70))
def test_a_task_is_in_an_expression_that_counts_it(a: int, b: int, step: int, task: int) -> None:
    low, high = min(a, b), max(a, b)
    has = jobids.holds(f"{low}-{high}:{step}%2", jobids.parse(f"9_{task}"))
    assert has == (task in range(low, high + 1, step))


def test_the_accounting_of_a_job_is_read_with_who_cancelled_it() -> None:
    def row(*cells: str) -> str:
        return sacct.SEPARATOR.join(cells) + "\n"

    head = ("7", "7", "ana", "Vision", "preemptible")
    text = (
        row(*head, "REQUEUED", "100", "110", "120", "gres/gpu=8", "n1", "0:0", "")
        + row(*head, "CANCELLED by 0", "130", "None", "140", "", "None assigned", "0:0", "x\n|y")
        + row(*head, "SOMETHING", "130", "None", "140", "", "", "0:0", "")
    )
    first, last = history.parse(text)
    assert (first.state, first.start, first.end, first.gpu_total) == ("REQUEUED", 110, 120, 8)
    assert (last.state, last.by, last.start, last.nodes) == ("CANCELLED", "root", None, "")
    assert last.account == "vision"
