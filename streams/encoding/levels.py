"""What a codec's levels allow, and which cells of codec, rate control and size cannot work: pure functions with the reason as text.

Sources: ITU-T H.264, table A-1; ITU-T H.265, tables A.8 and A.9 (Main tier); AV1 specification, annex A.3 (Main tier).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

from schemas.records import Rendition

_MIN_SIDE = 64
"""SVT-AV1 takes nothing smaller, and x265 needs a whole coding tree unit."""
_TILE_PX = (256, 4096)
"""Width of an AV1 tile: the most is of the specification (5.9.15); of less than the least nobody gains."""
_MACROBLOCK = 16
_HIGH_BITS = 1.25
"""High profile of H.264 may have that many times the bits: table A-2."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """Samples of a picture, samples a second, and kbit/s at most."""

    picture: int
    per_second: int
    kbps: int


def _level(picture: int, per_second: int, kbps: int) -> Level:
    return Level(picture=picture, per_second=per_second, kbps=kbps)


LEVELS: Mapping[str, Mapping[str, Level]] = {
    "h264": {  # in macroblocks
        "2.1": _level(792, 19_800, 4_000),
        "3.0": _level(1_620, 40_500, 10_000),
        "3.1": _level(3_600, 108_000, 14_000),
        "3.2": _level(5_120, 216_000, 20_000),
        "4.0": _level(8_192, 245_760, 20_000),
        "4.1": _level(8_192, 245_760, 50_000),
        "4.2": _level(8_704, 522_240, 50_000),
        "5.0": _level(22_080, 589_824, 135_000),
        "5.1": _level(36_864, 983_040, 240_000),
        "5.2": _level(36_864, 2_073_600, 240_000),
    },
    "hevc": {
        "2.1": _level(245_760, 7_372_800, 3_000),
        "3.0": _level(552_960, 16_588_800, 6_000),
        "3.1": _level(983_040, 33_177_600, 10_000),
        "4.0": _level(2_228_224, 66_846_720, 12_000),
        "4.1": _level(2_228_224, 133_693_440, 20_000),
        "5.0": _level(8_912_896, 267_386_880, 25_000),
        "5.1": _level(8_912_896, 534_773_760, 40_000),
        "5.2": _level(8_912_896, 1_069_547_520, 60_000),
    },
    "av1": {
        "2.1": _level(278_784, 8_363_520, 3_000),
        "3.0": _level(665_856, 19_975_680, 6_000),
        "3.1": _level(1_065_024, 31_950_720, 10_000),
        "4.0": _level(2_359_296, 70_778_880, 12_000),
        "4.1": _level(2_359_296, 141_557_760, 20_000),
        "5.0": _level(8_912_896, 267_386_880, 30_000),
        "5.1": _level(8_912_896, 534_773_760, 40_000),
        "5.2": _level(8_912_896, 1_069_547_520, 60_000),
    },
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Why a rendition cannot be made: a word for programs, a sentence for people."""

    rule: str
    message: str


def faults(rendition: Rendition, fps: Fraction) -> Iterator[Fault]:
    """Everything that speaks against this cell at this frame rate."""
    width, height = rendition.width, rendition.height
    if min(width, height) < _MIN_SIDE or width % 2 or height % 2:
        yield Fault(rule="size", message=f"{width}x{height}: sides are even and at least {_MIN_SIDE}")
        return
    yield from _beyond_level(rendition, fps)
    if rendition.tile_columns > 1:
        least, most = _TILE_PX
        tile_px = width / rendition.tile_columns
        if rendition.codec != "av1":
            yield Fault(rule="tiles", message=f"the {rendition.codec} encoder has no tile columns")
        elif not least <= tile_px <= most or rendition.tile_columns & (rendition.tile_columns - 1):
            wide = f"{rendition.tile_columns} tile columns in {width} pixels"
            yield Fault(rule="tiles", message=f"{wide}: a power of two, {least} to {most} pixels each")


def _beyond_level(rendition: Rendition, fps: Fraction) -> Iterator[Fault]:
    name = f"{rendition.codec} level {rendition.level}"
    level = LEVELS[rendition.codec][rendition.level]
    unit = _MACROBLOCK if rendition.codec == "h264" else 1
    columns, rows = -(-rendition.width // unit), -(-rendition.height // unit)
    size = f"{rendition.width}x{rendition.height}"
    if columns * rows > level.picture or max(columns, rows) ** 2 > 8 * level.picture:
        yield Fault(rule="level", message=f"{size} is more than {name} allows")
    elif columns * rows * fps > level.per_second:
        yield Fault(rule="level", message=f"{size} at {float(fps):g} frames per second is more than {name} allows")
    most = level.kbps * (_HIGH_BITS if (rendition.codec, rendition.profile) == ("h264", "high") else 1)
    if (kbps := max(rendition.peak_kbps, rendition.bitrate_kbps)) > most:
        yield Fault(rule="level", message=f"{kbps} kbit/s are more than the {most:g} of {name}")
