"""Which Kafka a broker is. No client call tells, but its highest `metadata.version` does (ApiVersions, KIP-584)."""

import contextlib
import socket
import ssl
import struct

_API_VERSIONS, _VERSION = 18, 4
_CLIENT = b"doctor"
_FEATURE = b"\x11metadata.version"  # a compact string: its length plus one, then its bytes
_FIRST_LEVELS = {"4.0": 22, "4.1": 26, "4.2": 28, "4.3": 30, "4.4": 31, "4.5": 34}
"""The first level of each release: org.apache.kafka.server.common.MetadataVersion."""


def kafka_release(bootstrap: str, tls: ssl.SSLContext | None = None, timeout_s: float = 5.0) -> str:
    """`4.2`, `older than 4.0` or `4.5 or newer`. A broker says so before it asks for a password.

    Raises: OSError if it cannot be asked; ValueError if it does not say.
    """
    host, _, port = bootstrap.split(",", 1)[0].rpartition(":")
    host = host.strip("[]")
    with contextlib.ExitStack() as stack:
        connection = stack.enter_context(socket.create_connection((host, int(port)), timeout=timeout_s))
        if tls:
            connection = stack.enter_context(tls.wrap_socket(connection, server_hostname=host))
        connection.sendall(_request())
        with connection.makefile("rb") as answer:
            (size,) = struct.unpack(">i", answer.read(4))
            return release_of(answer.read(size))


def release_of(response: bytes) -> str:
    """Read an ApiVersions response: supported features come first in it. Raises: ValueError."""
    at = response.find(_FEATURE)
    if at < 0:
        raise ValueError("the broker names no metadata.version")
    _, level = struct.unpack_from(">hh", response, at + len(_FEATURE))
    releases = [release for release, first in _FIRST_LEVELS.items() if level >= first]
    newest = max(_FIRST_LEVELS, key=_FIRST_LEVELS.__getitem__)
    if not releases:
        return "older than 4.0"
    return f"{newest} or newer" if releases[-1] == newest else releases[-1]


def _request() -> bytes:
    head = struct.pack(">hhih", _API_VERSIONS, _VERSION, 1, len(_CLIENT)) + _CLIENT + b"\0"
    name, version = (bytes([len(text) + 1]) + text for text in (b"longtake", b"1"))
    request = head + name + version + b"\0"
    return struct.pack(">i", len(request)) + request
