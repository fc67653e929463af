"""sync on a real slurmdbd.

Tested: first sync and the figures, idempotence, random budgets, stale plans, drift, the guard,
partial failures, Ctrl-C, daemons down, partitions, other clusters, the backstop, adoption.
Untested: a slurmdbd on another host.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import lawful
import pytest
from disturb import changed
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from playground import Playground
from sync_site import Site

from slurm_budget.core.guard import Overrides
from slurm_budget.state.budget import Amount, BudgetNode, BudgetTree, UserBudget
from slurm_budget.usecases import sync

ANA = "sbsync-ana"
LAB = f"""\
lab:
  gpus: 32
  accounts:
    team: {{gpus: 16, users: {{{ANA}: , ben: {{gpus: 4}}}}}}
    other: {{gpus: 8, users: [carl]}}
"""


@pytest.fixture(scope="module")
def own_cluster() -> Iterator[Playground]:
    """A cluster for this module, since others' budgets would be in the way."""
    typed = "AccountingStorageTRES=gres/gpu,gres/gpu:h100"
    play = Playground(f"sbsync{os.getpid()}", (ANA,), nodes=2, hook=False, slurm_conf=[typed])
    try:
        play.up()
        began = int(time.time())
        yield play
        for daemon in ("slurmdbd", "slurmctld"):
            play.cluster("start", daemon)
        lawful.check(play, began)
    finally:
        play.down()


@pytest.fixture
def site(own_cluster: Playground) -> Site:
    """Emptied, and with all daemons up."""
    for daemon in ("slurmdbd", "slurmctld"):
        own_cluster.cluster("start", daemon)
    own_cluster.wait("slurmctld", lambda: "UP" in own_cluster.slurm("scontrol", "ping", code=None))
    site = Site(own_cluster)
    site.reset()
    return site


def test_the_figures_of_the_budgets_and_then_nothing_more(site: Site) -> None:
    site.budgets(LAB)
    assert "changes applied and seen in Slurm" in site.sync().out
    assert site.one("fairshare", "team") == "160000"
    assert site.one("fairshare", "team", "ben") == "40000"
    assert site.one("fairshare", "team", ANA) == "120000"
    assert site.one("parentname", "team") == "lab"
    assert site.one("qos", "team", ANA) == "funded-team,normal,preemptible"
    assert site.one("defaultqos", "team", ANA) == "preemptible"
    assert site.qos("funded-team", "grptres,preempt,priority") == "gres/gpu=96|preemptible|1000"
    assert site.qos("preemptible", "preemptmode,gracetime,preemptexempttime,usagefactor") == (
        "requeue|00:01:00|00:20:00|0.100000"
    )
    before = site.play.slurm("sacctmgr", "-nP", "show", "transaction", "start=now-1hour")
    assert "nothing to do" in site.sync().out
    assert site.play.sbudget("plan", "--exit-code").code == 0
    assert before == site.play.slurm("sacctmgr", "-nP", "show", "transaction", "start=now-1hour")


def test_dry_run_changes_nothing_and_pending_changes_have_an_exit_code(site: Site) -> None:
    site.budgets(LAB)
    assert "+ QOS funded-team" in site.sync("--dry-run").out
    assert site.play.sbudget("plan", "--exit-code", code=8)
    assert [row[0] for row in site.show("account", "user")] == ["root", "root"]


AMOUNTS = st.one_of(
    st.none(),
    st.integers(0, 200).map(lambda n: Amount("gpus", n)),
    st.integers(0, 40_000).map(lambda n: Amount("gpu_hours", n)),
)


@st.composite
def drawn(draw: st.DrawFn, cluster: str) -> BudgetTree:
    nodes: dict[str, BudgetNode] = {}
    for number in range(draw(st.integers(1, 12))):
        parent = draw(st.sampled_from([None, *nodes]))
        users = draw(st.lists(st.sampled_from(["u1", "u2", "u3", "u4"]), unique=True, max_size=4))
        name = f"{draw(st.sampled_from(['a', 'b', 'c-']))}{number}"
        nodes[name] = BudgetNode(
            name,
            parent,
            draw(AMOUNTS),
            draw(st.sampled_from(["gres/gpu", "gres/gpu:h100"])),
            tuple(UserBudget(user, draw(AMOUNTS)) for user in users),
        )
    return BudgetTree(cluster, nodes)


def test_budgets_drawn_at_random_are_read_back_as_they_were_written(site: Site) -> None:
    allow = Overrides(allow_empty=True, max_change=1.0, below_running=True)

    @settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck), database=None)
    @given(drawn(site.name))
    def check(tree: BudgetTree) -> None:
        now = int(time.time())
        prepared = sync.prepare(site.port, tree, site.settings, now)
        outcome = sync.apply_plan(site.port, prepared, site.settings, now, overrides=allow)
        assert outcome.failed == ()
        assert not sync.make_plan(site.port, tree, site.settings, now).changes

    check()


def test_a_reviewed_plan_is_refused_after_a_change_by_hand(site: Site) -> None:
    site.budgets(LAB)
    site.sync()
    site.budgets(LAB.replace("gpus: 8", "gpus: 12"))
    file = site.play.site / "plan.json"
    site.plan("-o", str(file))
    site.sacctmgr("modify", "account", "name=team", f"cluster={site.name}", "set", "fairshare=5")
    done = site.play.sbudget("sync", "--plan", str(file), code=5)
    assert "account team, fairshare: planned no change, now 5 -> 160000" in done.err
    assert "root: Modify Associations, team: fairshare" in done.err
    assert site.one("fairshare", "other") == "80000", "nothing of the plan was done"
    site.plan("-o", str(file))
    done = site.play.sbudget("sync", "--plan", str(file), "--max-change", "100")
    assert "changes applied" in done.out
    assert site.one("fairshare", "team") == "160000"
    site.play.sbudget("sync", "--plan", str(file), code=5)


def test_drift_names_who_and_not_the_changes_of_budgets(site: Site) -> None:
    site.budgets(LAB)
    site.sync()
    site.sacctmgr("modify", "qos", "name=funded-team", "set", "grptres=gres/gpu=1000")
    time.sleep(1.1)  # the log has whole seconds
    site.budgets(LAB.replace("gpus: 8", "gpus: 12"))
    text = site.plan()
    (line,) = [line for line in text.splitlines() if "by hand" in line]
    assert "QOS funded-team: grptres gres/gpu=1000 was set by root" in line
    assert "(they say gres/gpu=96)" in line


def test_budgets_emptied_by_mistake_are_refused_with_the_numbers(site: Site) -> None:
    site.budgets(LAB)
    site.sync()
    tree = BudgetTree(site.name)
    prepared = sync.prepare(site.port, tree, site.settings, int(time.time()))
    with pytest.raises(Exception, match=r"name 0 accounts, Slurm has 3 funded QOS") as bad:
        sync.check(site.port, prepared, site.settings)
    assert bad.value.code == 4  # type: ignore[attr-defined]
    site.budgets("lab: {gpus: 32}")
    done = site.sync(code=4)
    assert "exist would change" in done.err
    assert site.qos("funded-team", "grptres") == "gres/gpu=96"
    site.sync("--max-change", "100")
    assert site.qos("funded-team", "grptres") == "gres/gpu=0"
    assert site.one("fairshare", "team") == "1"


def test_a_limit_below_what_runs(site: Site) -> None:
    others = "".join(f"x{n}: {{gpus: 1}}\n" for n in range(4))
    site.budgets(others + f"lab: {{gpus: 8, users: [{ANA}]}}")
    site.sync()
    asked = ("--account=lab", "--qos=funded-lab", "--nodes=2", "--gres=gpu:8")
    job, _ = site.play.sbatch(ANA, *asked, command="sleep 300")
    site.play.wait("it runs", lambda: site.play.state(job) == "RUNNING")
    site.budgets(others + f"lab: {{gpus: 1, users: [{ANA}]}}")
    done = site.sync(code=4)
    assert "limit gres/gpu=8 is below the 16 GPUs that run in it now" in done.err
    site.sync("--below-running")
    assert site.qos("funded-lab", "grptres") == "gres/gpu=8"
    assert site.play.state(job) == "RUNNING", "a lower limit ends nothing"


def test_what_fails_is_listed_and_the_rest_goes_on(site: Site) -> None:
    site.sacctmgr("add", "qos", "funded-team,preemptible")
    site.sacctmgr("modify", "qos", "name=preemptible", "set", "preempt=funded-team")
    site.budgets(LAB)
    done = site.sync("--max-change", "100", code=3)
    assert "QOS funded-team: " in done.err
    assert "loop" in done.err.lower()
    assert site.one("fairshare", "other") == "80000"
    site.sacctmgr("modify", "qos", "name=preemptible", "set", "preempt-=funded-team")
    # slurmdbd 22.05 sees the loop until it is restarted, though the list is empty
    site.play.cluster("stop", "slurmdbd")
    site.play.cluster("start", "slurmdbd")
    site.sync("--max-change", "100")
    assert site.qos("funded-team", "preempt") == "preemptible"


def test_ctrl_c_stops_between_two_calls_and_the_next_sync_finishes(site: Site) -> None:
    site.budgets("".join(f"a{n}: {{gpus: {n * 8}}}\n" for n in range(1, 13)))
    program = Path(sys.executable).parent / "sbudget"
    with subprocess.Popen(
        [str(program), "sync", "--yes"],
        env=site.play.env(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        site.play.wait("the first QOS", lambda: site.qos("preemptible", "name"), every=0.05)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: sacctmgr gets it as well
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130, out + err
    assert "not tried" in err
    assert "stopped: interrupted" in err
    assert "applied and seen" in site.sync("--max-change", "100").out
    assert site.one("fairshare", "a12") == "960000"


@pytest.mark.parametrize("daemon", ["slurmdbd", "slurmctld"])
def test_a_daemon_down_is_exit_6_and_no_change(site: Site, daemon: str) -> None:
    site.budgets(LAB)
    # Slurm's own commands would try for 30 s
    quick = changed(site.play, timeout="3s")
    site.play.cluster("stop", daemon)
    assert site.play.sbudget("sync", "--yes", code=6, env=quick).err


def test_without_permission_nothing_is_done(site: Site) -> None:
    done = site.play.as_user(ANA, "sacctmgr", "-i", "-Q", "add", "qos", "funded-x")
    from slurm_budget.slurm.command import Reply
    from slurm_budget.slurm.sacctmgr_apply import refusal

    assert "denied" in refusal(Reply(done.argv, done.code, done.out, done.err, 0.0))


def test_a_gpu_type_that_slurm_does_not_account(site: Site) -> None:
    site.budgets("lab: {gpus: 8, gres: gres/gpu:a100}")
    done = site.sync(code=2)
    assert "does not account gres/gpu:a100" in done.err
    assert "AccountingStorageTRES=" in done.err


def test_partitions_and_parent_rows(site: Site) -> None:
    site.sacctmgr("add", "account", "lab", f"cluster={site.name}")
    site.sacctmgr("add", "user", "ana", "account=lab", f"cluster={site.name}")
    site.sacctmgr("add", "user", "ana", "account=lab", "partition=gpu", f"cluster={site.name}")
    site.sacctmgr("add", "user", "ben", "account=lab", f"cluster={site.name}", "fairshare=parent")
    site.budgets("lab: {gpus: 8, users: {ana: {gpus: 2}, ben: {gpus: 1}}}")
    site.sync("--max-change", "100")
    assert site.one("fairshare", "lab", "ana") == "20000"
    assert site.one("fairshare", "lab", "ana", "gpu") == "20000"
    assert site.one("fairshare", "lab", "ben") == "parent"
    assert "nothing to do" in site.sync().out


def test_another_cluster_of_the_same_slurmdbd_is_left_alone_and_named(site: Site) -> None:
    site.sacctmgr("add", "cluster", "elsewhere", code=None)
    try:
        site.sacctmgr("add", "qos", "funded-team")
        site.sacctmgr(
            "add", "account", "team", "cluster=elsewhere", "fairshare=3", "qos=funded-team"
        )
        site.budgets(LAB)
        assert "funded-team is used by cluster elsewhere too" in site.plan()
        site.sync("--max-change", "100")
        rows = site.play.slurm(
            "sacctmgr", "-nP", "show", "assoc", "cluster=elsewhere", "format=account,fairshare"
        )
        assert rows.split() == ["root|1", "root|1", "team|3"]
    finally:
        site.sacctmgr("delete", "cluster", "elsewhere", code=None)


def test_the_backstop_ends_what_runs(site: Site) -> None:
    """Why it is off by default: at GrpTRESMins Slurm kills a run, whatever protects it."""
    few = site.settings.model_copy(
        update={"qos": site.settings.qos.model_copy(update={"backstop": 0.02})}
    )
    node = BudgetNode("lab", None, Amount("gpu_hours", 1), users=(UserBudget(ANA),))
    tree = BudgetTree(site.name, {"lab": node})
    prepared = sync.prepare(site.port, tree, few, int(time.time()))
    assert sync.apply_plan(site.port, prepared, few, int(time.time())).failed == ()
    # 1 GPU-hour a week is 0.006 GPUs, which settle at 87 GPU-minutes: 2% of them are 2 minutes.
    assert site.qos("funded-lab", "grptresmins") == "gres/gpu=2"
    asked = ("--account=lab", "--qos=funded-lab", "--gres=gpu:8")
    job, _ = site.play.sbatch(ANA, *asked, command="sleep 600")
    site.play.wait("it runs", lambda: site.play.state(job) == "RUNNING")
    site.play.wait("it is killed", lambda: site.play.state(job) != "RUNNING", 150, every=2)
    assert site.play.state(job) not in ("COMPLETED", "PENDING")


def test_what_people_set_stays_when_a_cluster_is_adopted(site: Site) -> None:
    here = f"cluster={site.name}"
    site.sacctmgr("add", "qos", "high")
    site.sacctmgr("add", "account", "dept", here, "fairshare=30", "grptres=cpu=64,mem=2000M")
    site.sacctmgr("add", "account", "group", here, "parent=dept", "fairshare=20", "qos=normal,high")
    site.sacctmgr("modify", "account", "name=group", here, "set", "defaultqos=high")
    site.sacctmgr("add", "user", "ana", "account=dept,group", here, "fairshare=4")
    site.sacctmgr("add", "user", "ben", "account=group", here, "fairshare=parent", "maxjobs=3")
    fields = ("account", "user", "parentname", "fairshare", "grptres", "maxjobs", "defaultqos")
    before = site.show(*fields)
    file = site.play.site / "imported.yaml"
    told = site.play.sbudget("budget", "import-slurm", "-o", str(file), "--suggest")
    assert "sync will own" in told.err
    assert "group: fairshare 20 is 100% of its siblings'" in told.err
    site.play.sbudget("budget", "load", str(file), "-m", "adopted")
    site.sync("--max-change", "100")
    after = site.show(*fields)
    unset = [[*row[:-1], row[-1].replace("preemptible", "")] for row in after]
    assert unset == before, "a default was added where there was none, all else is as it was"
    assert site.one("defaultqos", "group") == "high"
    assert set(site.one("qos", "group").split(",")) == {"high", "normal", "preemptible"}
    assert "nothing to do" in site.sync().out
