"""What is heard: music, effects and narration, mixed in samples. [T, 2] float32 at 48 kHz, 1 is full scale."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

RATE = 48_000
Samples: TypeAlias = NDArray[np.float32]
"""[T, 2], left and right."""


class SoundError(Exception):
    """A sound that cannot be had; the message says which and why."""
