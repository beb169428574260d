"""HDR10: what a stream and its container must say, and whether the numbers can be true.

Source: ITU-T H.265 annex D (SEI 137 and 144), CTA-861.3, SMPTE ST 2086. Numbers in the stream are in units of 0.0001 cd/m2.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from qc_consumers.metrics.packets import PacketScan

PQ = 16
_BT2020, _BT2020_NCL, _LIMITED = 9, 9, 1


@dataclass(frozen=True, slots=True, kw_only=True)
class HdrFault:
    """Something that is missing or cannot be."""

    gate: str
    frame: int
    detail: str


def hdr_faults(scan: PacketScan, wanted: int | None) -> Iterator[HdrFault]:
    """What a video lacks that says it is HDR10, or has to be. `wanted`: the transfer characteristic of its profile."""
    primaries, transfer, matrix, color_range = scan.color
    if PQ not in (transfer, wanted):
        return
    rules = {
        f"transfer is {transfer}, not {PQ}": transfer == PQ,
        f"colour primaries are {primaries}, not {_BT2020}": primaries == _BT2020,
        f"colour matrix is {matrix}, not {_BT2020_NCL}": matrix == _BT2020_NCL,
        "the range is not limited": color_range == _LIMITED,
        f"{scan.pixel_format} has less than 10 bits": "10" in scan.pixel_format or "12" in scan.pixel_format,
        "no colr box": "colr" in scan.color_boxes,
    }
    for words, holds in rules.items():
        if not holds:
            yield HdrFault(gate="hdr10", frame=-1, detail=words)
    for box in ("mdcv", "clli"):
        if box not in scan.color_boxes:
            yield HdrFault(gate="hdr10_boxes", frame=-1, detail=f"no {box} box")
    yield from _metadata(scan)


def _metadata(scan: PacketScan) -> Iterator[HdrFault]:
    for frame, packet in enumerate(scan.presented()):
        if not packet.idr:
            continue
        mastering, light = packet.mastering or scan.config_mastering, packet.light or scan.config_light
        if mastering is None:
            yield HdrFault(gate="hdr10", frame=frame, detail="a GOP without mastering display metadata")
        elif mastering.most <= mastering.least:
            yield HdrFault(gate="hdr10", frame=frame, detail="the mastering display is no brighter than it is dark")
        if light is None or not light.max_cll:  # 0: not known (CTA-861.3), which encoders write by themselves
            yield HdrFault(gate="hdr10", frame=frame, detail="a GOP without content light level")
        elif light.max_fall > light.max_cll:
            yield HdrFault(gate="hdr10", frame=frame, detail=f"MaxFALL {light.max_fall} above MaxCLL {light.max_cll}")
