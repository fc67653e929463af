"""What stands behind `sbudget report NAME`, in sreport's words: `start=`, `accounts=`, `tree`."""

from dataclasses import dataclass

from slurm_budget.cli.context import Context
from slurm_budget.errors import BadInput
from slurm_budget.text.moments import moment
from slurm_budget.usecases import known
from slurm_budget.usecases.report import Query

WORDS = ("accounts", "clusters", "end", "format", "start", "tree", "users")


@dataclass(frozen=True, slots=True)
class Words:
    """The words as they were typed; None where one is not there."""

    start: str | None = None
    end: str | None = None
    format: str | None = None
    clusters: str | None = None
    accounts: str | None = None
    users: str | None = None
    tree: bool = False

    def query(self, cluster: str, now: int, window: int) -> Query:
        """The question; without `start=` the period is the window (in seconds) before its end."""
        end = now if self.end is None else min(moment(self.end, now), now)
        start = end - window if self.start is None else moment(self.start, now)
        if start >= end:
            raise BadInput(
                f"the period ends before it starts: start={self.start or ''} end={self.end or ''}",
                mend="swap them; the end is cut at now",
            )
        return Query(
            cluster=cluster,
            start=start,
            end=end,
            windowed=self.start is None,
            accounts=_listed(self.accounts),
            users=_listed(self.users),
        )


def _listed(text: str | None) -> tuple[str, ...]:
    return tuple(filter(None, (text or "").split(",")))


def parse(typed: tuple[str, ...]) -> Words:
    """Words in any case and cut short, as sreport takes them; a word given twice counts last."""
    found: dict[str, str] = {}
    tree = False
    for item in typed:
        name, equals, value = item.partition("=")
        fits = [word for word in WORDS if name and word.startswith(name.lower())]
        if len(fits) != 1 or (fits == ["tree"]) == bool(equals):
            known = ", ".join(word if word == "tree" else f"{word}=" for word in WORDS)
            raise BadInput(f"{item!r} is not understood", mend=f"the words are {known}")
        if fits == ["tree"]:
            tree = True
        else:
            found[fits[0]] = value.strip("\"'")
    if len(_listed(found.get("clusters"))) > 1:
        raise BadInput("one cluster at a time", mend="call it once for each cluster")
    return Words(tree=tree, **found)


def cluster(said: Words, ctx: Context) -> str:
    """The cluster that was asked for, which the ledger must know; else this one."""
    if said.clusters is None:
        return ctx.cluster
    return known.cluster(ctx.ledger(), said.clusters, ctx.cluster_named)
