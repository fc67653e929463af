"""How long sbudget-admit takes from its start to its answer, beside the start of Python alone."""

import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

from . import facts

REQUEST = {
    "tres_per_node": "gres:gpu:h100:8",
    "time_min": 240,
    "time_limit": 1440,
    "account": facts.account(11),
    "user_name": facts.submitter(11),
    "script": "#!/bin/sh",
}


def measure(snapshot: Path, times: int) -> list[tuple[str, float, float]]:
    """(what, mean, median) in milliseconds, the ways taking turns."""
    program = Path(sys.executable).parent / "sbudget-admit"
    ways = {
        "python -S -E -c pass": [sys.executable, "-S", "-E", "-c", "pass"],
        "python -c pass (with its site)": [sys.executable, "-c", "pass"],
        "sbudget-admit": [str(program), str(snapshot)],
    }
    body = json.dumps({"job_desc": REQUEST}).encode()
    took: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(times):
        for name, argv in ways.items():
            started = time.perf_counter()
            done = subprocess.run(argv, input=body, capture_output=True, check=True)
            took[name].append(1000 * (time.perf_counter() - started))
    if json.loads(done.stdout)["verdict"] != "funded":
        raise SystemExit(f"sbudget-admit: {done.stdout!r} {done.stderr!r}")
    return [(name, statistics.mean(all_), statistics.median(all_)) for name, all_ in took.items()]
