"""`sbudget-admit`: the verdict on one job, for a submit hook that asks instead of deciding itself.

    sbudget-admit SNAPSHOT [FALLBACK_QOS] < request.json > verdict.json

    request   {"job_desc": {fields as job_submit.lua is handed them},
               "promised": {budget: GPU-milliseconds promised since the snapshot},
               "now": epoch seconds}                     the last two may be left out
    verdict   {"verdict": "funded" | "preemptible" | "rejected" | "unchanged",
               "asked", "why", "min_runtime": seconds,
               "changes": {fields of job_desc to write}, "messages": [lines for the user],
               "promise": {budget: GPU-milliseconds}}

It holds up slurmctld, so it imports the standard library and the admission core alone, reads of
the snapshot only the lines that it needs, and asks nobody. Whatever goes wrong, the verdict is
"unchanged" (but for a QOS `funded`, which does not exist), the exit code 0, and one line on stderr
says why: a hook must never be the reason that a job is refused.
"""

import json
import sys
import time
from typing import TYPE_CHECKING

from slurm_budget.core import admission, request, snapshot
from slurm_budget.errors import SbudgetError

if TYPE_CHECKING:
    from slurm_budget.state.snapshot import Snapshot

FALLBACK = "preemptible"


def main() -> None:
    """Reads stdin, writes one line of JSON to stdout; the exit code is always 0."""
    path = sys.argv[1] if len(sys.argv) > 1 else ""
    fallback = sys.argv[2] if len(sys.argv) > 2 else FALLBACK
    data = sys.stdin.buffer.read()
    try:
        answer = admit(data, path, fallback)
    except Exception as bad:  # whatever it is, a job must not suffer from it
        _complain(f"job left unchanged: {type(bad).__name__}: {bad}")
        answer = unchanged(data, fallback)
    sys.stdout.write(json.dumps(answer) + "\n")


def admit(data: bytes, path: str, fallback: str) -> dict[str, object]:
    """The verdict as a mapping. Raises whatever is wrong with the request."""
    given = json.loads(data.decode(errors="surrogateescape"))
    job = request.read(given["job_desc"])
    now = int(given.get("now") or time.time())
    promised = {str(name): int(cost) for name, cost in (given.get("promised") or {}).items()}
    verdict = admission.decide(job, _facts(path), now, promised, fallback)
    return {
        "verdict": "rejected" if verdict.reject else verdict.class_ or "unchanged",
        "asked": verdict.asked,
        "why": verdict.why,
        "min_runtime": verdict.min_runtime,
        "changes": dict(verdict.changes),
        "messages": list(verdict.messages),
        "promise": dict(verdict.promise),
    }


def unchanged(data: bytes, fallback: str) -> dict[str, object]:
    """What to say of a request that cannot be understood."""
    changes = {}
    try:
        qos = json.loads(data.decode(errors="surrogateescape"))["job_desc"]["qos"]
        if qos.lower() == "funded":
            changes["qos"] = fallback
    except Exception:  # not even that can be read
        pass
    return {"verdict": "unchanged", "changes": changes, "messages": [], "promise": {}}


def _facts(path: str) -> "Snapshot | None":
    try:
        with open(path, encoding="utf-8", errors="surrogateescape", newline="") as file:
            return snapshot.lazy(file.read())
    except (OSError, SbudgetError) as bad:
        _complain(f"no usable snapshot: {bad}")
        return None


def _complain(text: str) -> None:
    sys.stderr.write("sbudget-admit: " + text.replace("\n", " ") + "\n")


if __name__ == "__main__":
    main()
