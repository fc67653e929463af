"""The laws of requeueing, checked on the accounting of what a test has run."""

import time
from contextlib import closing

import laws
from playground import Playground

from slurm_budget.ledger.store import Ledger
from slurm_budget.settings import load


def check(play: Playground, began: int) -> None:
    """Fails with each breach since epoch second `began`, read from slurmdbd and from the ledger."""
    since = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(began))
    text = play.slurm(
        "sacct", "-a", "-D", "-X", "-n", "-P", "-S", since, "-o", ",".join(laws.FIELDS)
    )
    mine = [row for row in laws.rows(text) if row.start >= began]
    with closing(Ledger.open(f"sqlite:///{play.ledger}")) as ledger:
        intents = ledger.intents_since(play.name, 0)
    assert laws.broken(mine, intents, load(play.config).jobs.min_runtime) == []
