"""From RGB frames of a segment to the corrected 4:2:0 pictures that are blended and encoded. No frame is converted twice.

A *picture* is [H * 3 / 2, W] float32: planes Y, U, V one after the other (I420) on the 8-bit scale, BT.709, limited range,
chroma sited left as H.264 assumes. It is rounded once, after blending.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from schemas.records import Correction

Picture = NDArray[np.float32]
Plane = NDArray[np.float32]
Frame = NDArray[np.uint8]

_TAPS = 3
"""Of the Lanczos window, on each side."""
_SHIFT_NOISE_PX = 0.05
"""Resampling costs more sharpness than a smaller shift is worth."""
_LEVEL_NOISE = 0.25
"""Grey levels: a smaller change of colour is lost in rounding."""
_KR, _KB = 0.2126, 0.0722
_KG = 1.0 - _KR - _KB
LUMA = np.array([_KR, _KG, _KB], np.float32)
"""BT.709."""
_MATRIX = np.array(
    [
        [219 * _KR, 219 * _KG, 219 * _KB],
        [-112 * _KR / (1 - _KB), -112 * _KG / (1 - _KB), 112.0],
        [112.0, -112 * _KG / (1 - _KR), -112 * _KB / (1 - _KR)],
    ]
) / np.float64(255)
_BLACK = np.array([16.0, 128.0, 128.0])


def visible(correction: Correction) -> Correction:
    """The correction without the parts that are too small to be seen: a picture is left exactly as it is, or it is worth it."""
    change = [max(abs(b), abs(255 * (g - 1) + b)) for g, b in zip(correction.gain, correction.bias, strict=True)]
    x, y = (s if abs(s) >= _SHIFT_NOISE_PX else 0.0 for s in (correction.shift_x_px, correction.shift_y_px))
    if max(change) < _LEVEL_NOISE:
        return Correction(shift_x_px=x, shift_y_px=y, offset_frames=correction.offset_frames)
    return replace(correction, shift_x_px=x, shift_y_px=y)


def render(frame: Frame, correction: Correction) -> Picture:
    """A frame [H, W, 3] uint8 RGB, corrected in colour and moved as far as that can be seen. H and W are even."""
    correction = visible(correction)
    height, width, _ = frame.shape
    rgb = np.ascontiguousarray(frame.transpose(2, 0, 1)).astype(np.float32)
    matrix = (_MATRIX * np.array(correction.gain)).astype(np.float32)
    offset = (_BLACK + _MATRIX @ np.array(correction.bias)).astype(np.float32)
    small = _left_sited_half(rgb)
    picture = np.empty((height * 3 // 2, width), np.float32)
    for row, plane in enumerate(planes(picture)):
        r, g, b = small if row else rgb
        value = r * matrix[row, 0]
        value += g * matrix[row, 1]
        value += b * matrix[row, 2]
        value += offset[row]
        step = 2 if row else 1
        plane[:] = moved(value, correction.shift_x_px / step, correction.shift_y_px / step)
    return picture


def rounded(picture: Picture) -> Frame:
    """8 bits, limited range: [H * 3 / 2, W] uint8."""
    whole = np.rint(picture)
    luma = picture.shape[0] * 2 // 3
    np.clip(whole[:luma], 16, 235, out=whole[:luma])
    np.clip(whole[luma:], 16, 240, out=whole[luma:])
    return whole.astype(np.uint8)


def planes(picture: Picture) -> Iterator[Plane]:
    """Views of Y [H, W], U and V [H / 2, W / 2]."""
    height, width = picture.shape[0] * 2 // 3, picture.shape[1]
    yield picture[:height]
    for chroma in picture[height:].reshape(2, -1):
        yield chroma.reshape(height // 2, width // 2)


def moved(plane: Plane, x_px: float, y_px: float) -> Plane:
    """The plane with its content moved right by `x_px` and down by `y_px` (Lanczos 3). Edges are repeated: no black borders.

    Whole numbers are moved exactly, and 0 returns the plane itself.
    """
    if x_px:
        plane = _filtered(plane, 1, x_px)
    if y_px:
        plane = _filtered(plane, 0, y_px)
    return plane


def _filtered(plane: Plane, axis: int, shift_px: float) -> Plane:
    whole = int(np.floor(shift_px))
    weights = _lanczos(shift_px - whole)
    reach, size = _TAPS + abs(whole), plane.shape[axis]
    first, last = (plane.take([edge], axis).repeat(reach, axis) for edge in (0, -1))
    padded = np.concatenate([first, plane, last], axis)
    out = np.zeros_like(plane)
    term = np.empty_like(plane)
    for tap, weight in zip(range(-_TAPS, _TAPS), weights, strict=True):
        start = reach + tap - whole
        window = padded[:, start : start + size] if axis else padded[start : start + size]
        if weight:
            np.multiply(window, weight, out=term)
            out += term
    return out


@lru_cache(maxsize=16)
def _lanczos(fraction: float) -> NDArray[np.float32]:
    """Weights of the samples at -3..2 for a value at -`fraction`."""
    x = np.arange(-_TAPS, _TAPS) + fraction
    weights = np.sinc(x) * np.sinc(x / _TAPS)
    weights[np.abs(weights) < 1e-12] = 0.0  # sinc of whole numbers: a move by whole pixels is exact
    return (weights / weights.sum()).astype(np.float32)


def _left_sited_half(rgb: NDArray[np.float32]) -> NDArray[np.float32]:
    """[3, H, W] to [3, H / 2, W / 2]: pairs of rows averaged, columns 1-2-1 around the even ones."""
    rows = rgb[:, 0::2] + rgb[:, 1::2]
    even, odd = rows[:, :, 0::2], rows[:, :, 1::2]
    out = even * np.float32(0.25)
    before = np.concatenate([even[:, :, :1], odd[:, :, :-1]], axis=2)
    before += odd
    before *= np.float32(0.125)
    out += before
    return out
