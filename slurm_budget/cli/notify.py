"""sd_notify(3): telling systemd how the service is, by one datagram on $NOTIFY_SOCKET."""

import os
import socket
from contextlib import suppress


def notify(*words: str) -> None:
    """Send `NAME=value` words; nothing where systemd does not listen. Never fails."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    if address.startswith("@"):
        address = "\0" + address[1:]
    text = "\n".join(word.replace("\n", " ") for word in words)
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as link:
        link.sendto(text.encode(), address)
