"""Associations and QOS by sacctmgr: reading. Writing is in sacctmgr_steps and sacctmgr_apply.

Formats are named, never Slurm's default; names are stripped (the tree form indents them) and rows
that are not whole are an error, since half an answer must not be read as a small cluster.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from slurm_budget.core.fairshare import PARENT
from slurm_budget.errors import BadInput, SlurmUnreachable
from slurm_budget.slurm import nodes
from slurm_budget.slurm.command import Commands, checked
from slurm_budget.state.slurm import AccountInfo, Association, AssocKey, Fairshare, Qos
from slurm_budget.text import durations, tres

OWN = "account,user,partition,parentname,fairshare,qos,defaultqos,grptres,maxtres"
IN_FORCE = "account,user,partition,qos,defaultqos"
_DEEPEST = 200
_SHOW = ("sacctmgr", "-nP", "show", "assoc")
QOS = (
    "name,priority,gracetime,preempt,preemptexempttime,preemptmode,flags,usagefactor,"
    "grptres,grptresmins"
)


def table(text: str, columns: int, where: str) -> Iterator[list[str]]:
    """Rows of `-P` output, values stripped. Raises SlurmUnreachable for a row of other width."""
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        row = [value.strip() for value in line.split("|")]
        if len(row) != columns:
            raise SlurmUnreachable(
                f"line {number} has {len(row)} values instead of {columns}: {line[:80]!r}",
                where=where,
                mend="the answer was cut off or is of a Slurm that is not known; run it again",
            )
        yield row


@lru_cache(maxsize=4096)
def names(text: str) -> frozenset[str]:
    return frozenset(name.strip() for name in text.split(",") if name.strip())


@lru_cache(maxsize=4096)
def _limit(text: str) -> str:
    return tres.canonical(text)


def fairshare(text: str) -> Fairshare:
    """`parent` in both spellings; unset is Slurm's default of 1."""
    if text == "parent" or text == str(PARENT):
        return "parent"
    return int(text) if text.isdigit() else 1


def associations(cluster: str, text: str) -> dict[AssocKey, Association]:
    """Rows with what each says itself (`WOPLimits`). What is in force is taken from the accounts
    above, as if no list were relative: see `in_force`."""
    own: dict[AssocKey, Association] = {}
    for row in table(text, 9, "sacctmgr show assoc"):
        account, user, partition, parent, share, listed, default, grp, most = row
        own[account, user, partition] = Association(
            cluster=cluster,
            account=account,
            user=user,
            partition=partition,
            parent=parent,
            fairshare=fairshare(share),
            grp_tres=_limit(grp),
            max_tres=_limit(most),
            own_qos=names(listed),
            own_default_qos=default,
        )
    return _inherit(own)


def _inherit(own: Mapping[AssocKey, Association]) -> dict[AssocKey, Association]:
    done: dict[AssocKey, Association] = {}

    def settle(key: AssocKey, depth: int = 0) -> Association:
        if key in done:
            return done[key]
        row = own[key]
        above = (row.account if row.user else row.parent, "", "")
        parent = settle(above, depth + 1) if above in own and depth < _DEEPEST else None
        done[key] = replace(
            row,
            qos=row.own_qos or (parent.qos if parent else frozenset()),
            default_qos=row.own_default_qos or (parent.default_qos if parent else ""),
            max_tres=row.max_tres or (parent.max_tres if parent else ""),
        )
        return done[key]

    return {key: settle(key) for key in own}


def in_force(rows: Mapping[AssocKey, Association], text: str) -> dict[AssocKey, Association]:
    """The same rows with the lists and defaults that Slurm says are in force. A list that somebody
    made with `qos+=` is relative: it shows as what was added, and only this tells it apart."""
    out = dict(rows)
    for account, user, partition, listed, default in table(text, 5, "sacctmgr show assoc"):
        row = out.get((account, user, partition))
        if row is not None:
            out[row.key] = replace(row, qos=names(listed), default_qos=default)
    return out


def qos(text: str, where: str = "sacctmgr show qos") -> dict[str, Qos]:
    """QOS by name."""
    out = {}
    for row in table(text, 10, where):
        name, priority, grace, preempt, exempt, mode, flags, factor, grp, mins = row
        out[name] = Qos(
            name=name,
            priority=int(priority) if priority.isdigit() else 0,
            preempt=names(preempt),
            preempt_mode=mode.lower() or "cluster",
            preempt_exempt_time=_seconds(exempt) if exempt else None,
            grace_time=_seconds(grace),
            usage_factor=float(factor) if factor else 1.0,
            grp_tres=tres.canonical(grp),
            grp_tres_mins=tres.canonical(mins),
            flags=names(flags),
        )
    return out


def _seconds(text: str) -> int:
    return int(durations.elapsed(text))


def read_own(commands: Commands, cluster: str) -> str:
    """All associations of a cluster with what each says itself. Raises SlurmUnreachable where there
    is none. Slurm needs half as long for these as for what is in force."""
    reply = commands.run(*_SHOW, "where", f"cluster={cluster}", "WOPLimits", f"format={OWN}")
    return checked(reply, silent_ok=False)


def read_in_force(commands: Commands, cluster: str) -> str:
    """The lists and defaults of all associations with what they inherit."""
    reply = commands.run(*_SHOW, "where", f"cluster={cluster}", f"format={IN_FORCE}")
    return checked(reply, silent_ok=False)


def check_cluster(cluster: str, known: list[str]) -> list[str]:
    """`known`, or BadInput where slurmdbd does not know the cluster: asked for its associations it
    shows none, and told to load some it would create it."""
    if cluster not in known:
        raise BadInput(
            f"slurmdbd knows no cluster {cluster!r}, only {', '.join(known)}",
            where="sacctmgr show cluster",
            mend="correct slurm.cluster in slurm-budget.toml, or register it"
            " (`sacctmgr add cluster`)",
        )
    return known


def read_clusters(commands: Commands) -> list[str]:
    """Names of all clusters of this slurmdbd."""
    reply = commands.run("sacctmgr", "-nP", "show", "cluster", "format=cluster")
    return [row[0] for row in table(checked(reply, silent_ok=False), 1, "sacctmgr show cluster")]


def account_info(text: str) -> dict[str, AccountInfo]:
    """Description and coordinators by account. The description is free text and may hold a `|`."""
    out = {}
    for line in text.splitlines():
        account, _, rest = line.partition("|")
        description, _, coordinators = rest.rpartition("|")
        if account.strip():
            listed = tuple(sorted(names(coordinators)))
            out[account.strip()] = AccountInfo(description.strip(), listed)
    return out


def read_account_info(commands: Commands) -> dict[str, AccountInfo]:
    reply = commands.run(
        "sacctmgr", "-nP", "show", "account", "withcoord", "format=account,descr,coordinators"
    )
    return account_info(checked(reply))


def read_qos(commands: Commands) -> dict[str, Qos]:
    """Every QOS that slurmdbd knows; there is always `normal`."""
    reply = commands.run("sacctmgr", "-nP", "show", "qos", f"format={QOS}")
    return qos(checked(reply, silent_ok=False))


def read_tres(commands: Commands) -> frozenset[str]:
    """Names of the TRES that slurmdbd accounts, such as `gres/gpu:h100`."""
    text = checked(
        commands.run("sacctmgr", "-nP", "show", "tres", "format=type,name"), silent_ok=False
    )
    rows = table(text, 2, "sacctmgr show tres")
    return frozenset(kind + (f"/{name}" if name else "") for kind, name in rows)


def node_gpus(commands: Commands) -> dict[str, int]:
    """GPUs of the largest node by type; the empty string: of any type."""
    out = {"": 0}
    for node in nodes.nodes(commands):
        out[""] = max(out[""], node.gpu_total)
        for kind, count in node.gpus.items():
            out[kind] = max(out.get(kind, 0), count)
    return out


def used_elsewhere(
    commands: Commands, others: Sequence[str], qos_names: Sequence[str]
) -> Mapping[str, tuple[str, ...]]:
    """Which of the other clusters of this slurmdbd have accounts that may use one of these QOS."""
    if not others or not qos_names:
        return {}
    text = checked(
        commands.run(*_SHOW, "where", f"cluster={','.join(others)}", "user=", "format=cluster,qos")
    )
    found: dict[str, set[str]] = {}
    wanted = set(qos_names)
    for other, listed in table(text, 2, "sacctmgr show assoc"):
        for name in names(listed) & wanted:
            found.setdefault(name, set()).add(other)
    return {name: tuple(sorted(where)) for name, where in found.items()}
