"""The control channel of a latent: where camera and subject are, as numbers in the first cells of the last channel.

Lengths are in picture heights, speeds per second, so that the same control serves every size. What `Control` holds has been
through float32: a state continued in memory and one read back from the store are the same bits.
"""

from dataclasses import astuple, dataclass, fields

import numpy as np
from numpy.typing import NDArray

Field = NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """One frame's camera and subject."""

    time: float
    """The frame of the timeline this is the picture of."""
    run_segment: float
    """How many segments since the last cut or dissolve."""
    shot: float
    world: float
    """Seed of the backdrop; below 2**24, so that float32 holds it."""
    world_before: float
    """Of the shot that this one grows out of."""
    pan_x: float = 0.0
    pan_y: float = 0.0
    pan_vx: float = 0.0
    pan_vy: float = 0.0
    track_x: float = 0.0
    track_y: float = 0.0
    track_vx: float = 0.0
    track_vy: float = 0.0
    zoom: float = 0.0
    """Logarithm of the magnification of the whole picture."""
    zoom_v: float = 0.0
    dolly: float = 0.0
    """Logarithm of the magnification of what is near."""
    dolly_v: float = 0.0
    sway_x: float = 0.0
    sway_y: float = 0.0
    subject_x: float = 0.0
    subject_y: float = 0.0
    """Height above its place."""
    subject_v: float = 0.0
    """Towards where it looks."""
    facing: float = 1.0
    """1 looks right, -1 left."""
    gait: float = 0.0
    """Phase of its movement in cycles."""
    grain: float = 0.0
    """Which piece of the film grain lies over this frame."""


SLOTS = len(fields(Control))


def read_control(latent: Field) -> Control:
    """The control of one latent [C, h, w]."""
    return Control(**dict(zip(_NAMES, latent[-1].reshape(-1)[:SLOTS].tolist(), strict=True)))


def write_control(control: Control, latent: Field) -> None:
    """Put the control into the latent [C, h, w]."""
    latent[-1].reshape(-1)[:SLOTS] = np.asarray(astuple(control), np.float32)


_NAMES = tuple(f.name for f in fields(Control))
