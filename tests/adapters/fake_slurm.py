"""Slurm's commands as small scripts that write down how they were called and say what they are told
to: for sweeps against situations that a real Slurm shows once a year."""

from dataclasses import dataclass
from pathlib import Path

from slurm_budget.slurm.command import Commands

SCRIPTS = {
    "squeue": """\
case "$*" in
    *"%A %x") cat excluded;;
    *) cat jobs;;
esac""",
    "sacct": "cat runs",
    "sacctmgr": """\
case "$*" in
    *"show qos"*) cat qos;;
    *) cat assoc;;
esac""",
    "scancel": "true",
    "scontrol": """\
case "$*" in
    "show config") cat config;;
    *"show node") cat nodes;;
    *"show partition") cat partitions;;
    "requeue Incomplete"*) if [ -s refusal ]; then cat refusal >&2; exit 1; fi;;
esac""",
}
CONFIG = "ClusterName = main\nAccountingStorageTRES = cpu,gres/gpu\nTopologyPlugin = none\n"
NODE = (
    "NodeName=n1 CPUAlloc=8 CPUTot=64 Gres=gpu:h100:8 State=ALLOCATED Partitions=gpu "
    "AllocTRES=gres/gpu=8\n"
)


QOS = "preemptible|0|00:01:00||00:20:00|requeue||0.1||\n"


@dataclass
class FakeSlurm:
    """`folder` holds the scripts, and what they answer: config, nodes, partitions, jobs,
    excluded, runs, assoc, qos, refusal (what a requeue is refused with)."""

    folder: Path

    def __post_init__(self) -> None:
        for name, body in SCRIPTS.items():
            self.script(name, body)
        self.says("config", CONFIG)
        self.says("nodes", NODE)
        self.says("excluded", "")
        self.says("assoc", "root|\nvision|root\nlanguage|root\n")
        self.says("qos", QOS)
        self.says("partitions", "PartitionName=gpu QoS=N/A DefaultTime=NONE\n")
        self.says("refusal", "")

    def script(self, name: str, body: str) -> None:
        path = self.folder / name
        path.write_text(f'#!/bin/sh\ncd "{self.folder}"\necho "{name} $*" >> calls\n{body}\n')
        path.chmod(0o755)

    def says(self, what: str, text: str) -> None:
        (self.folder / what).write_text(text)

    def commands(self, timeout: float = 60) -> Commands:
        return Commands(bin=self.folder, timeout=timeout)

    def deeds(self) -> list[str]:
        """Everything that was called and that changes something."""
        calls = (self.folder / "calls").read_text().splitlines()
        return [
            call
            for call in calls
            if call.startswith(("scancel", "scontrol requeue", "scontrol update"))
        ]
