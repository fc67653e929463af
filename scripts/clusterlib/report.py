"""`status` and `env`: what is there, for people and for programs."""

import json
from collections import Counter
from typing import Any

from .control import existing
from .daemons import Cluster
from .layout import Layout


def status(layout: Layout, *, as_json: bool) -> bool:
    """Print the state of a cluster.  True when all daemons run and Slurm answers."""
    facts = gather(layout)
    if as_json:
        print(json.dumps(facts, indent=1))
    else:
        print("\n".join(_lines(facts)))
    return bool(facts["up"])


def gather(layout: Layout) -> dict[str, Any]:
    state = existing(layout)
    cluster = Cluster(layout, state)
    daemons = {
        name: {
            "pid": proc.pid if (proc := state.alive(name)) else None,
            "stopped": name in state.stopped,
        }
        for name in state.spec.daemons()
    }
    asked = state.alive("slurmctld") is not None
    nodes = Counter(cluster.node_states().values()) if asked else Counter()
    jobs = Counter(cluster.run("squeue", "-h", "-r", "-o", "%T").stdout.split()) if asked else {}
    return {
        "name": state.spec.name,
        "dir": str(layout.root),
        "up": state.phase == "ready" and all(d["pid"] for d in daemons.values()) and bool(nodes),
        "phase": state.phase,
        "slurm_version": state.slurm,
        "slurm_conf": str(layout.slurm_conf),
        "logs": str(layout.log),
        "nodes": dict(nodes),
        "jobs": dict(jobs),
        "node_count": state.spec.nodes,
        "gpus_per_node": state.spec.gpus,
        "gpu_type": state.spec.type,
        "users": {name: str(layout.home / name) for name in state.spec.users},
        "users_created": state.users_created,
        "ports": state.ports,
        "mariadb_socket": str(layout.mysql_socket),
        "mariadb_client_file": str(layout.mysql_secret),
        "daemons": daemons,
    }


def _lines(facts: dict[str, Any]) -> list[str]:
    def counts(what: dict[str, int]) -> str:
        return ", ".join(f"{number} {name}" for name, number in sorted(what.items())) or "none"

    daemons = facts["daemons"]
    dead = [name for name, d in daemons.items() if not d["pid"] and not d["stopped"]]
    stopped = [name for name, d in daemons.items() if not d["pid"] and d["stopped"]]
    verdict = "up" if facts["up"] else "not up"
    if facts["phase"] != "ready":
        verdict += " (`up` did not come to its end)"
    lines = [
        f"cluster {facts['name']}: {verdict}",
        f"  folder   {facts['dir']}",
        f"  Slurm    {facts['slurm_version'] or 'unknown'}",
        f"  daemons  {len(daemons) - len(dead) - len(stopped)} of {len(daemons)} run",
        f"  nodes    {counts(facts['nodes'])}",
        f"  jobs     {counts(facts['jobs'])}",
        f"  users    {', '.join(facts['users']) or 'none'}",
    ]
    if stopped:
        lines.append("  stopped  " + ", ".join(stopped))
    if dead:
        lines.append("  dead     " + ", ".join(dead))
    return lines


def env(layout: Layout) -> None:
    """Lines for `eval "$(scripts/cluster env)"`."""
    existing(layout)
    print(f"export SLURM_CONF={layout.slurm_conf}")
