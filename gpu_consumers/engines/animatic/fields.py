"""Clouds, water, fog and air as four random fields on the latent grid, each frame grown from the one before.

In Fourier space a field is an Ornstein-Uhlenbeck process per wave: advected by the wind, turned by the wave's own frequency,
forgotten a little, fed by noise of the same spectrum. So it stays the same kind of texture for ever, without blurring. Noise
comes from a generator seeded by (job, block of frames), never from a global one.

Fields: [4, h, w] float32 of unit variance, periodic: 0 clouds, 1 water, 2 fog, 3 air (haze and the shadows that drift over a scene).
"""

from dataclasses import dataclass
from functools import cache
from typing import cast

import numpy as np
from numpy.typing import NDArray
from scipy import fft

FIELDS = 4
BLOCK_FRAMES = 4
"""Frames whose noise is drawn together."""
CELL = 8
"""Pixels per cell of the latent grid, as in the usual video VAEs; fewer below 128 pixels."""
_MIN_CELLS = 8
_KEEP_PER_S = (0.86, 0.30, 0.62, 0.30)
"""How much of each field is still there after a second."""

Field = NDArray[np.float32]
Spectrum = NDArray[np.complex64]


def grid(width: int, height: int) -> tuple[int, int]:
    """(h, w) of the latents of a picture."""
    return max(_MIN_CELLS, -(-height // CELL)), max(_MIN_CELLS, -(-width // CELL))


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseKey:
    """What the noise of a segment depends on."""

    seed: int
    variation: int


class Noise:
    """White noise by frame, drawn in blocks: the same for a frame whichever frame was asked for first."""

    def __init__(self, key: NoiseKey, shape: tuple[int, int]) -> None:
        self._key = key
        self._shape = shape
        self._block = -1
        self._fields = np.zeros((0, FIELDS, *shape), np.float32)
        self._walk = np.zeros((0, 4))

    def at(self, frame: int) -> tuple[Field, NDArray[np.float64]]:
        """Unit normal noise of a frame: [4, h, w] for the fields, [4] for camera sway and grain."""
        block, index = divmod(frame, BLOCK_FRAMES)
        if block != self._block:
            random = np.random.Generator(np.random.PCG64([self._key.seed, self._key.variation, block]))
            self._fields = random.standard_normal((BLOCK_FRAMES, FIELDS, *self._shape), np.float32)
            self._walk = random.standard_normal((BLOCK_FRAMES, 4))
            self._block = block
        return self._fields[index], self._walk[index]


class Dynamics:
    """The step from one frame's fields to the next, for one grid and frame rate. `step_s` is the time between frames."""

    def __init__(self, shape: tuple[int, int], step_s: float) -> None:
        height, width = shape
        self._shape = shape
        self._ky = (2 * np.pi * fft.fftfreq(height)).astype(np.float32)[:, None]
        self._kx = (2 * np.pi * fft.rfftfreq(width)).astype(np.float32)[None, :]
        self._spectra = _spectra(shape)
        self._step_s = step_s
        keep = np.asarray([per_s**step_s for per_s in _KEEP_PER_S], np.float32)[:, None, None]
        self._keep, self._feed = keep, np.sqrt(1 - keep**2)

    def start(self, noise: Field) -> Field:
        """The fields of a first frame."""
        return self._real(cast(Spectrum, self._spectra * self._waves(noise)))

    def step(self, fields: Field, noise: Field, wind: NDArray[np.float64]) -> Field:
        """The next frame's fields. `wind` [4, 2]: how far each moves right and down, in cells per second."""
        old = self._turned(self._waves(fields), wind.astype(np.float32) * np.float32(self._step_s))
        new = self._keep * old + self._feed * self._spectra * self._waves(noise)
        return self._real(cast(Spectrum, new))

    def _turned(self, waves: Spectrum, moved: Field) -> Spectrum:
        angle = moved[:, 0, None, None] * self._kx + moved[:, 1, None, None] * self._ky
        angle[1] += np.float32(self._step_s * 3.0) * np.sqrt(self._kx)  # deep water: short waves turn faster
        return waves * np.exp(np.complex64(-1j) * angle)

    @staticmethod
    def _waves(fields: Field) -> Spectrum:
        return cast(Spectrum, fft.rfft2(fields))

    def _real(self, waves: Spectrum) -> Field:
        return cast(Field, fft.irfft2(waves, s=self._shape))


@cache
def _spectra(shape: tuple[int, int]) -> Field:
    """Amplitude of each wave, [4, h, w // 2 + 1], so that white noise becomes a field of unit variance."""
    height, width = shape
    ky = np.asarray(fft.fftfreq(height), np.float64)[:, None] * height
    kx = np.asarray(fft.rfftfreq(width), np.float64)[None, :] * height
    clouds = _power(kx * 1.7, ky * 0.8, peak=3.0, slope=3.0)
    water = _power(kx * 1.3, ky, peak=min(7.0, height / 5), slope=3.0)
    fog = _power(kx, ky * 0.7, peak=1.3, slope=3.2)
    air = _power(kx, ky, peak=min(5.0, height / 5), slope=3.6)
    amplitudes = np.sqrt(np.stack([clouds, water, fog, air]))
    weight = np.where((kx == 0) | (kx * 2 == height), 1.0, 2.0)  # the half of the spectrum that rfft leaves out
    total = (amplitudes**2 * weight).sum(axis=(1, 2), keepdims=True)
    return (amplitudes * np.sqrt(height * width / total)).astype(np.float32)


def _power(kx: NDArray[np.float64], ky: NDArray[np.float64], *, peak: float, slope: float) -> NDArray[np.float64]:
    """A spectrum that rises to `peak` waves per picture height and falls off beyond."""
    k = np.hypot(kx, ky) / peak
    return np.where(k > 0, k**2 / (1 + k**2) ** (1 + slope / 2 + 0.5), 0.0)
