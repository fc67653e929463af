"""The command line: arguments, becoming root, exit codes."""

import argparse
import hashlib
import os
import re
import resource
import shutil
import sys
from pathlib import Path

from . import control, packages, report
from .base import EXIT_FAILED, EXIT_OK, EXIT_USAGE, ClusterError, say
from .daemons import PATH
from .down import down
from .layout import BASE, Layout
from .state import Spec
from .up import up

DESCRIPTION = """\
A real Slurm on one machine, for demos and tests: munged, MariaDB, slurmdbd, slurmctld and as many
slurmd as you like, with GPUs that do not exist.  All in one folder, on free ports, without systemd,
beside whatever else runs; `down` leaves nothing behind.

  scripts/cluster up --users ana,ben --yes
  eval "$(scripts/cluster env)"
  su ana -c 'cd && sbatch --gres=gpu:h100:8 --wrap "sleep 60"'
  scripts/cluster down
"""


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        prog="scripts/cluster",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="Exit codes: 0 done or nothing to do, 1 failed (status: not up), 2 usage.",
    )
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def add(name: str, text: str, place: bool = True) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=text, description=text, allow_abbrev=False)
        if place:
            sub.add_argument("--name", default="demo", help="the cluster's name (%(default)s)")
            sub.add_argument("--dir", help=f"its folder ({BASE}/NAME)")
        return sub

    new = add("up", "make a cluster, or start what is not running of it")
    new.add_argument("--nodes", type=_count(1, 4000), default=4, help="(%(default)s)")
    new.add_argument("--gpus", type=_count(0, 64), default=8, help="per node (%(default)s)")
    new.add_argument("--type", default="h100", help="of the GPUs; '' for none (%(default)s)")
    new.add_argument("--cpus", type=_count(1, 1024), default=64, help="per node (%(default)s)")
    new.add_argument("--users", default="", metavar="A,B", help="Linux users, made if missing")
    new.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="a line for slurm.conf"
    )
    new.add_argument(
        "--set-dbd", action="append", default=[], metavar="KEY=VALUE", help="for slurmdbd.conf"
    )
    new.add_argument("--hook", metavar="FILE", help="becomes job_submit.lua, and is used")
    new.add_argument(
        "--file",
        action="append",
        default=[],
        metavar="FILE",
        help="copied beside slurm.conf, such as topology.conf",
    )
    new.add_argument("--yes", action="store_true", help="install packages without asking")
    _timeout(new)

    gone = add("down", "end a cluster and remove its folder and users")
    gone.add_argument("--keep-logs", action="store_true", help="leave the folder's log/")
    shown = add("status", "what runs; exit code 1 when it is not up")
    shown.add_argument("--json", action="store_true")
    add("env", 'for eval "$(scripts/cluster env)"')
    for name, text in (("stop", "stop daemons (for fault tests)"), ("start", "start them again")):
        sub = add(name, text)
        sub.add_argument(
            "daemon", nargs="+", help="munged, mariadb, slurmdbd, slurmctld or slurmd:NODE"
        )
        if name == "stop":
            sub.add_argument("--kill", action="store_true", help="SIGKILL at once")
        else:
            _timeout(sub)
    inst = add("install", "install the Debian packages only", place=False)
    inst.add_argument("--yes", action="store_true", help="do not ask")
    return top


def _timeout(sub: argparse.ArgumentParser) -> None:
    sub.add_argument(
        "--timeout", type=_count(1, 3600), default=60, help="per step, s (%(default)s)"
    )


def _count(low: int, high: int):  # type: ignore[no-untyped-def]
    def number(text: str) -> int:
        if text.isdecimal() and low <= int(text) <= high:
            return int(text)
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from {low} to {high}")

    return number


def main(argv: list[str]) -> int:
    arguments = parser().parse_args(argv)
    try:
        os.umask(0o022)
        if arguments.command not in ("status", "env"):
            _become_root(argv)
        os.environ["PATH"] = f"{os.environ.get('PATH', '')}:{PATH}"
        return _dispatch(arguments)
    except ClusterError as error:
        print(error, file=sys.stderr)
        return error.code
    except KeyboardInterrupt:
        print("cluster: interrupted; `scripts/cluster down` clears up", file=sys.stderr)
        return EXIT_FAILED


def _dispatch(arguments: argparse.Namespace) -> int:
    if arguments.command == "install":
        if not packages.ensure(arguments.yes):
            say("nothing to install")
        return EXIT_OK
    _match("--name", arguments.name, r"[a-z][a-z0-9_]{0,30}", "small letters, digits and _")
    layout = Layout(Path(os.path.realpath(arguments.dir or BASE / arguments.name)))
    match arguments.command:
        case "up":
            _raise_limits()
            files = _files(arguments)
            up(layout, _spec(arguments, files), files, yes=arguments.yes, timeout=arguments.timeout)
        case "down":
            down(layout, keep_logs=arguments.keep_logs)
        case "status":
            return EXIT_OK if report.status(layout, as_json=arguments.json) else EXIT_FAILED
        case "env":
            report.env(layout)
        case "stop":
            control.stop(layout, arguments.daemon, kill=arguments.kill)
        case "start":
            _raise_limits()
            control.start(layout, arguments.daemon, timeout=arguments.timeout)
    return EXIT_OK


def _match(option: str, value: str, pattern: str, meaning: str) -> None:
    if not re.fullmatch(pattern, value):
        raise ClusterError(f"{option} {value!r} will not do", mend=meaning, code=EXIT_USAGE)


def _spec(arguments: argparse.Namespace, files: dict[str, Path]) -> Spec:
    users = [name for name in arguments.users.split(",") if name]
    for name in users:
        _match("--users", name, r"[a-z_][a-z0-9_-]{0,31}", "Linux user names, with commas between")
    _match("--type", arguments.type, r"[a-z0-9_.-]*", "small letters, digits, _ . -")
    for line in arguments.set + arguments.set_dbd:
        _match("--set", line, r"[A-Za-z]\w*=[^\n]*", "KEY=VALUE, as in slurm.conf")
    return Spec(
        name=arguments.name,
        nodes=arguments.nodes,
        gpus=arguments.gpus,
        type=arguments.type if arguments.gpus else "",
        cpus=arguments.cpus,
        users=users,
        set=arguments.set,
        set_dbd=arguments.set_dbd,
        files={name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in files.items()},
    )


def _files(arguments: argparse.Namespace) -> dict[str, Path]:
    """Name beside slurm.conf -> where it comes from."""
    files = {Path(name).name: Path(name) for name in arguments.file}
    if arguments.hook:
        files["job_submit.lua"] = Path(arguments.hook)
    for path in files.values():
        if not path.is_file():
            raise ClusterError(f"no file {path}", mend="check --hook and --file", code=EXIT_USAGE)
    if taken := files.keys() & {"slurm.conf", "slurmdbd.conf", "munge.key", "mariadb.cnf"}:
        raise ClusterError(
            f"--file cannot bring {min(taken)}", mend="use --set and --set-dbd", code=EXIT_USAGE
        )
    return files


def _become_root(argv: list[str]) -> None:
    """Several users' jobs on one machine need root.  Not root: run the same thing through sudo."""
    if os.geteuid() == 0:
        return
    sudo = shutil.which("sudo")
    if not sudo:
        raise ClusterError("needs root, and there is no sudo", mend="run it as root")
    ask = [] if sys.stdin.isatty() else ["-n"]
    print("cluster: not root, going on with sudo", file=sys.stderr, flush=True)
    os.execv(sudo, [sudo, *ask, "--", sys.executable, os.path.abspath(sys.argv[0]), *argv])


def _raise_limits() -> None:
    """slurmctld talks to all nodes at once; the daemons inherit our limit."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 65_536 if hard == resource.RLIM_INFINITY else min(hard, 65_536)
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
