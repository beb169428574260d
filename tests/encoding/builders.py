"""Renditions with defaults."""

from typing import Any

from schemas.records import Rendition, VideoFormat

HD = VideoFormat(width=1280, height=720, fps_num=24, fps_den=1)


def rendition(**fields: Any) -> Rendition:
    defaults: dict[str, Any] = {
        "name": "phone",
        "codec": "h264",
        "bits": 8,
        "profile": "main",
        "level": "3.1",
        "width": 192,
        "height": 108,
        "rate_control": "crf",
        "crf": 26.0,
        "bitrate_kbps": 0,
        "peak_kbps": 0,
        "speed": "veryfast",
        "gop_frames": 24,
        "tile_columns": 1,
        "nvenc": False,
    }
    return Rendition(**(defaults | fields))


HEVC = rendition(name="hevc", codec="hevc", bits=10, profile="main10", speed="ultrafast", crf=28.0)
AV1 = rendition(name="av1", codec="av1", speed="11", crf=40.0)
H264 = rendition()
