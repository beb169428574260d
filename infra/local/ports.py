"""Loopback ports of the local services: free when chosen, and the same again on every start of the same folder."""

import contextlib
import json
import random
import socket
from pathlib import Path

LOOPBACK = "127.0.0.1"


def stable_pair(file: Path) -> tuple[int, int]:
    """The two ports written in `file` if both are free, else new ones, which are written there."""
    first, second = stable_ports(file, 2)
    return first, second


def stable_ports(file: Path, count: int) -> tuple[int, ...]:
    """The same for any number of ports."""
    ports: list[int] = json.loads(file.read_text()) if file.exists() else []
    if len(ports) != count or not all(port_is_free(port) for port in ports):
        ports = [free_port() for _ in range(count)]
        file.write_text(json.dumps(ports))
    return tuple(ports)


def free_port() -> int:
    """A loopback port that nobody has.

    It lies below the ports that the kernel gives to outgoing connections: with those, a client that reconnects to a
    service that is down can connect to itself, and the service then finds its port taken.
    """
    low = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    while True:
        port = random.randrange(10_000, low)  # noqa: S311
        if port_is_free(port):
            return port


def port_is_free(port: int) -> bool:
    """Whether a service can listen on it now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with contextlib.suppress(OSError):
            probe.bind((LOOPBACK, port))
            return True
    return False


def answers(port: int) -> bool:
    """Whether somebody accepts connections on it."""
    with contextlib.suppress(OSError), socket.create_connection((LOOPBACK, port), timeout=1):
        return True
    return False
