"""What a sweep tells everybody beside the snapshot: whom it requeued for whom, and why it leaves
the other jobs alone. JSON, read by `sbudget why` where the ledger cannot be.

    {"schema": "sbudget-told-1", "since": 0, "observed_at": 100, "intents": [...],
     "victims": {"9": [7]}, "going": {"7": "language is owed 8 GPUs for job 9"},
     "left": {"8": "not requeueable (--no-requeue)"}, "paused": ""}
"""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass

from slurm_budget.errors import BadInput
from slurm_budget.state.answers import Outlook
from slurm_budget.state.intent import Intent

SCHEMA = "sbudget-told-1"
MOST_INTENTS = 1000


@dataclass(frozen=True, slots=True)
class Told:
    """As of epoch second `observed_at`; `intents` are all since `since`, oldest first."""

    since: int
    observed_at: int
    intents: tuple[Intent, ...]
    outlook: Outlook


def encode(since: int, observed_at: int, intents: Iterable[Intent], outlook: Outlook) -> str:
    """`decode` gives the same back; of more than MOST_INTENTS intents the last, with a later
    `since`."""
    every = list(intents)
    last = every[-MOST_INTENTS:]
    document = {
        "schema": SCHEMA,
        "since": since if len(last) == len(every) else last[0].created + 1,
        "observed_at": observed_at,
        "intents": [asdict(intent) for intent in last],
        "victims": dict(outlook.victims),
        "going": dict(outlook.going),
        "left": dict(outlook.left),
        "paused": outlook.paused,
    }
    return json.dumps(document, separators=(",", ":")) + "\n"


def decode(text: str) -> Told:
    """Raises BadInput for a text that is damaged or of another version."""
    try:
        found = json.loads(text)
        if found["schema"] != SCHEMA:
            raise ValueError(f"its schema is {found['schema']!r}")
        outlook = Outlook(
            victims={int(job): tuple(runs) for job, runs in found["victims"].items()},
            going={int(job): reason for job, reason in found["going"].items()},
            left={int(job): reason for job, reason in found["left"].items()},
            paused=found["paused"],
        )
        intents = tuple(Intent(**fields) for fields in found["intents"])
        return Told(int(found["since"]), int(found["observed_at"]), intents, outlook)
    except (ValueError, KeyError, TypeError, AttributeError) as bad:
        raise BadInput(
            f"this is not what a sweep tells: {bad}", mend="run `sbudget sweep`, which writes it"
        ) from None
