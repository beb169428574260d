"""H.264, HEVC and AV1 in MP4: the codec string of a decoder configuration, and whether a decoder can begin at a packet."""

from collections.abc import Iterator

_HEADER_BYTES = {"h264": 7, "hevc": 23, "av1": 4}
"""Of the decoder configuration, at least."""
_IDR = {"h264": {5}, "hevc": {19, 20}}
_OBU_FRAMES = {3, 6}
"""Frame header, frame: AV1, 6.2.2."""


def is_config(codec: str, config: bytes) -> bool:
    """Whether it is an avcC, hvcC or av1C (ISO/IEC 14496-15, 5.3.3.1 and 8.3.3.1; AV1 in ISO-BMFF, 2.3.3)."""
    begins = 0x81 if codec == "av1" else 1
    return codec in _HEADER_BYTES and len(config) >= _HEADER_BYTES[codec] and config[0] == begins


def codec_string(codec: str, config: bytes) -> str:
    """As in RFC 6381: what a player is asked whether it can play it. `avc1.64001f`, `hvc1.2.4.L93.b0`, `av01.0.05M.10`."""
    if codec == "h264":
        return f"avc1.{config[1:4].hex()}"
    if codec == "hevc":
        return _hevc_string(config)
    level, bits = config[1] & 31, 10 if config[2] & 0x40 else 8
    return f"av01.{config[1] >> 5}.{level:02}{'H' if config[2] & 0x80 else 'M'}.{bits:02}"


def begins_here(codec: str, config: bytes, packet: bytes) -> bool:
    """Whether nothing from here on refers to anything before: an IDR picture, or an AV1 key frame that is shown.

    A keyframe flag may also stand on an open GOP's I-frame, before which frames are lost.
    """
    if codec == "av1":
        return _is_key_frame(packet)
    length_bytes = (config[4 if codec == "h264" else 21] & 3) + 1
    at = 0
    while at + length_bytes < len(packet):
        header = packet[at + length_bytes]
        if (header & 31 if codec == "h264" else (header >> 1) & 63) in _IDR[codec]:
            return True
        at += length_bytes + int.from_bytes(packet[at : at + length_bytes])
    return False


def _hevc_string(config: bytes) -> str:
    """ISO/IEC 14496-15, annex E.3."""
    space = ("", "A", "B", "C")[config[1] >> 6]
    compatible = int(f"{int.from_bytes(config[2:6]):032b}"[::-1], 2)
    tier = "H" if config[1] & 32 else "L"
    constraints = config[6:12].rstrip(b"\0")
    parts = [
        f"hvc1.{space}{config[1] & 31}",
        f"{compatible:x}",
        f"{tier}{config[12]}",
        *(f"{c:x}" for c in constraints),
    ]
    return ".".join(parts)


def _is_key_frame(packet: bytes) -> bool:
    """Of the first frame: show_existing_frame 0, frame_type KEY_FRAME, show_frame 1 (AV1, 5.9.2)."""
    first = next((payload[0] for kind, payload in _obus(packet) if kind in _OBU_FRAMES and payload), 0xFF)
    return first >> 4 == 1


def _obus(packet: bytes) -> Iterator[tuple[int, bytes]]:
    """Type and payload of each open bitstream unit: AV1, 5.3. Without a size it is the last."""
    at = 0
    while at < len(packet):
        header = packet[at]
        at += 2 if header & 4 else 1
        size, shift = len(packet) - at, 0
        if header & 2:
            size = 0
            while at < len(packet):
                byte = packet[at]
                at, size, shift = at + 1, size | (byte & 127) << shift, shift + 7
                if byte < 128:
                    break
        yield (header >> 3) & 15, packet[at : at + size]
        at += size
