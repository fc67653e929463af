"""The text of slurm.conf and its friends.  Pure: settings in, text out.

Why each setting is there stands beside it.  Any line can be replaced with --set KEY=VALUE.
"""

from dataclasses import dataclass

from .layout import Layout
from .state import Spec


@dataclass(frozen=True)
class Site:
    """What the machine decides: host name, ports, version of Slurm, password of the database."""

    host: str
    ports: dict[str, int]
    version: tuple[int, ...]
    password: str


Section = tuple[str, dict[str, str]]


def node_range(nodes: int) -> str:
    return f"n[1-{nodes}]" if nodes > 1 else "n1"


def slurm_conf(spec: Spec, layout: Layout, site: Site) -> str:
    """slurm.conf.  `spec.set` replaces keys, whatever their case, and adds new ones."""
    sections: list[Section] = [
        (
            "Who and where.  slurmctld and the nodes listen on 127.0.0.1 only.",
            {
                "ClusterName": spec.name,
                "SlurmctldHost": f"{site.host}(127.0.0.1)",
                "SlurmctldPort": str(site.ports["slurmctld"]),
                "SlurmUser": "root",
                "CommunicationParameters": "NoInAddrAny,NoCtldInAddrAny",
                "AuthType": "auth/munge",
                # A requeued job waits until its credential has expired, 120 s by default.
                "AuthInfo": f"socket={layout.munge_socket},cred_expire=5",
            },
        ),
        (
            "Files",
            {
                "StateSaveLocation": str(layout.save),
                "SlurmdSpoolDir": f"{layout.spool}/%n",
                "SlurmctldPidFile": f"{layout.run}/slurmctld.pid",
                "SlurmdPidFile": f"{layout.run}/slurmd-%n.pid",
                "SlurmctldLogFile": f"{layout.log}/slurmctld.log",
                "SlurmdLogFile": f"{layout.log}/slurmd-%n.log",
            },
        ),
        (
            "Nodes that do not exist: believe this file and not the hardware, track jobs without\n"
            "# cgroups, and do not carry a submitter's ulimits over.",
            {
                "SlurmdParameters": "config_overrides",
                "ProctrackType": "proctrack/linuxproc",
                "TaskPlugin": "task/none",
                "JobAcctGatherType": "jobacct_gather/none",
                "MpiDefault": "none",
                "MailProg": "/bin/true",
                "PropagateResourceLimits": "NONE",
                "ReturnToService": "2",
            },
        ),
        (
            "Accounting.  Without AccountingStorageTRES every GPU job would cost 0; without\n"
            "# job_comment a job's comment would be lost when it ends.",
            {
                "AccountingStorageType": "accounting_storage/slurmdbd",
                "AccountingStorageHost": "127.0.0.1",
                # With munge, this is not a password but the socket towards slurmdbd.
                "AccountingStoragePass": str(layout.munge_socket),
                "AccountingStoragePort": str(site.ports["slurmdbd"]),
                "AccountingStorageTRES": "gres/gpu",
                "AccountingStorageEnforce": "associations,limits,qos",
                "AccountingStoreFlags": "job_comment",
            },
        ),
        (
            "Priority: Fair Tree, which is the default (--set PriorityFlags=NO_FAIR_TREE ends it)",
            {
                "PriorityType": "priority/multifactor",
                "PriorityWeightQOS": "1000000",
                "PriorityWeightFairshare": "100000",
                "PriorityWeightAge": "1000",
                "PriorityDecayHalfLife": "7-0",
                "PriorityCalcPeriod": "1",
            },
        ),
        (
            "Preemption",
            {
                "PreemptType": "preempt/qos",
                "PreemptMode": "REQUEUE",
                "JobRequeue": "1",
                # A job that asked for --signal gets it when it is preempted, too.
                "SlurmctldParameters": "preempt_send_user_signal",
            },
        ),
        (
            "Scheduling.  The parameters let a job start 1 to 3 s after its submission.",
            {
                "SelectType": "select/cons_tres",
                "SelectTypeParameters": "CR_Core",
                "SchedulerType": "sched/backfill",
                "SchedulerParameters": "bf_interval=5,sched_interval=5,batch_sched_delay=0,"
                "bf_continue,bf_window=10080,bf_resolution=300,default_queue_depth=1000",
                "MaxJobCount": "100000",
            },
        ),
        (
            "Times: short where a test waits, long where two cores serve 128 nodes",
            {
                "KillWait": "5",
                "InactiveLimit": "0",
                "MinJobAge": "300",
                "MessageTimeout": "30",
                "BatchStartTimeout": "60",
                "SlurmctldTimeout": "60",
                "SlurmdTimeout": "60",
            },
        ),
    ]
    if spec.files.get("job_submit.lua"):
        sections.append(("The hook", {"JobSubmitPlugins": "lua"}))
    if spec.gpus:
        sections.append(("GPUs", {"GresTypes": "gpu"}))

    gres = f" Gres={gres_name(spec)}:{spec.gpus}" if spec.gpus else ""
    shape = f"Sockets=2 CoresPerSocket={spec.cpus // 2} ThreadsPerCore=1 "
    first = site.ports["slurmd"]
    last = first + spec.nodes - 1
    lines = [
        f"NodeName={node_range(spec.nodes)} NodeHostname={site.host} NodeAddr=127.0.0.1 "
        f"Port={f'[{first}-{last}]' if spec.nodes > 1 else first} CPUs={spec.cpus} "
        f"{shape if spec.cpus % 2 == 0 else ''}RealMemory=1000000{gres} State=UNKNOWN",
        f"PartitionName=gpu Nodes={node_range(spec.nodes)} Default=YES MaxTime=7-0 State=UP "
        'TRESBillingWeights="CPU=0,GRES/gpu=1"',
    ]
    return render(sections, lines, spec.set)


def slurmdbd_conf(spec: Spec, layout: Layout, site: Site) -> str:
    """slurmdbd.conf.  It holds the password, and slurmdbd wants it readable by its user only."""
    own: Section = (
        "Accounting in a MariaDB of our own",
        {
            "AuthType": "auth/munge",
            "AuthInfo": f"socket={layout.munge_socket}",
            "DbdHost": "localhost",
            "DbdAddr": "127.0.0.1",
            "DbdPort": str(site.ports["slurmdbd"]),
            "SlurmUser": "root",
            "PidFile": f"{layout.run}/slurmdbd.pid",
            "LogFile": f"{layout.log}/slurmdbd.log",
            "StorageType": "accounting_storage/mysql",
            "StorageHost": "127.0.0.1",
            "StoragePort": str(site.ports["mariadb"]),
            "StorageLoc": "slurm_acct_db",
            "StorageUser": "slurm",
            "StoragePass": site.password,
        },
    )
    return render([own], [], spec.set_dbd)


def gres_name(spec: Spec) -> str:
    return f"gpu:{spec.type}" if spec.type else "gpu"


def gres_conf(spec: Spec, layout: Layout) -> str:
    """gres.conf.  `File=` must name files that exist: a `Count=` alone drains the node."""
    kind = f"Type={spec.type} " if spec.type else ""
    files = f"gpu[0-{spec.gpus - 1}]" if spec.gpus > 1 else "gpu0"
    return (
        "# All nodes share the same files; nothing opens them.\nAutoDetect=off\n"
        f"NodeName={node_range(spec.nodes)} Name=gpu {kind}File={layout.dev}/{files}\n"
    )


def cgroup_conf(version: tuple[int, ...]) -> str | None:
    """cgroup.conf, or None where this Slurm does not know `disabled` (it came with 24.05)."""
    return "CgroupPlugin=disabled\n" if version >= (24, 5) else None


def render(sections: list[Section], lines: list[str], overrides: list[str]) -> str:
    """Put it together.

    KEY=VALUE replaces that key.  NodeName= and PartitionName= may stand many times: such a line
    replaces ours of the same name (`PartitionName=gpu ...`), else it is added.
    """
    changed: dict[str, str] = {}
    for override in overrides:
        key, _, value = override.partition("=")
        if key.lower() in ("nodename", "partitionname"):
            name = override.split()[0].lower()
            lines = [line for line in lines if line.split()[0].lower() != name]
            lines.append(override)
        else:
            changed[key] = value
    replaced = {key.lower() for key in changed}
    for _, settings in sections:
        for key in [key for key in settings if key.lower() in replaced]:
            del settings[key]
    text = "# Written by scripts/cluster; `up` writes it once, `down` removes it.\n"
    for title, settings in [*sections, ("From --set", changed)]:
        if settings:
            text += f"\n# {title}\n" + "".join(f"{k}={v}\n" for k, v in settings.items())
    return text + ("\n" + "\n".join(lines) + "\n" if lines else "")
