"""sacctmgr: what its answers mean, and which calls carry out a plan."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from slurm_budget.core import plan as plans
from slurm_budget.core.drift import find, since
from slurm_budget.core.plan import Change, Field, Plan
from slurm_budget.errors import BadInput, SlurmUnreachable
from slurm_budget.slurm import sacctmgr, sacctmgr_apply, sacctmgr_steps, transactions, versions
from slurm_budget.slurm.command import Commands, Reply, checked
from slurm_budget.state.slurm import Association, RowKey, SlurmState, WriteReport

OLD, NEW = (22, 5), (24, 11)
DATA = Path(__file__).parents[1] / "data" / "sacctmgr_outputs.md"


def cases() -> dict[str, tuple[str, str, int]]:
    """(stdout, stderr, exit code) by case; a `|` inside back-ticks is part of the text."""
    out = {}
    for line in DATA.read_text().splitlines()[3:]:
        parts = line.replace("`", "\0").split("\0")
        for at in range(1, len(parts), 2):
            parts[at] = parts[at].replace("|", "\1")
        name, stdout, stderr, code, *_ = [
            cell.strip().replace("\1", "|") for cell in "".join(parts).split("|")[1:]
        ]
        empty = ("(empty)", "")
        out[name] = (
            "" if stdout in empty else stdout,
            "" if stderr in empty else stderr,
            int(code or 0),
        )
    return out


CASES = cases()


def reply(name: str) -> Reply:
    out, err, code = CASES[name]
    return Reply(("sacctmgr", "modify"), code, out, err, 0.0)


@dataclass(slots=True)
class Fake(Commands):
    """Answers from a function and keeps what it was asked, with the file of a load."""

    answer: Callable[[Sequence[str]], tuple[int, str, str]] = lambda argv: (0, "", "")
    asked: list[tuple[str, ...]] = field(default_factory=list)
    files: list[str] = field(default_factory=list)

    def run(self, *argv: str, stdin: str | None = None, timeout: float | None = None) -> Reply:
        self.asked.append(argv)
        if "load" in argv:
            self.files.append(Path(argv[-1].removeprefix("file=")).read_text())
        code, out, err = self.answer(argv)
        return Reply(argv, code, out, err, 0.0)


# what the answers in the data file mean


def test_nothing_modified_is_no_failure_whatever_the_exit_code() -> None:
    assert sacctmgr_apply.refusal(reply("M04a")) == ""
    assert sacctmgr_apply.refusal(Reply(("sacctmgr",), 1, " Nothing modified\n", "", 0)) == ""


def test_active_jobs_are_reported() -> None:
    assert "Job(s) active" in sacctmgr_apply.refusal(reply("M17"))


def test_an_empty_answer_with_exit_1_is_refused() -> None:
    assert sacctmgr_apply.refusal(reply("M28")) != ""
    with pytest.raises(SlurmUnreachable):
        checked(reply("M28"), silent_ok=False)


def test_parent_is_no_number() -> None:
    cluster, account, user, _, share, limit = CASES["M09"][0].split("|")
    line = f"{account}|{user}|||{share}|normal||{limit}|\n"
    (row,) = sacctmgr.associations(cluster, line).values()
    assert row.fairshare == "parent"
    assert row.grp_tres == "gres/gpu=60000"
    assert sacctmgr.fairshare("2147483647") == "parent"


def test_names_are_stripped_of_the_trees_indent() -> None:
    lines = CASES["M30"][0].removesuffix(" (indented tree)").split(" / ")
    text = "".join(f"{line}|||root|1|normal|||\n" for line in lines)
    assert {key[0] for key in sacctmgr.associations("c1", text)} == {"lab_a", "lab_a1"}


def test_an_unknown_tres_is_a_failure() -> None:
    assert sacctmgr_apply.refusal(reply("M23")) != ""


# reading


OWN = """\
root||||1|normal|||
lab|||root|160000|funded-lab,high,normal,preemptible|preemptible|gres/gpu=8,mem=2000M|gres/gpu=16
lab|ana|||1||||
lab|ana|gpu||3|high|||
lab|ben|||1|low|||
"""
IN_FORCE = """\
root|||normal|
lab|||funded-lab,high,normal,preemptible|preemptible
lab|ana||funded-lab,high,normal,preemptible|preemptible
lab|ana|gpu|high|preemptible
lab|ben||funded-lab,high,low,normal,preemptible|preemptible
"""


def test_associations_in_force_and_their_own() -> None:
    rows = sacctmgr.associations("c", OWN)
    lab = rows["lab", "", ""]
    assert (lab.parent, lab.fairshare, lab.own_default_qos) == ("root", 160000, "preemptible")
    assert lab.grp_tres == "gres/gpu=8,mem=2000"
    assert rows["lab", "ana", ""].own_qos == frozenset()
    assert rows["lab", "ana", ""].qos == lab.qos, "inherited"
    assert rows["lab", "ana", ""].default_qos == "preemptible"
    assert rows["lab", "ana", "gpu"].qos == {"high"}
    real = sacctmgr.in_force(rows, IN_FORCE)
    assert {k: v for k, v in real.items() if k[1] != "ben"} == {
        k: v for k, v in rows.items() if k[1] != "ben"
    }
    ben = real["lab", "ben", ""]
    assert ben.own_qos == {"low"}
    assert ben.qos == lab.qos | {"low"}, "somebody said qos+=low"
    assert plans.association_fields(ben)["qos"].endswith("(inherited)")


@pytest.mark.parametrize("cut", ["lab|||root|16", "lab", "a|b|c|d|e|f|g|h|i|j"])
def test_a_row_that_is_cut_off_is_no_small_cluster(cut: str) -> None:
    with pytest.raises(SlurmUnreachable, match="values instead of 9"):
        sacctmgr.associations("c", OWN + cut)


QOS = """\
normal|0|00:00:00|||cluster||1.000000||
preemptible|0|00:01:00||00:20:00|requeue||0.100000||
funded-lab|1000|00:00:00|preemptible||cluster|NoDecay|1.000000|cpu=5,gres/gpu:h100=5|gres/gpu=90
slow|5|1-00:00:00|a,b||cluster||||
"""


def test_qos_reads_back_as_it_is_written() -> None:
    rows = sacctmgr.qos(QOS)
    assert plans.qos_fields(rows["preemptible"]) == {
        "priority": "0",
        "preempt": "",
        "preemptmode": "requeue",
        "preemptexempttime": "00:20:00",
        "gracetime": "00:01:00",
        "usagefactor": "0.1",
        "grptres": "",
        "grptresmins": "",
    }
    assert rows["funded-lab"].flags == {"NoDecay"}
    assert plans.qos_fields(rows["funded-lab"])["grptres"] == "gres/gpu:h100=5"
    assert plans.qos_fields(rows["slow"])["gracetime"] == "1-00:00:00"


def test_a_cluster_that_slurmdbd_does_not_know_is_never_loaded() -> None:
    with pytest.raises(BadInput, match="knows no cluster 'mian', only main, other"):
        sacctmgr.check_cluster("mian", ["main", "other"])


def test_qos_of_other_clusters() -> None:
    fake = Fake(answer=lambda argv: (0, "d|normal,funded-lab\ne|funded-lab\ne|x\n", ""))
    assert sacctmgr.used_elsewhere(fake, ["d", "e"], ["funded-lab"]) == {"funded-lab": ("d", "e")}
    assert sacctmgr.used_elsewhere(fake, [], ["funded-lab"]) == {}


def test_account_info_with_free_text() -> None:
    info = sacctmgr.account_info("lab|The | lab|mara,nils\nroot|default root account|\n")
    assert info["lab"].description == "The | lab"
    assert info["lab"].coordinators == ("mara", "nils")


# writing


def modify(account: str, user: str = "", partition: str = "", **new: str) -> Change:
    fields = tuple(Field(name, "old", value) for name, value in new.items())
    kind = "user" if user else "account"
    return Change("modify", kind, user or account, account, partition, account, fields)  # type: ignore[arg-type]


def create(account: str, user: str = "", **new: str) -> Change:
    fields = tuple(Field(name, None, value) for name, value in new.items())
    kind = "user" if user else "account"
    return Change("create", kind, user or account, account, "", account, fields)  # type: ignore[arg-type]


def qos_change(action: str, name: str, **new: str) -> Change:
    fields = tuple(Field(k, None if action == "create" else "", v) for k, v in new.items())
    return Change(action, "qos", name, "", "", "", fields)  # type: ignore[arg-type]


def state(*rows: Association) -> SlurmState:
    return SlurmState("c", {row.key: row for row in rows})


def accounts(count: int) -> SlurmState:
    return state(*(Association("c", f"a{n}", parent="root") for n in range(count)))


def write(
    changes: Sequence[Change], slurm: SlurmState, fake: Fake, version: versions.Version = NEW
) -> WriteReport:
    return sacctmgr_apply.write(fake, changes, slurm, version, lambda rows: None, lambda: False)


def test_same_values_go_in_one_call() -> None:
    fake = Fake()
    write([modify(f"a{n}", fairshare="5") for n in range(40)], accounts(40), fake)
    (argv,) = fake.asked
    names = ",".join(f"a{n}" for n in range(40))
    assert argv == (
        *("sacctmgr", "-i", "-Q", "modify", "account", "where", f"name={names}", "cluster=c"),
        *("set", "fairshare=5"),
    )


def test_many_different_values_go_in_one_load() -> None:
    fake = Fake()
    changes = [modify(f"a{n}", fairshare=str(n)) for n in range(40)]
    write(changes, accounts(40), fake)
    assert len(fake.asked) == 1
    (text,) = fake.files
    assert text.splitlines()[:4] == [
        "Cluster - 'c'",
        "Parent - 'root'",
        "Account - 'a0':Fairshare=0",
        "Account - 'a1':Fairshare=1",
    ]
    assert not Path(fake.asked[0][-1].removeprefix("file=")).exists(), "the file is left over"


def test_old_versions_load_in_parallel() -> None:
    fake = Fake()
    write([modify(f"a{n}", fairshare=str(n)) for n in range(120)], accounts(120), fake, OLD)
    assert len(fake.files) == 6
    assert sum(text.count("Account - ") for text in fake.files) == 120


def test_new_rows_go_in_one_load_with_accounts_first() -> None:
    fake = Fake()
    write(
        [
            create(
                "lab", parent="root", fairshare="5", qos="normal,preemptible", description="a:'b"
            ),
            create("team", parent="lab", fairshare="6"),
            create("team", "ana", fairshare="1"),
        ],
        state(),
        fake,
    )
    assert fake.files == [
        "Cluster - 'c'\n"
        "Parent - 'root'\n"
        "Account - 'lab':Fairshare=5:QOS='normal,preemptible':Description='a  b'\n"
        "Parent - 'lab'\n"
        "Account - 'team':Fairshare=6\n"
        "Parent - 'team'\n"
        "User - 'ana':Fairshare=1\n"
    ]


def test_a_list_that_is_not_empty_is_never_loaded() -> None:
    """`load` replaces it by what it lacked."""
    rows = [
        Association("c", f"a{n}", parent="root", own_qos=frozenset({"high"} if n < 3 else ()))
        for n in range(40)
    ]
    fake = Fake()
    write([modify(f"a{n}", qos=f"normal,funded-a{n}") for n in range(40)], state(*rows), fake)
    assert sum("modify" in argv for argv in fake.asked) == 3
    assert fake.files[0].count("Account - ") == 37


def test_a_user_with_partitions_is_never_loaded() -> None:
    """`load` sets the fairshare of all rows of a user in an account."""
    rows = [Association("c", "a", "ana", p) for p in ("", "gpu")]
    rows += [Association("c", "a", f"u{n}") for n in range(40)]
    changes = [modify("a", "ana", fairshare="100"), modify("a", "ana", "gpu", fairshare="100")]
    changes += [modify("a", f"u{n}", fairshare=str(n)) for n in range(40)]
    fake = Fake()
    write(changes, state(*rows), fake)
    calls = [argv for argv in fake.asked if "modify" in argv]
    assert [argv[6:] for argv in calls] == [
        ("name=ana", "cluster=c", "account=a", "partition=", "set", "fairshare=100"),
        ("name=ana", "cluster=c", "account=a", "partition=gpu", "set", "fairshare=100"),
    ]
    assert "ana" not in fake.files[0]


def test_default_qos_comes_last_and_lists_before_it() -> None:
    fake = Fake()
    write(
        [
            modify("a0", defaultqos="preemptible", qos="preemptible"),
            modify("a1", qos="preemptible"),
        ],
        accounts(2),
        fake,
    )
    assert [argv[-1] for argv in fake.asked] == ["qos=preemptible", "defaultqos=preemptible"]


def test_qos_limits_that_go_are_cleared_and_grace_is_in_seconds() -> None:
    fake = Fake()
    change = Change(
        "modify", "qos", "funded-a", "", "", "",
        (Field("grptres", "gres/gpu=8", "gres/gpu:h100=16"), Field("gracetime", "", "00:01:30")),
    )  # fmt: skip
    write([change], state(), fake)
    assert fake.asked[0][-2:] == ("grptres=gres/gpu=-1,gres/gpu:h100=16", "gracetime=90")


def test_preemptible_is_created_before_those_that_name_it() -> None:
    fake = Fake()
    write(
        [
            qos_change("create", "preemptible", priority="0"),
            qos_change("create", "funded-a", preempt="preemptible", grptres="gres/gpu=8"),
            qos_change("create", "funded-b", preempt="preemptible", grptres="gres/gpu=8"),
        ],
        state(),
        fake,
    )
    assert [argv[5] for argv in fake.asked] == ["preemptible", "funded-a,funded-b"]


def test_one_bad_row_of_many_is_found_and_the_rest_goes_on() -> None:
    def answer(argv: Sequence[str]) -> tuple[int, str, str]:
        bad = any("a13" in part.split("=")[-1].split(",") for part in argv)
        return (1, "", " Problem modifying a13") if bad else (0, " Modified", "")

    fake = Fake(answer=answer)
    report = write([modify(f"a{n}", fairshare="5") for n in range(64)], accounts(64), fake)
    assert report.failed == {("account", "a13", "a13", ""): "Problem modifying a13"}
    assert len(fake.asked) == 13, "halves, not one by one"


def test_no_permission_is_asked_once() -> None:
    said = "sacctmgr: error: Your user doesn't have privilege to perform this action"
    fake = Fake(answer=lambda argv: (1, "", said))
    report = write([modify(f"a{n}", fairshare="5") for n in range(64)], accounts(64), fake)
    assert len(fake.asked) == 1
    assert len(report.failed) == 64


def test_slurmdbd_gone_stops_and_says_what_is_left() -> None:
    def answer(argv: Sequence[str]) -> tuple[int, str, str]:
        if argv[6] == "name=a1":
            return 1, "", "sacctmgr: error: slurm_persist_conn_open: Connection refused"
        return 0, "", ""

    fake = Fake(answer=answer)
    report = write([modify(f"a{n}", fairshare=str(n)) for n in range(4)], accounts(4), fake)
    assert report.stopped.startswith("slurmdbd stopped answering")
    assert {key[2] for key in report.not_tried} == {"a1", "a2", "a3"}
    assert report.failed == {}


def test_stop_is_asked_between_calls() -> None:
    fake = Fake()
    report = sacctmgr_apply.write(
        fake,
        [modify(f"a{n}", fairshare=str(n)) for n in range(4)],
        accounts(4),
        NEW,
        lambda rows: None,
        lambda: len(fake.asked) >= 2,
    )
    assert len(fake.asked) == 2
    assert report.stopped == "interrupted"
    assert len(report.not_tried) == 2


def test_a_default_qos_that_is_refused_exits_0_and_is_a_failure() -> None:
    err = " These associations don't have access to their default qos.\n DefQOS = high  C = h4\n"
    assert "don't have access" in sacctmgr_apply.refusal(Reply(("sacctmgr",), 0, "", err, 0))


def test_the_chatter_of_load_is_no_failure() -> None:
    err = "sacctmgr: Done adding cluster in usec=407\n"
    assert sacctmgr_apply.refusal(Reply(("sacctmgr",), 0, "", err, 0)) == ""


def test_calls_are_cut_where_an_argument_would_grow_too_long() -> None:
    count = 2 * sacctmgr_steps.MOST_NAMES + 1
    fake = Fake()
    write([modify(f"a{n}", fairshare="5") for n in range(count)], accounts(count), fake)
    assert len(fake.asked) == 3


# the transaction log


LOG = """\
2026-11-29T19:07:51|Add QOS|root|funded-a|mod_time=1795979270, grp_tres='1001=40'
2026-11-29T19:07:52|Add Associations|root|id_assoc=5|acct='a', user='ana', shares=120000
2026-11-29T19:07:52|Add Users|root|ana|admin_level=1
2026-11-29T19:14:07|Modify Associations|ana|(id_assoc=4 || id_assoc=5)|shares=5
2026-11-29T19:14:08|Modify Associations|root|(id_assoc=4)|qos=',2,3,', delta_qos='', def_qos_id=2
2026-11-29T19:14:09|Modify QOS|root|(name='funded-a')|grp_tres = if (id=4, '1|96', grp_tres)
torn line
"""
IDS: dict[str, RowKey] = {
    "4": ("account", "a", "a", ""),
    "5": ("user", "a", "ana", ""),
}


def test_the_log_names_rows_and_fields() -> None:
    made, user, first, second, third = transactions.parse(LOG, IDS)
    assert made.rows == {("qos", "", "funded-a", "")}
    assert "gracetime" in made.fields, "a new row has every field"
    assert user.rows == {("user", "a", "ana", "")}
    assert first.actor == "ana"
    assert first.rows == {("account", "a", "a", ""), ("user", "a", "ana", "")}
    assert first.fields == {"fairshare"}
    assert second.fields == {"qos", "defaultqos"}
    assert third.rows == {("qos", "", "funded-a", "")}
    assert third.fields == {"grptres"}
    assert len(since([first, second, third], most=2)) == 3


def test_drift_is_told_apart_from_a_change_of_budgets() -> None:
    log = transactions.parse(LOG, IDS)
    change = Change(
        "modify", "account", "a", "a", "", "a", (Field("fairshare", "5", "160000"),)
    )  # fmt: skip
    plan = Plan("c", 0, (change,))
    key: RowKey = ("account", "a", "a", "")
    (found,) = find(plan, log, lambda at: {(key, "fairshare"): "80000"})
    assert "fairshare 5 was set by ana on 2026-11-29 19:14:07 UTC" in str(found)
    assert find(plan, log, lambda at: {(key, "fairshare"): "5"}) == []


@pytest.mark.parametrize(
    ("text", "version"),
    [("slurm 22.05.8", (22, 5)), ("slurm 26.05.5-rc1", (26, 5)), ("", (0, 0))],
)
def test_versions(text: str, version: versions.Version) -> None:
    assert versions.parse(text) == version
