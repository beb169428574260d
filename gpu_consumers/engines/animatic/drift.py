"""What a drifting engine does to its frames: a gain per channel and a sub-pixel shift, known exactly."""

import numpy as np
from PIL import Image

from gpu_consumers.engines.animatic.options import Drift
from gpu_consumers.engines.engine import Frames

_PAD = 12
"""More than the largest shift and the filter's reach; edges are repeated outwards."""


def drifted(frame: Frames, drift: Drift) -> Frames:
    """The frame [H, W, 3], moved right by `shift_x_px` and down by `shift_y_px` (Lanczos), then multiplied by the gains."""
    if drift.shift_x_px or drift.shift_y_px:
        frame = _shifted(frame, drift.shift_x_px, drift.shift_y_px)
    if drift.gain == (1.0, 1.0, 1.0):
        return frame
    levels = np.arange(256)
    tables = [np.clip(np.round(levels * gain), 0, 255).astype(np.uint8) for gain in drift.gain]
    return np.stack([table.take(frame[..., channel]) for channel, table in enumerate(tables)], axis=-1)


def _shifted(frame: Frames, dx: float, dy: float) -> Frames:
    height, width = frame.shape[:2]
    padded = Image.fromarray(np.pad(frame, ((_PAD, _PAD), (_PAD, _PAD), (0, 0)), mode="edge"))
    box = (_PAD - dx, _PAD - dy, _PAD - dx + width, _PAD - dy + height)
    return np.asarray(padded.resize((width, height), Image.Resampling.LANCZOS, box))
