"""What the planner must know of each engine: how much it generates in one go and what it resumes from."""

from dataclasses import dataclass
from importlib.metadata import entry_points


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineLimits:
    """Frames are those of the finished video, at the job's own rate."""

    max_segment_frames: int
    """Including both overlaps."""
    overlap_frames: int
    """Between neighbouring segments; 0: the engine continues exactly."""
    state_segments: int
    """How many earlier segments' latents it resumes from; 0: all since the last cut or dissolve."""
    max_pixels: int
    first_block_frames: int = 1
    block_frames: int = 1
    """A take (shots joined by continuous transitions) is made of a first block and others: its segments end where blocks do."""
    side_multiple: int = 2
    """Width and height are multiples of it."""
    sink_latents: int = 0
    """A windowed model sees this many of a take's first latents for ever: snapping back to them is a failure. 0: it is not looked for.

    Such an engine resumes from all latents (`state_segments` 0)."""


ENGINES: dict[str, EngineLimits] = {
    "animatic": EngineLimits(max_segment_frames=40, overlap_frames=8, state_segments=1, max_pixels=3840 * 2160),
    "causal_dit": EngineLimits(
        max_segment_frames=48,
        overlap_frames=0,
        state_segments=0,
        max_pixels=1920 * 1088,
        first_block_frames=9,
        block_frames=12,
        side_multiple=16,
        sink_latents=3,
    ),
    "diffusers": EngineLimits(
        max_segment_frames=80, overlap_frames=0, state_segments=1, max_pixels=1920 * 1088, side_multiple=16
    ),
    "veo": EngineLimits(max_segment_frames=168, overlap_frames=0, state_segments=1, max_pixels=1920 * 1080),
}


def sink_of(engine: str) -> int:
    """Its `sink_latents`; 0 for an engine that is not known."""
    return ENGINES[engine].sink_latents if engine in ENGINES else 0


GROUP = "longtake.limits"
"""Entry points of packages that bring an engine: the name is the engine's, the value names its EngineLimits."""


def add_installed() -> None:
    """Know the limits of other packages' engines too. Called once by a process that plans jobs."""
    for point in entry_points(group=GROUP):
        ENGINES.setdefault(point.name, point.load())
