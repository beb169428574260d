"""HDR messages of HEVC: SEI payloads 137 and 144 (ITU-T H.265, D.2.28 and D.2.35), from packets and from hvcC."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass

_PREFIX_SEI = 39
_MASTERING, _LIGHT = 137, 144
_HVCC_ARRAYS = 22
"""ISO 14496-15, 8.3.3.1: bytes before the number of arrays."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mastering:
    """Luminance of the mastering display, in 0.0001 cd/m2."""

    most: int
    least: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Light:
    """Content light level, in cd/m2."""

    max_cll: int
    max_fall: int


def hdr_messages(units: Iterator[bytes]) -> tuple[Mastering | None, Light | None]:
    """The last of each in these NAL units."""
    mastering, light = None, None
    for unit in units:
        if len(unit) < 3 or unit[0] >> 1 & 0x3F != _PREFIX_SEI:
            continue
        for kind, payload in _payloads(unit[2:].replace(b"\0\0\3", b"\0\0")):
            if kind == _MASTERING and len(payload) >= 24:
                mastering = Mastering(
                    **dict(zip(("most", "least"), struct.unpack_from(">II", payload, 16), strict=True))
                )
            if kind == _LIGHT and len(payload) >= 4:
                light = Light(**dict(zip(("max_cll", "max_fall"), struct.unpack_from(">HH", payload), strict=True)))
    return mastering, light


def packet_units(data: bytes, size_bytes: int) -> Iterator[bytes]:
    """Whole NAL units of a packet, up to where it is broken."""
    at = 0
    while at + size_bytes < len(data):
        size = int.from_bytes(data[at : at + size_bytes], "big")
        yield data[at + size_bytes : at + size_bytes + size]
        at += size_bytes + max(size, 1)


def config_units(config: bytes) -> Iterator[bytes]:
    """NAL units of an hvcC."""
    at = _HVCC_ARRAYS + 1
    for _ in range(config[_HVCC_ARRAYS] if len(config) > _HVCC_ARRAYS else 0):
        count, at = int.from_bytes(config[at + 1 : at + 3], "big"), at + 3
        for _ in range(count):
            size = int.from_bytes(config[at : at + 2], "big")
            yield config[at + 2 : at + 2 + size]
            at += 2 + size


def _payloads(message: bytes) -> Iterator[tuple[int, bytes]]:
    """Type and payload: both numbers are runs of 255 and a rest (7.3.5)."""
    at = 0
    while at + 1 < len(message) and message[at] != 0x80:
        numbers: list[int] = []
        for _ in range(2):
            number = 0
            while at < len(message) and message[at] == 255:
                number, at = number + 255, at + 1
            if at < len(message):
                number, at = number + message[at], at + 1
            numbers.append(number)
        kind, size = numbers
        yield kind, message[at : at + size]
        at += size
