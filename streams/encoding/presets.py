"""The device table, read and checked once."""

import tomllib
from collections.abc import Mapping
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from schemas.records import Rendition
from streams.encoding.levels import LEVELS, faults

TABLE = Path(__file__).with_name("presets.toml")
PROFILES = {
    ("h264", 8): ("baseline", "main", "high"),
    ("hevc", 8): ("main",),
    ("hevc", 10): ("main10",),
    ("av1", 8): ("main",),
    ("av1", 10): ("main",),
}
_X26X = ("ultrafast", "superfast", "veryfast", "faster", "fast", "medium", "slow", "slower", "veryslow")
SPEEDS = {"h264": _X26X, "hevc": _X26X, "av1": tuple(str(n) for n in range(14))}
MAX_CRF = {"h264": 51, "hevc": 51, "av1": 63}
_USUAL_FPS = Fraction(24)
_NEEDS = {
    "crf": {"crf"},
    "capped_crf": {"crf", "peak_kbps"},
    "vbr": {"bitrate_kbps", "peak_kbps"},
    "cbr": {"bitrate_kbps"},
}
_Positive = Annotated[int, msgspec.Meta(gt=0)]
_Name = Annotated[str, msgspec.Meta(pattern="^[a-z0-9][a-z0-9-]{0,39}$")]


class PresetError(Exception):
    """The device table says something wrong: correct the file."""


class Preset(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One device of the table."""

    codec: Literal["h264", "hevc", "av1"]
    bits: Literal[8, 10]
    size: tuple[_Positive, _Positive]
    profile: str
    level: str
    rate_control: Literal["crf", "capped_crf", "vbr", "cbr"]
    speed: str
    crf: Annotated[float, msgspec.Meta(gt=0)] | None = None
    bitrate_kbps: _Positive | None = None
    peak_kbps: _Positive | None = None
    tile_columns: _Positive = 1
    nvenc: bool = False

    def __post_init__(self) -> None:
        if self.profile not in PROFILES.get((self.codec, self.bits), ()):
            raise ValueError(f"{self.codec} with {self.bits} bits has no profile {self.profile!r} here")
        if self.level not in LEVELS[self.codec]:
            raise ValueError(f"{self.codec} has no level {self.level!r}")
        if self.speed not in SPEEDS[self.codec]:
            raise ValueError(f"{self.codec} has no speed {self.speed!r}")
        given = {name for name in ("crf", "bitrate_kbps", "peak_kbps") if getattr(self, name) is not None}
        needed = _NEEDS[self.rate_control] - (
            {"peak_kbps"} if (self.codec, self.rate_control) == ("av1", "vbr") else set()
        )
        if given != needed:
            raise ValueError(f"{self.rate_control} of {self.codec} is said by {', '.join(sorted(needed))}")
        if self.crf is not None and self.crf > MAX_CRF[self.codec]:
            raise ValueError(f"crf of {self.codec} is at most {MAX_CRF[self.codec]}")
        if (self.peak_kbps or 0) and (self.peak_kbps or 0) < (self.bitrate_kbps or 0):
            raise ValueError("peak_kbps is less than bitrate_kbps")

    def rendition(self, name: str, width: int, height: int, gop_frames: int) -> Rendition:
        """Of this size."""
        return Rendition(
            name=name,
            codec=self.codec,
            bits=self.bits,
            profile=self.profile,
            level=self.level,
            width=width,
            height=height,
            rate_control=self.rate_control,
            crf=self.crf or 0.0,
            bitrate_kbps=self.bitrate_kbps or 0,
            peak_kbps=self.peak_kbps or 0,
            speed=self.speed,
            gop_frames=gop_frames,
            tile_columns=self.tile_columns,
            nvenc=self.nvenc,
        )


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    devices: dict[_Name, Preset]


def load_presets(path: Path = TABLE) -> Mapping[str, Preset]:
    """Every device by name. Raises: PresetError if an entry is wrong or cannot work even at its own size and 24 fps."""
    try:
        devices = msgspec.convert(tomllib.loads(path.read_text()), _Table).devices
    except (OSError, tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise PresetError(f"{path.name}: {error}") from error
    for name, preset in devices.items():
        for fault in faults(preset.rendition(name, *preset.size, gop_frames=24), _USUAL_FPS):
            raise PresetError(f"{path.name}: {name}: {fault.message}")
    return devices


@cache
def presets() -> Mapping[str, Preset]:
    """The table that comes with this release."""
    return load_presets()
