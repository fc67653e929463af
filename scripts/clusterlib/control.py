"""`stop` and `start` of single daemons: outages for fault tests."""

from . import procs
from .base import EXIT_USAGE, ClusterError, say
from .daemons import Cluster
from .layout import Layout, known_clusters, locked
from .state import State, load


def existing(layout: Layout) -> State:
    """The state of a cluster that is there, or an error that names those that are."""
    state = load(layout) if layout.is_ours else None
    if state is None:
        names = known_clusters()
        raise ClusterError(
            f"no cluster in {layout.root}",
            mend="scripts/cluster up"
            + (f", or one of --name {', --name '.join(names)}" if names else ""),
        )
    return state


def check(state: State, names: list[str]) -> None:
    known = state.spec.daemons()
    if unknown := [name for name in names if name not in known]:
        raise ClusterError(
            f"this cluster has no daemon {unknown[0]!r}",
            mend=f"one of: {', '.join(known[:5])}" + (", ..." if len(known) > 5 else ""),
            code=EXIT_USAGE,
        )


def stop(layout: Layout, names: list[str], *, kill: bool) -> None:
    """Stop daemons; running jobs go on, as they would on a real node."""
    existing(layout)
    with locked(layout):
        state = existing(layout)
        check(state, names)
        living = {name: proc for name in names if (proc := state.alive(name))}
        state.stopped = [name for name in state.spec.daemons() if name in {*state.stopped, *names}]
        state.save(layout)
        if procs.end(living.values(), patience=0 if kill else 15):
            raise ClusterError(
                "a daemon does not end, not even when killed", where=" ".join(living)
            )
        for name in names:
            say(f"{name} {'stopped' if name in living else 'did not run'}")


def start(layout: Layout, names: list[str], *, timeout: float) -> None:
    """Start daemons again, and wait until each of them answers."""
    existing(layout)
    with locked(layout):
        state = existing(layout)
        check(state, names)
        state.stopped = [name for name in state.stopped if name not in names]
        state.save(layout)
        cluster = Cluster(layout, state, timeout)
        order = [name for name in state.spec.daemons() if name in names]
        running = [name for name in order if state.alive(name)]
        nodes = [name for name in order if name.startswith("slurmd:")]
        for name in order:
            if name not in nodes:
                cluster.start([name])
                cluster.await_answer(name)
        cluster.start(nodes)
        for name in nodes:
            cluster.await_answer(name)
        for name in order:
            say(f"{name} {'runs already' if name in running else 'answers'}")
