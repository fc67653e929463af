"""What systemd is told, on a real datagram socket."""

import socket
from pathlib import Path

import pytest

from slurm_budget.cli.notify import notify


@pytest.mark.parametrize("abstract", [False, True], ids=["a path", "abstract"])
def test_words_arrive_in_one_datagram(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, abstract: bool
) -> None:
    name = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind("\0" + name if abstract else name)
        systemd.settimeout(5)
        monkeypatch.setenv("NOTIFY_SOCKET", "@" + name if abstract else name)
        notify("READY=1", "STATUS=swept: two\nlines")
        assert systemd.recv(4096) == b"READY=1\nSTATUS=swept: two lines"


def test_where_systemd_does_not_listen_nothing_happens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notify("READY=1")
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "nobody"))
    notify("READY=1")
    assert list(tmp_path.iterdir()) == []
