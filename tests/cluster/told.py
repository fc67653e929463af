"""What slurmdbd and the ledger say of the same jobs."""

from playground import Failed, Playground

from slurm_budget.ledger.store import Ledger

Row = tuple[int, int, int, str, str]
"""Job, start, end, state, QOS of one start."""


def by_slurm(site: Playground, *jobs: int) -> list[Row]:
    rows = [row for row in site.rows(*jobs) if row[4].isdigit()]
    return sorted((int(r[0]), int(r[3]), int(r[4]), r[1].split()[0], r[2]) for r in rows)


def by_ledger(site: Playground, *jobs: int) -> list[Row]:
    with Ledger.open(f"sqlite:///{site.ledger}") as ledger:
        found = ledger.runs_between(site.name, 0, 1 << 40)
        return sorted(
            (r.job_id, r.start, r.end or 0, r.state, r.qos) for r in found if r.job_id in jobs
        )


def sweep_until_known(site: Playground, *jobs: int) -> None:
    """Sweeps until the ledger says of the jobs what slurmdbd does.

    To a question by time slurmdbd answers with a run only when it was told of its start, up to
    five seconds later; to one by number, when it was told of anything."""

    def same() -> bool:
        site.sbudget("sweep")
        return by_ledger(site, *jobs) == by_slurm(site, *jobs) != []

    try:
        site.wait("the ledger says what the accounting says", same)
    except Failed as failed:
        said = f"slurmdbd: {by_slurm(site, *jobs)}\nledger: {by_ledger(site, *jobs)}"
        raise Failed(f"{failed}\n{said}") from None
