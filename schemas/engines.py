"""What the planner must know of each engine: how much it generates in one go and what it resumes from."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineLimits:
    """Frames are those of the finished video, at the job's own rate."""

    max_segment_frames: int
    """Including both overlaps."""
    overlap_frames: int
    """Between neighbouring segments; 0: the engine continues exactly."""
    state_segments: int
    """How many earlier segments' latents it resumes from; 0: all."""
    max_pixels: int


ENGINES: dict[str, EngineLimits] = {
    "animatic": EngineLimits(max_segment_frames=40, overlap_frames=8, state_segments=1, max_pixels=3840 * 2160),
}
