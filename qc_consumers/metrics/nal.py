"""NAL units of H.264 and HEVC: what a coded frame is, without decoding it."""

from collections.abc import Iterator
from dataclasses import dataclass

_SLICES = {"h264": range(1, 6), "hevc": range(32)}
_IDR = {"h264": (5,), "hevc": (19, 20)}
_KINDS = {"h264": "PBIPI", "hevc": "BPI"}
"""By slice_type: ITU-T H.264, table 7-6 (SP and SI count as P and I; 5 to 9 say that all slices are alike); H.265, table 7-7."""
_HEADER_BYTES = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessUnit:
    """One coded frame as its NAL units describe it."""

    idr: bool
    kind: str
    """`I`, `P` or `B`, of the first slice; empty if there is none."""
    broken: bool
    """The units do not fill the packet exactly."""


def length_bytes(codec: str, config: bytes) -> int:
    """Size of the length before each unit, from avcC (ISO 14496-15, 5.3.3.1) or hvcC (8.3.3.1); 0: no such units."""
    if codec == "h264" and len(config) > 4 and config[0] == 1:
        return (config[4] & 3) + 1
    if codec == "hevc" and len(config) > 21 and config[0] == 1:
        return (config[21] & 3) + 1
    return 0


def read_access_unit(data: bytes, codec: str, size_bytes: int) -> AccessUnit:
    """What a packet holds. `size_bytes` as from `length_bytes`."""
    slices: list[bytes] = []
    broken = False
    for unit in _units(data, size_bytes):
        broken = broken or unit is None
        if unit and _type(unit, codec) in _SLICES[codec]:
            slices.append(unit)
    idr = bool(slices) and all(_type(unit, codec) in _IDR[codec] for unit in slices)
    return AccessUnit(idr=idr, kind=_kind(slices[0], codec) if slices else "", broken=broken)


def _units(data: bytes, size_bytes: int) -> Iterator[bytes | None]:
    """The beginning of each unit; None where a length runs past the packet."""
    at = 0
    while at < len(data):
        size = int.from_bytes(data[at : at + size_bytes], "big")
        at += size_bytes
        if size == 0 or at + size > len(data):
            yield None
            return
        yield data[at : at + min(size, _HEADER_BYTES)]
        at += size


def _type(unit: bytes, codec: str) -> int:
    return unit[0] & 0x1F if codec == "h264" else (unit[0] >> 1) & 0x3F


def _kind(unit: bytes, codec: str) -> str:
    """From the slice header: H.264, 7.3.3: first_mb_in_slice, slice_type. H.265, 7.3.6.1, of the first slice of a picture."""
    bits = _Bits(unit[1:] if codec == "h264" else unit[2:])
    if codec == "h264":
        bits.unsigned()
        kind = bits.unsigned() % 5
    else:
        if not bits.take(1):
            return ""
        if 16 <= _type(unit, codec) <= 23:
            bits.take(1)
        bits.unsigned()  # slice_pic_parameter_set_id; x265 and SVT write no extra bits after it
        kind = bits.unsigned()
    return _KINDS[codec][kind] if kind < len(_KINDS[codec]) else ""


class _Bits:
    """Reads a bit string from its most significant end; zeros follow its end."""

    def __init__(self, data: bytes) -> None:
        self._bits = "".join(f"{byte:08b}" for byte in data) + "0" * 32 + "1" * 33
        self._at = 0

    def take(self, count: int) -> int:
        self._at += count
        return int(self._bits[self._at - count : self._at], 2)

    def unsigned(self) -> int:
        """ue(v): Exp-Golomb, H.264, 9.1."""
        zeros = self._bits.index("1", self._at) - self._at
        self._at += zeros
        return self.take(zeros + 1) - 1
