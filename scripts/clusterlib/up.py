"""`up`: from nothing, or from whatever an earlier `up` left, to a Slurm whose nodes are idle.

Every step looks at what is there and does what is missing.  So a killed `up` can be run again,
and `up` after a reboot starts the daemons on the old data.
"""

import os
import secrets
import shutil
import socket
import stat
from pathlib import Path

from . import conf, packages, procs, users
from .base import ClusterError, say, until
from .conf import Site
from .daemons import READY_NODES, Cluster, slurm_version
from .layout import Layout, locked
from .machine import choose_ports, machine_lock, register
from .state import Spec, State, load


def up(layout: Layout, spec: Spec, files: dict[str, Path], *, yes: bool, timeout: float) -> None:
    packages.ensure(yes)
    _need_address()
    _make_root(layout)
    with locked(layout):
        state = load(layout) or State(spec)
        if differences := state.spec.differences(spec):
            raise ClusterError(
                f"cluster {state.spec.name} is there, but not as asked for",
                where="\n".join([str(layout.root), *differences]),
                mend="`scripts/cluster down` first, or take another --name or --dir",
            )
        if state.phase == "ready" and not state.missing():
            say(f"cluster {spec.name} is up already ({layout.root})")
            if state.stopped:
                names = " ".join(state.stopped)
                say(f"  stopped on purpose; to end that: scripts/cluster start {names}")
            return
        # 128 slurmd discover the machine at the same time: give each node its share of patience.
        cluster = Cluster(layout, state, timeout + spec.nodes)
        _prepare(cluster, files)
        _start(cluster)
        state.phase = "ready"
        state.save(layout)
    gpus = f" with {spec.gpus} {spec.type or 'gpu'} each" if spec.gpus else ""
    say(f"cluster {spec.name} is up: Slurm {state.slurm}, {spec.nodes} nodes{gpus}")
    say(f"  to use it:  export SLURM_CONF={layout.slurm_conf}")


def _need_address() -> None:
    """Slurm resolves names with AI_ADDRCONFIG: nothing, not even 127.0.0.1, without a network."""
    try:
        socket.getaddrinfo("127.0.0.1", None, socket.AF_INET, flags=socket.AI_ADDRCONFIG)
    except socket.gaierror:
        raise ClusterError(
            "this machine has no IPv4 address but 127.0.0.1, and Slurm wants one",
            where="ip addr",
            mend="give it one; a container must not run with --network none",
        ) from None


def _make_root(layout: Layout) -> None:
    root = layout.root
    if root.exists() and not layout.is_ours and any(root.iterdir()):
        raise ClusterError(
            f"the folder {root} is in use for something else",
            mend="take an empty or a new folder: `down` will remove all of it",
            code=2,
        )
    for folder in root.parents:
        if folder.exists() and not folder.stat().st_mode & stat.S_IXOTH:
            raise ClusterError(
                f"the folder {folder} is closed to other users, who must read slurm.conf below it",
                mend="take a --dir that everybody may enter, or: chmod o+x " + str(folder),
            )
    root.mkdir(parents=True, exist_ok=True)
    root.chmod(0o755)
    layout.marker.write_text("This folder was made by scripts/cluster; `down` removes it.\n")


def _prepare(cluster: Cluster, files: dict[str, Path]) -> None:
    """Everything on disk.  Configuration of a cluster that has been ready is left as it is."""
    there, state = cluster.layout, cluster.state
    for folder in (there.etc, there.log, there.run, there.save, there.spool, there.dev, there.home):
        folder.mkdir(mode=0o755, exist_ok=True)
    for node in state.spec.node_names():
        there.node_spool(node).mkdir(mode=0o755, exist_ok=True)
    with machine_lock():
        if not state.ports:
            state.ports = choose_ports(there, state.spec)
        state.save(there)
        register(there)
    users.create(there, state)
    _make_devices(there, state.spec)
    if state.phase != "ready":
        _configure(cluster, files)


def _configure(cluster: Cluster, files: dict[str, Path]) -> None:
    there, state = cluster.layout, cluster.state
    state.slurm, version = slurm_version()
    if not there.munge_key.exists():
        write(there.munge_key, secrets.token_bytes(128), 0o600)
    password = _password(there, state.ports["mariadb"])
    # Slurm compares these names with the machine's: `localhost` is right in few places.
    host = socket.gethostname().partition(".")[0]
    site = Site(host=host, ports=state.ports, version=version, password=password)
    write(there.slurm_conf, conf.slurm_conf(state.spec, there, site))
    write(there.etc / "slurmdbd.conf", conf.slurmdbd_conf(state.spec, there, site), 0o600)
    if state.spec.gpus:
        write(there.etc / "gres.conf", conf.gres_conf(state.spec, there))
    if text := conf.cgroup_conf(version):
        write(there.etc / "cgroup.conf", text)
    for name, source in files.items():
        write(there.etc / name, source.read_bytes())
    say(f"configured for Slurm {state.slurm} in {there.etc}")


def write(path: Path, content: str | bytes, mode: int = 0o644) -> None:
    """Write a file as a whole, never readable by more people than it shall be."""
    data = content.encode() if isinstance(content, str) else content
    temporary = path.with_name(f".{path.name}.new")
    temporary.unlink(missing_ok=True)
    with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as handle:
        handle.write(data)
    temporary.rename(path)


def _password(layout: Layout, port: int) -> str:
    """The password of slurmdbd's database user: made once, kept in a file for clients."""
    if layout.mysql_secret.exists():
        return layout.mysql_secret.read_text().partition("password=")[2].strip()
    password = secrets.token_hex(16)
    write(
        layout.etc / "mariadb.sql",
        "CREATE DATABASE IF NOT EXISTS slurm_acct_db;\n"
        f"CREATE USER IF NOT EXISTS slurm@127.0.0.1 IDENTIFIED BY '{password}';\n"
        "GRANT ALL ON slurm_acct_db.* TO slurm@127.0.0.1;\n",
        0o600,
    )
    write(
        layout.mysql_secret,
        f"# mariadb --defaults-file={layout.mysql_secret} slurm_acct_db\n"
        f"[client]\nhost=127.0.0.1\nport={port}\nuser=slurm\npassword={password}\n",
        0o600,
    )
    return password


def _make_devices(layout: Layout, spec: Spec) -> None:
    """gpu0, gpu1, ...: twins of /dev/null.  Slurm asks only that they exist."""
    for number in range(spec.gpus):
        path = layout.dev / f"gpu{number}"
        if path.exists():
            continue
        try:
            os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        except OSError:  # not permitted: a container without CAP_MKNOD, a user namespace
            path.symlink_to("/dev/null")


def _start(cluster: Cluster) -> None:
    _start_one(cluster, "munged")
    _init_mariadb(cluster)
    _start_one(cluster, "mariadb")
    _start_one(cluster, "slurmdbd")
    _register_cluster(cluster)
    _start_one(cluster, "slurmctld")
    _start_nodes(cluster)
    _await_accounting(cluster)


def _start_one(cluster: Cluster, name: str) -> None:
    if name in cluster.state.missing():
        cluster.start([name])
        cluster.await_answer(name)
        say(f"{name} answers")


def _init_mariadb(cluster: Cluster) -> None:
    """Make MariaDB's system tables, beside their place, so that a half-made set never counts."""
    there = cluster.layout
    if there.mysql.exists():
        return
    new = there.root / "mysql.new"
    if earlier := cluster.state.alive("mariadb-install"):  # its `up` was killed, it was not
        procs.end([earlier, *procs.descendants([earlier])], patience=0)
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir(mode=0o700)
    command = procs.Command(
        "mariadb-install",
        [
            "mariadb-install-db",
            "--no-defaults",
            "--user=root",
            f"--datadir={new}",
            "--auth-root-authentication-method=socket",
            "--auth-root-socket-user=root",
            "--skip-test-db",
            "--skip-name-resolve",
            "--innodb-log-file-size=32M",
        ],
        there.log / "mariadb-install.out",
    )
    # Launched like a daemon, so that `down` finds it when we are killed now.
    cluster.launch([command])
    if not until(lambda: not cluster.state.alive(command.name), cluster.timeout):
        raise cluster.failure(command.name)
    if not (new / "mysql" / "db.frm").exists():
        raise cluster.failure(command.name)
    new.rename(there.mysql)
    del cluster.state.procs[command.name]
    cluster.state.save(there)


def _register_cluster(cluster: Cluster) -> None:
    """Before slurmctld starts: one that is not registered accounts for nothing at first."""
    name = cluster.state.spec.name
    show = ("sacctmgr", "-nP", "show", "cluster", "format=cluster")
    known = cluster.must(*show).split()
    if name in known:
        return
    added = cluster.run("sacctmgr", "-i", "add", "cluster", name)
    # It may also have been added just now, by the last act of an `up` that was killed.
    if added.returncode and name not in cluster.must(*show).split():
        raise ClusterError(
            f"sacctmgr does not add the cluster: {added.stderr.strip() or added.stdout.strip()}",
            where=f"{cluster.layout.log}/slurmdbd.log",
        )
    say(f"cluster {name} registered in slurmdbd")


def _await_accounting(cluster: Cluster) -> None:
    """Until slurmdbd knows slurmctld's port: from then on it is told of jobs as they come."""
    show = ("sacctmgr", "-nP", "show", "cluster", cluster.state.spec.name, "format=controlport")

    def known() -> bool:
        return cluster.run(*show).stdout.strip() == str(cluster.state.ports["slurmctld"])

    if not until(known, cluster.timeout):
        raise ClusterError(
            "slurmctld has not registered with slurmdbd: jobs would not be accounted",
            where=f"{cluster.layout.log}/slurmctld.log",
            mend="`scripts/cluster down`, then `up` again",
        )


def _start_nodes(cluster: Cluster) -> None:
    spec, state = cluster.state.spec, cluster.state
    names = [name for name in state.missing() if name.startswith("slurmd:")]
    if not names:
        return
    cluster.start(names)
    wanted = {name.removeprefix("slurmd:") for name in names}
    first_time = state.phase != "ready"
    last: dict[str, str] = {}

    def settled() -> bool:
        last.clear()
        last.update(cluster.node_states())
        if dead := [name for name in names if not state.alive(name)]:
            raise cluster.failure(dead[0])
        if not state.alive("slurmctld"):
            raise cluster.failure("slurmctld")
        # Slurm drains a node whose GPUs it does not find.  That does not mend itself.
        bad = [n for n in wanted if last.get(n, "").startswith(("drain", "drng", "inval"))]
        if bad and first_time:
            raise ClusterError(
                f"Slurm has drained {len(bad)} nodes, {bad[0]} among them",
                where=cluster.run("sinfo", "-R", "-h", "-o", "%N: %E").stdout.strip(),
                mend=f"see {cluster.layout.log}/slurmd-{bad[0]}.log",
            )
        ok = READY_NODES if first_time else READY_NODES | {"drain", "drng", "maint"}
        return all(last.get(node) in ok for node in wanted)

    if not until(settled, cluster.timeout, every=0.25):
        late = sorted(node for node in wanted if last.get(node) not in READY_NODES)
        raise ClusterError(
            f"{len(late)} of {spec.nodes} nodes are not ready after {cluster.timeout:.0f} s: "
            + ", ".join(f"{node} is {last.get(node, 'unknown')}" for node in late[:4]),
            where=f"{cluster.layout.log}/slurmd-{late[0]}.log" if late else "",
            mend="--timeout gives a slow machine more time",
        )
    say(f"{len(names)} nodes are ready")
