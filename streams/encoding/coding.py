"""What an encoder is told, so that the pieces of a rendition join by copying: closed GOPs of one length, one decoder configuration.

Each piece is encoded by itself: the averages and buffers of VBR and CBR begin anew with it.
"""

import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import cast

from av.codec import CodecContext
from av.codec.codec import UnknownCodecError
from av.error import FFmpegError
from av.video.codeccontext import VideoCodecContext

from schemas.records import Rendition

log = logging.getLogger(__name__)

_SOFTWARE = {"h264": "libx264", "hevc": "libx265", "av1": "libsvtav1"}
_NVENC = {"h264": "h264_nvenc", "hevc": "hevc_nvenc", "av1": "av1_nvenc"}
_TAGS = {"h264": "avc1", "hevc": "hvc1", "av1": "av01"}
_BUFFER_S = 1.0
"""Of the decoder, at the peak rate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Coding:
    """An encoder, how it is opened, and the four letters that name the track."""

    encoder: str
    pixel_format: str
    options: Mapping[str, str]
    tag: str


def coding_of(rendition: Rendition) -> Coding:
    """The software encoder of the rendition; NVENC where it may be used and this machine has it.

    Stitchers with and without NVENC do not share a job: the pieces would not join, and the assembler says so.
    """
    hardware = rendition.nvenc and has_nvenc(_NVENC[rendition.codec])
    options = _nvenc(rendition) if hardware else _OPTIONS[rendition.codec](rendition)
    deep = "p010le" if hardware else "yuv420p10le"
    return Coding(
        encoder=_NVENC[rendition.codec] if hardware else _SOFTWARE[rendition.codec],
        pixel_format=deep if rendition.bits == 10 else "yuv420p",
        options={**options, **_rates(rendition)},
        tag=_TAGS[rendition.codec],
    )


@cache
def has_nvenc(encoder: str) -> bool:
    """Whether this machine can open that encoder: the driver, a card with the unit, and a session that is free."""
    try:
        context = cast(VideoCodecContext, CodecContext.create(encoder, "w"))
        context.width, context.height, context.pix_fmt = 256, 144, "yuv420p"
        context.framerate, context.time_base = Fraction(24), Fraction(1, 24)
        context.open()
    except (FFmpegError, UnknownCodecError) as error:
        log.info("no %s: %s", encoder, error)
        return False
    return True


def _rates(rendition: Rendition) -> dict[str, str]:
    """Options that all encoders share. In ffmpeg's words a CBR is a VBR whose peak is its mean."""
    mean, peak = rendition.bitrate_kbps, rendition.peak_kbps
    if rendition.rate_control == "cbr":
        peak = mean
    rates = {"b": f"{mean}k"} if mean else {}
    if peak:
        rates |= {"maxrate": f"{peak}k", "bufsize": f"{round(peak * _BUFFER_S)}k"}
    return rates


def _x264(rendition: Rendition) -> dict[str, str]:
    parts = [*_x26x_gop(rendition), "stitchable=1"]
    if rendition.rate_control == "cbr":
        parts.append("nal-hrd=cbr")
    return {**_x26x(rendition), "level": rendition.level, "x264-params": ":".join(parts)}


def _x265(rendition: Rendition) -> dict[str, str]:
    """Parameter sets once, in front, as hvc1 demands; one thread, so that the bytes do not depend on the machine."""
    parts = [*_x26x_gop(rendition), "repeat-headers=0", "info=0", "log-level=error", "pools=none", "frame-threads=1"]
    parts += ["wpp=0", f"level-idc={rendition.level}", "high-tier=0"]
    if rendition.rate_control == "cbr":
        parts += ["hrd=1", "strict-cbr=1"]
    return {**_x26x(rendition), "x265-params": ":".join(parts)}


def _x26x(rendition: Rendition) -> dict[str, str]:
    options = {"preset": rendition.speed, "profile": rendition.profile}
    return options | ({"crf": f"{rendition.crf:g}"} if rendition.crf else {})


def _x26x_gop(rendition: Rendition) -> list[str]:
    gop = rendition.gop_frames
    return [f"keyint={gop}", f"min-keyint={gop}", "scenecut=0", "open-gop=0", "bframes=2"]


def _svt_av1(rendition: Rendition) -> dict[str, str]:
    """Key frames that nothing refers across (`irefresh-type=2`). CBR only with frames in order: SVT-AV1 refuses it otherwise."""
    os.environ.setdefault("SVT_LOG", "1")  # errors only: it writes twenty lines to stderr for each file
    parts = [f"keyint={rendition.gop_frames}", "irefresh-type=2", "scd=0", "lp=1"]
    parts += [f"level={rendition.level.replace('.', '')}", f"tile-columns={rendition.tile_columns.bit_length() - 1}"]
    if rendition.rate_control == "cbr":
        parts.append("pred-struct=1")
    crf = {"crf": f"{rendition.crf:g}"} if rendition.crf else {}
    return {"preset": rendition.speed, **crf, "svtav1-params": ":".join(parts)}


def _nvenc(rendition: Rendition) -> dict[str, str]:
    """Not tested on a card yet. Its constant quality is a VBR without a mean."""
    options = {"preset": "p5", "g": str(rendition.gop_frames), "forced-idr": "1", "no-scenecut": "1", "strict_gop": "1"}
    options |= {"rc": "cbr" if rendition.rate_control == "cbr" else "vbr"}
    if rendition.codec != "av1":
        options |= {"profile": rendition.profile, "level": rendition.level, "bf": "2"}
    return options | ({"cq": f"{rendition.crf:g}", "b": "0"} if rendition.crf else {})


_OPTIONS = {"h264": _x264, "hevc": _x265, "av1": _svt_av1}
