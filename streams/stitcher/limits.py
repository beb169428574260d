"""What the stitcher tolerates."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Beyond these a seam is rejected, or a fade becomes a cut. Measured: docs/stitching-and-qc.md."""

    offset_frames: int = 4
    offset_margin_db: float = 3.0
    """A temporal offset must explain the overlap this much better than every other one; otherwise it is 0."""
    offset_pairs: int = 2
    """Frames that both segments must show for an offset to be considered, and that an offset must leave to the next seam."""
    shift_share: float = 0.01
    """Of the picture's longer side."""
    gain: float = 1.25
    """Largest gain of a channel; the smallest is its inverse."""
    level: float = 40.0
    """Largest change of mid grey, in grey levels."""
    difference_share: float = 0.6
    """Of the variance of luma: what still differs after correction. Strangers have 1 to 2, the same scene 0.1 and less."""
    difference_noise: float = 8.0
    """Grey levels: smaller differences are grain, or too dim to matter."""
    sharpness_ratio: float = 0.8
    """Of a cross-fade to what it is made of: below it is a ghost (misaligned ones measure 0.54)."""
    luma_jump_ratio: float = 8.0
    warp_error_ratio: float = 1.7
    duplicate_db: float = 60.0
    neighbourhood_frames: int = 12
    """On each side of the seam: what is usual there."""
    luma_noise: float = 0.1
    """Grey levels: second differences of mean luma below it cannot be seen."""
    warp_noise: float = 0.5
    """Grey levels: motion-compensated differences below it cannot be seen."""
