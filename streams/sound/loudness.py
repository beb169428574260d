"""Loudness and true peak as they pass by, block by block. Sources: ITU-R BS.1770-5, EBU R 128."""

import numpy as np
from numpy.typing import NDArray
from scipy.signal import sosfilt, upfirdn

from streams.sound import RATE, Samples

OVERSAMPLED = 4
REACH = 10
"""Samples on each side that a value between two samples depends on."""
_SINC = np.sinc(np.arange(-REACH * OVERSAMPLED, REACH * OVERSAMPLED + 1) / OVERSAMPLED)
_TAPS: NDArray[np.float32] = (_SINC * np.kaiser(len(_SINC), 5.0)).astype(np.float32)
_K_WEIGHTING = np.array(
    [
        [1.53512485958697, -2.69169618940638, 1.19839281085285, 1.0, -1.69065929318241, 0.73248077421585],
        [1.0, -2.0, 1.0, 1.0, -1.99004745483398, 0.99007225036621],
    ]
)
"""At 48 kHz: BS.1770, tables 1 and 2."""
_HOP = RATE // 10
_HOPS = 4
"""Of a gating block: 400 ms, which overlap by three quarters."""
_ABSOLUTE_LUFS, _RELATIVE_LU = -70.0, -10.0
_OFFSET_LUFS = -0.691


class Meter:
    """Integrated loudness and true peak of all that was pushed."""

    def __init__(self) -> None:
        self._state = np.zeros((2, 2, 2))
        self._open = np.zeros(0)
        self._hops: list[float] = []
        self._tail: Samples = np.zeros((2 * REACH, 2), np.float32)
        self._peak = 0.0

    def push(self, block: Samples) -> None:
        """The next samples."""
        weighted, self._state = sosfilt(_K_WEIGHTING, block, axis=0, zi=self._state)
        powers = np.concatenate([self._open, np.square(weighted).sum(axis=1)])
        whole = len(powers) // _HOP * _HOP
        self._hops += powers[:whole].reshape(-1, _HOP).sum(axis=1).tolist()
        self._open = powers[whole:]
        heard = np.concatenate([self._tail, block])
        self._tail = heard[-2 * REACH :]
        self._peak = max(self._peak, float(peaks(heard).max(initial=0)))

    def lufs(self) -> float | None:
        """None: nothing was louder than the gate, or it was shorter than a block."""
        hops = np.array(self._hops)
        if len(hops) < _HOPS:
            return None
        blocks = np.convolve(hops, np.ones(_HOPS), mode="valid") / (_HOPS * _HOP)
        loud = blocks[_lufs(blocks) > _ABSOLUTE_LUFS]
        if not len(loud):
            return None
        loud = loud[_lufs(loud) > float(_lufs(loud.mean())) + _RELATIVE_LU]
        return float(_lufs(loud.mean()))

    def peak_dbtp(self) -> float:
        """The highest value, between samples too."""
        return 20 * float(np.log10(max(self._peak, 1e-6)))


def peaks(heard: Samples) -> NDArray[np.float32]:
    """[T - 2 * REACH] highest value of either channel at each sample or between it and the next, for the samples in the middle."""
    finer = np.abs(upfirdn(_TAPS, heard, up=OVERSAMPLED, axis=0)).max(axis=1)
    # The filter delays by REACH samples, and what is wanted begins another REACH behind the first.
    begin, count = 2 * REACH * OVERSAMPLED, len(heard) - 2 * REACH
    return finer[begin : begin + count * OVERSAMPLED].reshape(count, OVERSAMPLED).max(axis=1)


def _lufs(power: NDArray[np.float64] | np.float64) -> NDArray[np.float64]:
    return _OFFSET_LUFS + 10 * np.log10(np.maximum(power, 1e-12))
