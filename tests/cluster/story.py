"""The teams, budgets and scaled settings that the tests of this ring play with."""

from playground import Playground

ANA, BEN, CLEO = "sbtest-ana", "sbtest-ben", "sbtest-cleo"
SIDECAR = "sbtest-sidecar"
"""A plain Linux user who may become a Slurm operator, and sweep."""

BUDGETS = f"""\
cluster: {{name}}
accounts:
  institute:
    gpus: 32
    accounts:
      vision:   {{{{gpus: 16, users: [{ANA}]}}}}
      language: {{{{gpus: 15, users: [{BEN}]}}}}
      robotics: {{{{gpus: 1,  users: [{CLEO}]}}}}
"""

SETTINGS = """
    [window]
    length = "10min"
    [jobs]
    min_runtime = "10s"
    [qos]
    preempt_exempt_time = "4s"
    grace_time = "0s"
    [sweep]
    beat = "1s"
    patience = "0s"
    grace = "2s"
    margin = 0.01
    cooldown = "60s"
"""


def open_site(play: Playground) -> None:
    """Bring the cluster up, with budgets loaded and synced and a snapshot published."""
    play.up()
    budgets = play.site / "budgets.yaml"
    budgets.write_text(BUDGETS.format(name=play.name).replace("{{", "{").replace("}}", "}"))
    play.sbudget("ledger", "init")
    play.sbudget("budget", "load", str(budgets), "-m", "for the tests")
    play.sbudget("sync", "--yes")
    play.sbudget("sweep")


def tidy(play: Playground) -> None:
    """Daemons up and no job left."""
    for daemon in ("mariadb", "slurmdbd", "slurmctld"):
        play.cluster("start", daemon)
    play.wait("slurmctld", lambda: "UP" in play.slurm("scontrol", "ping", code=None))
    play.slurm("scancel", "--partition=gpu", code=None)
    play.wait("an empty queue", lambda: not play.slurm("squeue", "-h", "-a").strip())
